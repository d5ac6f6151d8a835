"""confluent-kafka: the Python binding of librdkafka."""

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from group_member import (
    HEARTBEAT_INTERVAL, POLL, POLL_RECORDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT, Input, Processed, tell,
)
from pyclient import PATIENCE, Read


def produce(bootstrap, topic, codec, records):
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            # Long enough for records to gather in batches.
            "linger.ms": 50,
            "message.timeout.ms": PATIENCE * 1000,
        }
    )
    errors = []

    def acknowledged(error, _message):
        if error is not None:
            errors.append(error)

    for record in records:
        def send():
            producer.produce(
                topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp=record.timestamp,
                on_delivery=acknowledged,
            )

        try:
            send()
        except BufferError:
            producer.flush(PATIENCE)
            send()
    left = producer.flush(PATIENCE)
    if errors or left:
        raise SystemExit(f"{len(errors)} records refused, {left} not acknowledged: {errors[:1]}")


def consume(bootstrap, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # The class needs one; with an assignment and without commits no group comes to be.
            "group.id": "compat-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    metadata = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
    if metadata.error is not None:
        raise KafkaException(metadata.error)
    ends = {}
    for partition in metadata.partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE)
        if high > low:
            ends[partition] = low, high
    consumer.assign([TopicPartition(topic, partition, low) for partition, (low, _) in ends.items()])
    while ends:
        message = consumer.poll(PATIENCE)
        if message is None:
            raise SystemExit(f"no record for {PATIENCE} s, still waiting for {ends}")
        if message.error() is not None:
            raise KafkaException(message.error())
        partition = message.partition()
        if partition not in ends:
            continue  # past the end that was asked at the start
        yield Read(
            partition,
            message.offset(),
            message.key(),
            message.value(),
            message.headers() or [],
            message.timestamp()[1],
        )
        if message.offset() + 1 >= ends[partition][1]:
            del ends[partition]
    consumer.close()


def group(bootstrap, topic, name, assignor, instance_id):
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "partition.assignment.strategy": assignor,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",
        "session.timeout.ms": SESSION_TIMEOUT,
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL,
        "max.poll.interval.ms": REBALANCE_TIMEOUT,
    }
    processed = Processed()

    def answered(error, partitions):
        offsets = {partition.partition: partition.offset for partition in partitions}
        error = error or next((partition.error for partition in partitions if partition.error), None)
        if error is None:
            processed.committed(offsets)
        else:
            processed.refused(offsets, error)

    # The answer to a commit comes on the connection on which a rebalance is waited for: to wait for it would
    # keep a cooperative member from reading.
    settings["on_commit"] = answered
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    consumer = Consumer(settings)

    def commit(offsets, asynchronous=True):
        if not offsets:
            return
        partitions = [TopicPartition(topic, *pair) for pair in offsets.items()]
        try:
            results = consumer.commit(offsets=partitions, asynchronous=asynchronous)
        except KafkaException as error:
            processed.refused(offsets, error)
        else:
            if not asynchronous:
                answered(None, results)

    def assigned(_consumer, partitions):
        processed.assigned([partition.partition for partition in partitions])

    def revoked(_consumer, partitions):
        commit(processed.all_to_commit(), asynchronous=False)
        processed.revoked([partition.partition for partition in partitions])

    def lost(_consumer, partitions):
        processed.revoked([partition.partition for partition in partitions], "lost")

    ends = Input()
    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    while not ends.ended():
        # The callbacks run inside poll, so a record is printed before the next one is asked for.
        for polled in range(POLL_RECORDS):
            message = consumer.poll(0 if polled else POLL / 1000)
            if message is None:
                break
            if message.error() is None:
                processed.record(message.partition(), message.offset(), message.value())
            elif message.error().fatal():
                raise KafkaException(message.error())
        commit(processed.to_commit())
    # What was processed is committed in `revoked`.
    consumer.close()
    tell("closed")
