"""Produce: what is taken, what is refused, and with which words."""

import struct
import time


from batch import batch, record, zigzag
from codec import varint
from peer import Closed, fetch, fetch_partition, list_offsets, produce, versions

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def stored(peer, label, name, partition=0):
    """Notes everything that the partition holds."""
    peer.ask(label, "Fetch", 11, fetch(name, fetch_partition(0, partition)))


def case_produce_versions(peer):
    name = peer.topic("plain", 2)
    for version in versions("Produce"):
        for acks in (1, -1):
            peer.ask(
                f"acks {acks}", "Produce", version, produce(name, batch(3, base_time=peer.start), acks=acks)
            )
        for acks in (2, -2, 32767, -32768):
            peer.ask(
                f"acks {acks}", "Produce", version, produce(name, batch(base_time=peer.start), acks=acks)
            )
            peer.ask(f"acks {acks} no topics", "Produce", version, {"Acks": acks, "TimeoutMs": 1000})
        peer.ask("unknown topic", "Produce", version, produce(peer.name_of("none"), batch()))
        peer.ask("unknown partition", "Produce", version, produce(name, batch(), partition=2))
        peer.ask("negative partition", "Produce", version, produce(name, batch(), partition=-1))
        peer.ask("bad name", "Produce", version, produce("a b", batch()))
        peer.ask("empty name", "Produce", version, produce("", batch()))
        peer.ask("internal topic", "Produce", version, produce("__consumer_offsets", batch()))
        peer.ask("no topics", "Produce", version, {"Acks": -1, "TimeoutMs": 1000})
        peer.ask(
            "no partitions",
            "Produce",
            version,
            {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": name, "PartitionData": []}]},
        )
        peer.ask(
            "good and bad partitions",
            "Produce",
            version,
            {
                "Acks": -1,
                "TimeoutMs": 1000,
                "TopicData": [
                    {
                        "Name": name,
                        "PartitionData": [
                            {"Index": 9, "Records": batch(base_time=peer.start)},
                            {"Index": 1, "Records": batch(base_time=peer.start)},
                            {"Index": 0, "Records": batch(base_time=peer.start, crc=1)},
                        ],
                    }
                ],
            },
        )
        peer.ask(
            "timeout 0", "Produce", version, {**produce(name, batch(base_time=peer.start)), "TimeoutMs": 0}
        )
        peer.ask(
            "timeout -1", "Produce", version, {**produce(name, batch(base_time=peer.start)), "TimeoutMs": -1}
        )
    stored(peer, "stored", name)
    stored(peer, "stored", name, 1)


def case_produce_twice_in_a_request(peer):
    for version in versions("Produce"):
        name = peer.topic(f"v{version}", 2)
        one, two = (batch([record(value=value)], base_time=peer.start) for value in (b"one", b"two"))
        for label, topics in (
            ("partition", [[(0, one), (0, two)]]),
            ("topic", [[(0, one)], [(1, two)]]),
            ("topic and partition", [[(0, one)], [(0, two)]]),
        ):
            values = peer.call(
                "Produce",
                version,
                {
                    "Acks": -1,
                    "TimeoutMs": 1000,
                    "TopicData": [
                        {
                            "Name": name,
                            "PartitionData": [{"Index": index, "Records": raw} for index, raw in partitions],
                        }
                        for partitions in topics
                    ],
                },
            )
            peer.note(
                f"{label} twice v{version}",
                sorted(
                    (row["Index"], row["ErrorCode"])
                    for topic in values["Responses"]
                    for row in topic["PartitionResponses"]
                ),
            )


#: What the gateway refuses and Kafka stores: nobody could read some of it rightly.
STRICT = (
    "a byte more",
    "batch and half a batch",
    "append time",
    "delete horizon",
    "records from delta 1",
    "delta twice",
    "deltas backwards",
    "delta -1",
    "id without epoch",
    "id -2",
)


def case_produce_faults(peer):
    good = batch(2, base_time=peer.start)
    t = {"base_time": peer.start}
    long_varint = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    plain = record()
    faults = {
        "wrong crc": batch(2, crc=1),
        "cut by a byte": good[:-1],
        "cut in the header": good[:40],
        "cut after the length": good[:12],
        "eleven bytes": good[:11],
        "one byte": b"\0",
        "no bytes": b"",
        "a byte more": good + b"\0",
        "many bytes more": good + bytes(70),
        "two batches": good + good,
        "batch and half a batch": good + good[:-10],
        "length 0": batch(2, length=0),
        "length negative": batch(2, length=-1),
        "length small": batch(2, length=48),
        "length 13": batch(2, length=13),
        "length huge": batch(2, length=0x7FFFFFFF),
        "length less by one": batch(2, length=len(good) - 13),
        "length more by one": batch(2, length=len(good) - 11),
        "magic 0": batch(2, magic=0),
        "magic 1": batch(2, magic=1),
        "magic 3": batch(2, magic=3),
        "magic -1": batch(2, magic=-1),
        "count 0": batch(2, count=0),
        "count less": batch(2, count=1),
        "count more": batch(2, count=3),
        "count negative": batch(2, count=-1),
        "count huge": batch(2, count=0x7FFFFFFF),
        "last delta less": batch(2, last_delta=0),
        "last delta more": batch(2, last_delta=5),
        "last delta negative": batch(2, last_delta=-1),
        "count and delta more": batch(2, count=3, last_delta=2),
        "count and delta less": batch(3, count=2, last_delta=1),
        "no records": batch([], count=0, last_delta=0),
        "no records, delta -1": batch([], count=0, last_delta=-1),
        "control": batch(1, attributes=0x20),
        "control and transactional": batch(1, attributes=0x30),
        "control record": batch(
            [record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")], attributes=0x20, pid=1, pid_epoch=0, sequence=-1
        ),
        "transactional": batch(1, attributes=0x10),
        "transactional with id": batch(1, attributes=0x10, pid=1, pid_epoch=0, sequence=0),
        "codec 5": batch(1, attributes=5),
        "codec 6": batch(1, attributes=6),
        "codec 7": batch(1, attributes=7),
        "gzip of garbage": batch(1, attributes=1),
        "snappy of garbage": batch(1, attributes=2),
        "lz4 of garbage": batch(1, attributes=3),
        "zstd of garbage": batch(1, attributes=4),
        "append time": batch(1, attributes=8),
        "delete horizon": batch(1, attributes=0x40),
        "unused bit 7": batch(1, attributes=0x80),
        "unused bit 15": batch(1, attributes=-0x8000),
        "base offset 7": batch(2, base_offset=7, **t),
        "base offset -1": batch(2, base_offset=-1, **t),
        "epoch 5": batch(2, epoch=5, **t),
        "record attributes": batch([record(attributes=0x7F)], **t),
        "records from delta 1": batch([record(1)], last_delta=0),
        "delta twice": batch([record(0), record(0)]),
        "deltas backwards": batch([record(1), record(0)]),
        "delta gap": batch([record(0), record(2)], last_delta=2, count=2),
        "delta -1": batch([record(-1)]),
        "record length more": batch([b"\x80\x01" + plain[1:]]),
        "record length less": batch([bytes([plain[0] - 2]) + plain[1:]]),
        "record length 0": batch([b"\0"]),
        "record length -1": batch([b"\x01" + plain[1:]]),
        "record length too long": batch([long_varint + plain[1:]]),
        "bytes after the records": batch([plain + b"\0\0\0"]),
        "key length -2": batch([zigzag(7) + b"\0\0\0" + zigzag(-2) + b"\x01" + b"\0" + b"\0"]),
        "header count -1": batch([zigzag(7) + b"\0\0\0\0\0" + zigzag(-1) + b"\0"]),
        "header count huge": batch([zigzag(11) + b"\0\0\0\0\0" + zigzag(0x7FFFFFFF) + b"\0"]),
        "header key null": batch([zigzag(8) + b"\0\0\0\0\0" + zigzag(1) + zigzag(-1) + b"\0"]),
        "header value null": batch([record(headers=[(b"h", None)])], **t),
        "header key empty": batch([record(headers=[(b"", b"")])], **t),
        "header twice": batch([record(headers=[(b"a", b"1"), (b"a", b"2")])], **t),
        "header key no text": batch([record(headers=[(b"\xff\x00", b"\0")])], **t),
        "null key and value": batch([record(key=None, value=None)], **t),
        "empty key and value": batch([record(key=b"", value=b"")], **t),
        "sequence without id": batch(1, sequence=5),
        "id without sequence": batch(1, pid=5, pid_epoch=0, sequence=-1),
        "id without epoch": batch(1, pid=5, pid_epoch=-1, sequence=0),
        "sequence -2": batch(1, pid=5, pid_epoch=0, sequence=-2),
        "id -2": batch(1, pid=-2, pid_epoch=0, sequence=0),
        "max time wrong": batch(1, base_time=peer.start, max_time=peer.start + 5),
        "max time -1": batch(1, base_time=peer.start, max_time=-1),
        "gzip": batch(2, compress="gzip", **t),
        "gzip cut": batch(2, compress=lambda raw: __import__("gzip").compress(raw)[:-9], attributes=1),
        "gzip twice": batch(
            2,
            compress=lambda raw: __import__("gzip").compress(raw) + __import__("gzip").compress(raw),
            attributes=1,
        ),
        "gzip and bytes more": batch(
            2, compress=lambda raw: __import__("gzip").compress(raw + b"\0\0"), attributes=1
        ),
        "gzip of no records": batch([], count=0, last_delta=0, compress="gzip"),
        "gzip with delta gap": batch([record(0), record(2)], last_delta=2, count=2, compress="gzip"),
        "gzip with base offset 7": batch(2, base_offset=7, compress="gzip", **t),
    }
    for label, records in faults.items():
        # A topic each: what one server takes and the other does not must not shift the offsets of all.
        name = peer.topic(label.replace(" ", "-").replace(",", ""))
        for version in (3, 8, 11):
            values = peer.call("Produce", version, produce(name, records))
            peer.note(f"{label} v{version}", values["Responses"][0]["PartitionResponses"][0]["ErrorCode"])
        if label not in STRICT and values["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0:
            stored(peer, f"stored of {label}", name)


def case_produce_too_large(peer):
    default, small = peer.topic("default"), peer.topic("small", max_message_bytes="300")
    zero = peer.topic("zero", max_message_bytes="0")
    for version in (3, 8, 11):

        def of_size(size):
            empty = len(batch([record(value=b"")], base_time=peer.start))
            for value in range(size - empty - 8, size):
                raw = batch([record(value=b"x" * value)], base_time=peer.start)
                if len(raw) == size:
                    return raw
            raise AssertionError(size)

        for size in (1048588, 1048589):
            peer.ask(f"default {size}", "Produce", version, produce(default, of_size(size)))
        for size in (300, 301, 312, 313):
            peer.ask(f"small {size}", "Produce", version, produce(small, of_size(size)))
        peer.ask("zero", "Produce", version, produce(zero, batch(base_time=peer.start)))
        peer.ask(
            "squeezed",
            "Produce",
            version,
            produce(small, batch([record(value=bytes(1000))], base_time=peer.start, compress="gzip")),
        )


def case_produce_times(peer):
    plain = peer.topic("plain")
    append = peer.topic("append", message_timestamp_type="LogAppendTime")
    tight = peer.topic(
        "tight", message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000"
    )
    tight_append = peer.topic(
        "tight-append",
        message_timestamp_type="LogAppendTime",
        message_timestamp_before_max_ms="60000",
        message_timestamp_after_max_ms="60000",
    )
    times = {
        "now": peer.start,
        "-1": -1,
        "0": 0,
        "-2": -2,
        "1": 1,
        "max": 2**63 - 1,
        "min": -(2**63),
        "in two hours": peer.start + 2 * HOUR,
        "in 59 minutes": peer.start + 59 * MINUTE,
        "in 10 years": peer.start + 3650 * DAY,
        "10 minutes ago": peer.start - 10 * MINUTE,
    }
    for topic, name in (
        ("plain", plain),
        ("append", append),
        ("tight", tight),
        ("tight append", tight_append),
    ):
        for label, stamp in times.items():
            for version in (3, 8, 11):
                peer.ask(f"{topic} {label}", "Produce", version, produce(name, batch(2, base_time=stamp)))
        for version in (3, 8, 11):
            peer.ask(
                f"{topic} one of three too late",
                "Produce",
                version,
                produce(
                    name,
                    batch(
                        [record(0), record(1, 3 * HOUR), record(2, 4 * HOUR)],
                        base_time=peer.start,
                        max_time=peer.start + 4 * HOUR,
                    ),
                ),
            )
            peer.ask(
                f"{topic} times backwards",
                "Produce",
                version,
                produce(
                    name,
                    batch(
                        [record(0), record(1, -1000), record(2, 7)],
                        base_time=peer.start,
                        max_time=peer.start + 7,
                    ),
                ),
            )
            peer.ask(
                f"{topic} delta beyond",
                "Produce",
                version,
                produce(name, batch([record(0), record(1, 2**62)], base_time=2**62, max_time=2**62)),
            )
        values = peer.call("Fetch", 11, fetch(name))
        peer.note(f"stored in {topic}", values)
        from batch import parse

        raw = values["Responses"][0]["Partitions"][0]["Records"]
        peer.note(f"time types in {topic}", sorted({b["attributes"] & 8 for b in parse(raw)}))


def case_produce_compacted(peer):
    for policy in ("compact", "compact,delete"):
        name = peer.topic(policy.replace(",", "-"), cleanup_policy=policy)
        for version in versions("Produce"):
            for label, records in (
                ("null key", [record(key=None)]),
                ("second and fourth", [record(0), record(1, key=None), record(2), record(3, key=None)]),
                ("tombstone", [record(value=None)]),
                ("empty key", [record(key=b"")]),
            ):
                peer.ask(
                    f"{policy} {label}",
                    "Produce",
                    version,
                    produce(name, batch(records, base_time=peer.start)),
                )
        peer.ask(
            "gzip",
            "Produce",
            9,
            produce(name, batch([record(0), record(1, key=None)], base_time=peer.start, compress="gzip")),
        )
        stored(peer, "stored", name)


def zstd(raw):
    """One frame with one raw block: what a decoder must take, and no library needed."""
    return struct.pack("<IBB", 0xFD2FB528, 0x00, 0x58) + struct.pack("<I", len(raw) << 3 | 1)[:3] + raw


def case_produce_codecs(peer):
    name = peer.topic("codecs")
    for version in versions("Produce"):
        payload = batch(
            [record(0, value=b"x"), record(1, value=b"y")], base_time=peer.start, attributes=4, compress=zstd
        )
        peer.ask("zstd", "Produce", version, produce(name, payload))
        peer.ask("gzip", "Produce", version, produce(name, batch(2, base_time=peer.start, compress="gzip")))
        raw = lambda r: varint(len(r)) + bytes([(len(r) - 1) << 2]) + r if len(r) <= 60 else None
        peer.ask(
            "snappy",
            "Produce",
            version,
            produce(name, batch(2, base_time=peer.start, attributes=2, compress=raw)),
        )
        xerial = lambda r: b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(raw(r))) + raw(r)
        peer.ask(
            "xerial snappy",
            "Produce",
            version,
            produce(name, batch(2, base_time=peer.start, attributes=2, compress=xerial)),
        )
    peer.ask("end", "ListOffsets", 5, list_offsets(name, -1))


def case_produce_transactional(peer):
    name = peer.topic("transactional")
    pid, epoch = peer.producer_id()
    for version in versions("Produce"):
        for label, identity in (("an id", "t"), ("an empty id", "")):
            values = peer.call(
                "Produce", version, produce(name, batch(1, base_time=peer.start), transactional_id=identity)
            )
            peer.note(
                f"{label} of no transaction v{version}",
                values["Responses"][0]["PartitionResponses"][0]["ErrorCode"],
            )
        peer.ask(
            "batch without id",
            "Produce",
            version,
            produce(
                name, batch(1, base_time=peer.start, attributes=0x10, pid=pid, pid_epoch=epoch, sequence=0)
            ),
        )


def case_sequences(peer):
    name = peer.topic("sequences", 2)
    top = 2**31 - 1
    for version in (3, 7, 9, 11):
        pid, epoch = peer.producer_id()
        step = 0

        def send(label, sequence, records=1, epoch=epoch, partition=0, pid=pid, **more):
            nonlocal step
            step += 1
            peer.ask(
                f"{step} {label}",
                "Produce",
                version,
                produce(
                    name,
                    batch(records, base_time=peer.start, pid=pid, pid_epoch=epoch, sequence=sequence, **more),
                    partition,
                ),
            )

        send("first", 0, 2)
        send("next", 2, 3)
        send("repeat of the last", 2, 3)
        send("repeat of the first", 0, 2)
        send("repeat of a part", 2, 2)
        send("repeat of both", 0, 5)
        send("repeat with more", 2, 4)
        send("gap", 6)
        send("after the gap", 5)
        for sequence in range(6, 12):
            send("more", sequence)
        send("repeat of the fifth last", 7)
        send("repeat of the sixth last", 6)
        send("long ago", 0, 2)
        send("negative", -1)
        send("minimal", -(2**31))
        send("other partition from 5", 5, partition=1)
        send("other partition next", 6, partition=1)
        send("other partition gap", 8, partition=1)
        send("new epoch not from 0", 12, epoch=1)
        send("new epoch", 0, epoch=1)
        send("old epoch", 12)
        send("repeat of old epoch", 11)
        send("new epoch repeat", 0, epoch=1)
        send("new epoch next", 1, epoch=1)
        send("epoch far", 0, epoch=32767)
        send("epoch less by one", 0, epoch=32766)
        send("epoch -1", 0, epoch=-1)
        send("control", 1, epoch=32767, attributes=0x20)
        pid, epoch = peer.producer_id()
        send("near the top", top - 1, 2, pid=pid)
        send("wrapped", 0, pid=pid)
        send("repeat near the top", top - 1, 2, pid=pid)
        send("wrapped next", 1, pid=pid)
        pid, epoch = peer.producer_id()
        send("across the top", top - 1, 4, pid=pid)
        send("after across", 2, pid=pid)
        send("repeat across", top - 1, 4, pid=pid)
        send("unknown id", 4, pid=2**40 + version)
        send("unknown id next", 5, pid=2**40 + version)
        send("unknown id epoch", 9, pid=2**40 + version, epoch=3)
        send("unknown id, epoch 4 of its first", 9, pid=2**41 + version, epoch=4)
        send("unknown id, epoch 4 next", 10, pid=2**41 + version, epoch=4)
        send("unknown id, epoch 5 from 1", 1, pid=2**41 + version, epoch=5)
        pid, epoch = peer.producer_id()
        peer.ask(
            "in one request",
            "Produce",
            version,
            {
                "Acks": -1,
                "TimeoutMs": 1000,
                "TopicData": [
                    {
                        "Name": name,
                        "PartitionData": [
                            {
                                "Index": 0,
                                "Records": batch(base_time=peer.start, pid=pid, pid_epoch=0, sequence=0),
                            },
                            {
                                "Index": 1,
                                "Records": batch(base_time=peer.start, pid=pid, pid_epoch=0, sequence=0),
                            },
                        ],
                    }
                ],
            },
        )
        peer.ask(
            "wrong crc",
            "Produce",
            version,
            produce(name, batch(base_time=peer.start, pid=pid, pid_epoch=0, sequence=1, crc=3)),
        )
        peer.ask(
            "after a refusal",
            "Produce",
            version,
            produce(name, batch(base_time=peer.start, pid=pid, pid_epoch=0, sequence=1)),
        )
        peer.ask(
            "too late",
            "Produce",
            version,
            produce(name, batch(base_time=peer.start + 3 * HOUR, pid=pid, pid_epoch=0, sequence=2)),
        )
        peer.ask(
            "after too late",
            "Produce",
            version,
            produce(name, batch(base_time=peer.start, pid=pid, pid_epoch=0, sequence=2)),
        )
    stored(peer, "stored", name)
    stored(peer, "stored", name, 1)


def case_sequences_repeat_of_another_kind(peer):
    name = peer.topic("kinds", message_timestamp_type="LogAppendTime")
    pid, epoch = peer.producer_id()
    body = produce(name, batch(2, base_time=peer.start, pid=pid, pid_epoch=epoch, sequence=0))
    first = peer.call("Produce", 9, body)["Responses"][0]["PartitionResponses"][0]
    again = peer.call("Produce", 9, body)["Responses"][0]["PartitionResponses"][0]
    peer.note("the same append time", first["LogAppendTimeMs"] == again["LogAppendTimeMs"])
    peer.note("first", first)
    peer.note("again", again)


def case_acks_0(peer):
    name = peer.topic("unacked")
    for version in versions("Produce"):
        with peer.connect() as connection:
            for sequence in range(3):
                connection.request("Produce", version, produce(name, batch(base_time=peer.start), acks=0))
            peer.note(
                f"a question after it v{version}",
                connection.call("Metadata", 4, {"Topics": [{"Name": name}]}),
            )
        for label, body in (
            ("unknown topic", produce(peer.name_of("none"), batch(), acks=0)),
            ("wrong crc", produce(name, batch(crc=1), acks=0)),
            ("no topics", {"Acks": 0, "TimeoutMs": 100}),
            ("two batches", produce(name, batch() + batch(), acks=0)),
            ("zstd", produce(name, batch(base_time=peer.start, attributes=4, compress=zstd), acks=0)),
            (
                "transactional",
                produce(
                    name, batch(base_time=peer.start, attributes=0x10, pid=4, pid_epoch=0, sequence=0), acks=0
                ),
            ),
        ):
            with peer.connect() as connection:
                connection.request("Produce", version, body)
                try:
                    connection.request("Metadata", 4, {"Topics": []})
                    connection.answer("Metadata", 4)
                    peer.note(f"{label} v{version}", "goes on")
                except (Closed, OSError):
                    peer.note(f"{label} v{version}", "closed")
    for _ in range(100):
        end = peer.call("ListOffsets", 5, list_offsets(name, -1))["Topics"][0]["Partitions"][0]["Offset"]
        if end >= 27:
            break
        time.sleep(0.05)
    peer.note("end", end)
