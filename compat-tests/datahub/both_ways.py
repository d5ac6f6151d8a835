"""What one side writes the other side reads: same key, value, headers, place and order."""

import threading
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import test
from pgqueue_alone import HEADERS, KEYS
from pyclient import PATIENCE
from runner.generated import BASE_TIMESTAMP, generate
from sides import KafkaProducer, Queue, by_partition, kafka_read, stable_partition_id

#: Seconds in which a waiting reader must see what the other side wrote.
WAKE_UP = 5


@test(kafka=True)
def kafka_to_pgqueue(context):
    topic = context.topic("to-pgqueue")
    records = generate(quick=True)
    for codec in ("none", "snappy"):
        send_generated(context, topic, records, codec)
    with Queue(context) as queue:
        received = by_partition(queue.drain(topic, "group"))
        for partition in (0, 1):
            sent = [record for record in records if record["partition"] == partition] * 2
            assert len(received[partition]) == len(sent), (len(received[partition]), len(sent))
            for i, (record, message) in enumerate(zip(sent, received[partition])):
                assert message.seq == i + 1, (message.seq, i)
                check_received(record, message)
            assert queue.offset(topic, "group", partition) == len(sent)


def send_generated(context, topic, records, codec):
    producer = KafkaProducer(context, **{"linger.ms": 20, "compression.type": codec})
    for record in records:
        producer.send(topic, **record)
    acknowledged = producer.flush()
    assert len(acknowledged) == len(records)


def check_received(record, message):
    what = (record, message)
    assert message.payload == (record["value"] or b""), what
    # pgQueue has no null header values.
    assert message.headers == tuple((name, value or b"") for name, value in record["headers"]), what
    key = record["key"]
    try:
        text = key.decode("utf-8") if key is not None and b"\0" not in key else None
    except UnicodeDecodeError:
        text = None
    if text is not None:
        assert message.key == text, what
    assert message.priority == 5, what


@test(kafka=True)
def pgqueue_to_kafka(context):
    topic = context.topic("to-kafka")
    messages = [(key, key.encode() * 3, HEADERS[: i % 5]) for i, key in enumerate(KEYS)]
    messages += [
        ("", b"an empty key", ()),
        ("ключ,鍵", bytes(range(256)), (("имя", "значение".encode()),)),
        ("empty payload", b"", ()),
        ("large", b"0123456789abcdef" * 57_600, ()),
    ]
    expected = {0: [], 1: []}
    with Queue(context) as queue:
        for snappy in (False, True):
            for i, (key, payload, headers) in enumerate(messages):
                handle = queue.enqueue(topic, key, payload, headers, priority=i % 10, snappy=snappy)
                expected[handle.partition_id].append((handle, key, payload, headers))
            handles = queue.enqueue_batch(topic, messages, snappy)
            for handle, (key, payload, headers) in zip(handles, messages):
                expected[handle.partition_id].append((handle, key, payload, headers))
    read = kafka_read(context, topic)
    for partition, sent in expected.items():
        assert len(read[partition]) == len(sent), (partition, len(read[partition]), len(sent))
        for record, (handle, key, payload, headers) in zip(read[partition], sent):
            assert record.offset == handle.enqueue_seq - 1, (record.offset, handle)
            assert record.key == key.encode("utf-8"), (record.key, key)
            assert record.value == payload, handle
            assert tuple(record.headers) == headers, (record.headers, headers)
            assert record.timestamp == int(handle.enqueued_at.timestamp() * 1000), (record.timestamp, handle)


@test(kafka=True)
def both_choose_the_same_partition(context):
    topic = context.topic("partitioner")
    with Queue(context, partitions=7) as queue:
        queue.make_topic(topic)
        producer = KafkaProducer(context)
        for key in KEYS:
            producer.send(topic, key=key.encode(), value=key.encode())
        for acknowledged in producer.flush():
            assert acknowledged.partition == stable_partition_id(acknowledged.value.decode(), 7)
            handle = queue.enqueue(topic, acknowledged.value.decode(), b"by pgQueue")
            assert handle.partition_id == acknowledged.partition


