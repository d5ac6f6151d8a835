"""pgQueue's client alone: what it does on its own tables it must do on the gateway's."""

import time
from datetime import timedelta

from harness import test
from sides import Queue

HEADERS = (("one", b"1"), ("twice", b"a"), ("twice", b"\x00\xff"), ("empty", b""))
#: pgQueue picks the partition by the CRC32 of the key: of these, with two partitions, each has some.
KEYS = [f"urn:li:dataset:{i}" for i in range(20)]


@test(kafka=False)
def what_is_enqueued_is_received(context):
    topic = context.topic("alone")
    with Queue(context) as queue:
        handle = queue.enqueue(topic, "ключ", b"\x00payload\xff", HEADERS)
        assert handle.enqueue_seq == 1, handle
        (message,) = queue.receive(topic, "group")
        assert message.key == "ключ" and message.payload == b"\x00payload\xff", message
        assert message.headers == HEADERS and message.content_type == "application/avro", message
        assert message.handle == handle, (message.handle, handle)
        assert queue.commit("group", [message]) == 1
        assert queue.offset(topic, "group", message.partition) == 1
        assert queue.receive(topic, "group") == []
        assert [m.seq for m in queue.receive(topic, "another group")] == [1]


@test(kafka=False)
def a_batch_is_gapless_in_each_partition(context):
    topic = context.topic("batch")
    with Queue(context) as queue:
        handles = queue.enqueue_batch(topic, [(key, key.encode(), ()) for key in KEYS])
        seqs = {}
        for handle in handles:
            seqs.setdefault(handle.partition_id, []).append(handle.enqueue_seq)
        assert len(seqs) == 2, seqs
        for partition, of_partition in seqs.items():
            assert of_partition == list(range(1, len(of_partition) + 1)), (partition, of_partition)
        assert len(queue.drain(topic, "group")) == len(KEYS)


@test(kafka=False)
def snappy_payloads(context):
    topic = context.topic("snappy")
    payload = b"compressible " * 10_000
    with Queue(context) as queue:
        queue.enqueue(topic, "key", payload, snappy=True)
        (message,) = queue.drain(topic, "group")
        assert message.payload == payload


@test(kafka=False)
def another_content_type(context):
    topic = context.topic("mime")
    with Queue(context) as queue:
        queue.enqueue(topic, "key", b"{}", content_type="application/json")
        assert [m.content_type for m in queue.drain(topic, "group")] == ["application/json"]


@test(kafka=False)
def urgent_messages_first_and_each_priority_in_order(context):
    topic = context.topic("priority")
    with Queue(context, partitions=1) as queue:
        for i in range(30):
            queue.enqueue(topic, "key", b"%d" % i, priority=(5, 0, 9)[i % 3])
        messages = queue.receive(topic, "group", most=30)
        assert [m.priority for m in messages] == [0] * 10 + [5] * 10 + [9] * 10, messages
        assert [m.seq for m in messages] == [*range(2, 31, 3), *range(1, 31, 3), *range(3, 31, 3)]
        # The offset only moves over what is acknowledged without a gap.
        queue.commit("group", messages[:10])
        assert queue.offset(topic, "group", 0) == 0
        queue.commit("group", messages[10:])
        assert queue.offset(topic, "group", 0) == 30


@test(kafka=False)
def the_head_of_the_line_stops_other_workers_until_its_lease_ends(context):
    topic = context.topic("lease")
    with Queue(context, partitions=1) as first, Queue(context, partitions=1) as second:
        for i in range(3):
            first.enqueue(topic, "key", b"%d" % i)
        (head,) = first.receive(topic, "group", most=1, owner="group:first", visible_after=1.5)
        assert second.receive(topic, "group") == []
        extended = first.repository.extend_visibility_for_group(
            first.connection, "group", [head.handle], lock_owner="group:first", extend_by=timedelta(seconds=2)
        )
        assert extended == 1
        time.sleep(2.5)
        assert [m.seq for m in second.receive(topic, "group")] == [1, 2, 3]


@test(kafka=False)
def registration_and_skew(context):
    topic = context.topic("registered")
    with Queue(context) as queue:
        topic_id = queue.make_topic(topic)
        for _ in range(2):
            queue.repository.register_consumer(queue.connection, "group", topic_id)
        registered = context.rows(
            "select consumer_group from {}_consumer_registration where topic_id = %s", topic_id
        )
        assert registered == [("group",)], registered
        assert queue.repository.detect_offset_ahead_of_log(queue.connection, "group", topic_id, 2) == []


@test(kafka=False)
def the_partition_count_never_shrinks(context):
    topic = context.topic("growing")
    for asked, expected in ((3, 3), (5, 5), (2, 5)):
        with Queue(context, partitions=asked) as queue:
            queue.make_topic(topic)
            assert queue.repository.fetch_topic_row(queue.connection, topic)[1] == expected