@test(kafka=True)
def topics_appear_on_the_other_side(context):
    admin = AdminClient({"bootstrap.servers": context.bootstrap})
    topic = context.topic("made-by-pgqueue")
    for partitions in (5, 7):
        with Queue(context, partitions=partitions) as queue:
            queue.make_topic(topic)
        # The gateway may keep what it knows of a topic for a second.
        deadline = time.monotonic() + WAKE_UP
        while partition_count(admin, topic) != partitions:
            assert time.monotonic() < deadline, f"Kafka does not show {partitions} partitions"
            time.sleep(0.2)
    topic = context.topic("made-by-kafka")
    producer = KafkaProducer(context)
    producer.send(topic, key=b"key", value=b"value")
    producer.flush()
    with Queue(context) as queue:
        row = queue.repository.fetch_topic_row(queue.connection, topic)
        assert row is not None and row[1] == 2, row
        queue.enqueue(topic, "key", b"another value")
        assert [m.payload for m in queue.drain(topic, "group")] == [b"value", b"another value"]


def partition_count(admin, topic):
    metadata = admin.list_topics(timeout=PATIENCE).topics.get(topic)
    return len(metadata.partitions) if metadata else 0


@test(kafka=True)
def ends_and_times_of_what_pgqueue_wrote(context):
    topic = context.topic("times")
    with Queue(context, partitions=1) as queue:
        handles = []
        for i in range(5):
            handles.append(queue.enqueue(topic, "key", b"%d" % i))
            time.sleep(0.02)
    consumer = Consumer({"bootstrap.servers": context.bootstrap, "group.id": "times"})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE) == (0, 5)
    for i, handle in enumerate(handles):
        at = int(handle.enqueued_at.timestamp() * 1000)
        for timestamp, expected in ((at, i), (at + 1, i + 1 if i < 4 else -1)):
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=PATIENCE)
            # librdkafka shows "none" as its constant for the end, -1.
            assert found.error is None and found.offset == expected, (found, expected)
    consumer.close()


@test(kafka=True)
def a_kafka_consumer_at_the_end_wakes_up(context):
    topic = context.topic("tail")
    with Queue(context, partitions=1) as queue:
        queue.make_topic(topic)
        consumer = Consumer(
            # One long fetch: were it not woken, the record came after fetch.wait.max.ms.
            {"bootstrap.servers": context.bootstrap, "group.id": "tail", "fetch.wait.max.ms": 3 * WAKE_UP * 1000,
             "socket.timeout.ms": 120_000}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(2) is None
        for i in range(3):
            queue.enqueue(topic, "key", b"%d" % i)
            written = time.monotonic()
            message = consumer.poll(4 * WAKE_UP)
            assert message is not None and message.error() is None, message
            assert message.value() == b"%d" % i
            assert time.monotonic() - written < WAKE_UP, f"{time.monotonic() - written:.1f} s until the record came"
        consumer.close()


@test(kafka=True)
def an_acknowledged_record_can_be_received_at_once(context):
    topic = context.topic("at-once")
    producer = KafkaProducer(context)
    with Queue(context) as queue:
        for i in range(20):
            producer.send(topic, key=b"key", value=b"%d" % i, timestamp=BASE_TIMESTAMP)
            producer.flush()
            (message,) = queue.receive(topic, "group")
            assert message.payload == b"%d" % i
            queue.commit("group", [message])


@test(kafka=True)
def leases_and_offsets_of_kafka_rows(context):
    """Two pgQueue workers of one group share what a Kafka producer wrote: nothing twice, nothing left."""
    topic = context.topic("workers")
    producer = KafkaProducer(context)
    for i in range(200):
        producer.send(topic, key=KEYS[i % len(KEYS)].encode(), value=b"%d" % i)
    producer.flush()
    received, errors = [], []

    def work():
        try:
            with Queue(context) as queue:
                idle = 0
                while idle < 5:
                    batch = queue.receive(topic, "group", most=7)
                    idle = 0 if batch else idle + 1
                    received.extend(batch)
                    queue.commit("group", batch)
                    if not batch:
                        time.sleep(0.05)
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
        assert not worker.is_alive(), "a worker hangs"
    assert not errors, errors
    assert sorted(int(m.payload) for m in received) == list(range(200))
    with Queue(context) as queue:
        for partition, messages in by_partition(received).items():
            assert queue.offset(topic, "group", partition) == len(messages)
