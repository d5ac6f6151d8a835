"""Fetch, ListOffsets, OffsetForLeaderEpoch."""

import time

from batch import batch, parse, record
from peer import fetch, fetch_partition, list_offsets, versions


def filled(peer, suffix, count=6, partitions=1, size=20):
    """A topic whose partition 0 holds `count` batches of one record."""
    name = peer.topic(suffix, partitions)
    for index in range(count):
        for partition in range(partitions):
            peer.produce(
                name,
                batch(
                    [record(value=b"%d.%d " % (partition, index) + b"x" * size)], base_time=peer.start + index
                ),
                partition,
            )
    return name


def case_fetch(peer):
    name = filled(peer, "filled", 6, 3)
    empty = peer.topic("empty", 2)
    for version in versions("Fetch"):

        def ask(label, body):
            peer.ask(label, "Fetch", version, body)

        for offset in (0, 3, 5, 6, 7, -1, -2, 2**62):
            ask(f"offset {offset}", fetch(name, fetch_partition(offset)))
        ask("empty", fetch(empty))
        ask("empty beyond", fetch(empty, fetch_partition(1)))
        ask("unknown partition", fetch(name, fetch_partition(partition=3)))
        ask("negative partition", fetch(name, fetch_partition(partition=-1)))
        ask("unknown topic", fetch(peer.name_of("none")))
        ask("empty name", fetch(""))
        ask("bad name", fetch("a b"))
        ask("no topics", {**fetch(name), "Topics": []})
        ask("no partitions", {**fetch(name), "Topics": [{"Topic": name, "Partitions": []}]})
        ask("backwards", fetch(name, *(fetch_partition(partition=p) for p in (2, 0, 1))))
        ask(
            "good and bad",
            fetch(name, fetch_partition(99), fetch_partition(partition=7), fetch_partition(partition=2)),
        )
        two = fetch(name)
        two["Topics"] += fetch(empty)["Topics"]
        ask("two topics", two)
        for isolation in (0, 1, 2, -1):
            ask(f"isolation {isolation}", fetch(name, isolation=isolation))
        ask("replica 1", {**fetch(name), "ReplicaId": 1} if version < 15 else fetch(name))
        ask("replica -2", {**fetch(name), "ReplicaId": -2})
        ask("wait -1", fetch(empty, wait=-1, least=1))
        ask("error does not wait", fetch(name, fetch_partition(99), wait=5000, least=10**6))
        if version >= 9:
            for epoch in (-1, 0, 5, -2, 2**31 - 1):
                ask(f"leader epoch {epoch}", fetch(name, fetch_partition(epoch=epoch)))
                ask(f"leader epoch {epoch} at end", fetch(name, fetch_partition(6, epoch=epoch)))
        if version >= 12:
            for epoch in (-1, 0, 5, -2):
                for offset in (0, 6, 7):
                    ask(
                        f"last epoch {epoch} at {offset}",
                        fetch(name, fetch_partition(offset, last_epoch=epoch)),
                    )


def case_fetch_sizes(peer):
    name = filled(peer, "sizes", 6, 2, 1000)
    for version in versions("Fetch"):
        for most in (0, 1, 1000, 1100, 2500, 5000, 2**31 - 1):
            for partition_most in (0, 1, 1100, 2500, 2**31 - 1):
                values = peer.call(
                    "Fetch",
                    version,
                    fetch(
                        name,
                        fetch_partition(most=partition_most),
                        fetch_partition(partition=1, most=partition_most),
                        most=most,
                    ),
                )
                rows = values["Responses"][0]["Partitions"] if values["Responses"] else []
                peer.note(
                    f"most {most} of partition {partition_most} v{version}",
                    [
                        (
                            row["PartitionIndex"],
                            row["ErrorCode"],
                            bool(row["Records"]) and len(parse(row["Records"])) > 0,
                        )
                        for row in rows
                    ],
                )
                for row in rows:
                    # The size itself depends on the batches, which may differ: only that it is kept.
                    size = len(row["Records"] or b"")
                    limit = max(min(most, partition_most), 1200)
                    peer.note(
                        f"most {most} of partition {partition_most} partition {row['PartitionIndex']} within v{version}",
                        size <= limit or size,
                    )


def timed(peer, label, version, body, bounds):
    began = time.monotonic()
    peer.ask(label, "Fetch", version, body)
    took = (time.monotonic() - began) * 1000
    low, high = bounds
    peer.note(f"{label} took between {low} and {high} ms v{version}", low <= took <= high or took)


def case_fetch_waits(peer):
    name = filled(peer, "waits")
    for version in (4, 7, 11, 12):
        at_end = fetch_partition(6)
        timed(peer, "nothing to read", version, fetch(name, at_end, wait=300, least=1), (290, 700))
        timed(peer, "at least 0", version, fetch(name, at_end, wait=3000, least=0), (0, 250))
        timed(peer, "at least -1", version, fetch(name, at_end, wait=3000, least=-1), (0, 250))
        timed(peer, "enough", version, fetch(name, wait=3000, least=10), (0, 250))
        timed(peer, "not enough", version, fetch(name, wait=300, least=10**6), (290, 700))
        timed(peer, "more than most", version, fetch(name, wait=400, least=10**6, most=300), (0, 700))
        timed(
            peer,
            "partition limit below least",
            version,
            fetch(name, fetch_partition(most=100), wait=400, least=5000),
            (0, 700),
        )
        timed(peer, "out of range", version, fetch(name, fetch_partition(77), wait=3000, least=1), (0, 250))
        timed(
            peer,
            "unknown partition",
            version,
            fetch(name, at_end, fetch_partition(partition=5), wait=3000, least=1),
            (0, 250),
        )
        timed(peer, "unknown topic", version, fetch(peer.name_of("none"), wait=3000, least=1), (0, 250))
        timed(peer, "no topics", version, {**fetch(name, wait=3000, least=1), "Topics": []}, (0, 250))
    woken = peer.topic("woken", 2)
    for version in (4, 12):
        for least in (1, 400):
            start = peer.call("ListOffsets", 4, list_offsets(woken, -1))["Topics"][0]["Partitions"][0][
                "Offset"
            ]
            with peer.connect() as waiting:
                waiting.request(
                    "Fetch",
                    version,
                    fetch(
                        woken, fetch_partition(start), fetch_partition(partition=1), wait=4000, least=least
                    ),
                )
                began = time.monotonic()
                time.sleep(0.3)
                peer.produce(woken, batch([record(value=b"w" * 50)], base_time=peer.start))
                if least == 400:
                    time.sleep(0.3)
                    peer.produce(woken, batch([record(value=b"w" * 400)], base_time=peer.start))
                _, values = waiting.answer("Fetch", version)
                took = (time.monotonic() - began) * 1000
                peer.note(f"woken at {least} v{version}", values)
                peer.note(f"woken at {least} in time v{version}", 290 < took < 1500 or took)


def case_fetch_deleted_while_parked(peer):
    name = peer.topic("deleted")
    with peer.connect() as waiting:
        waiting.request("Fetch", 11, fetch(name, wait=3000, least=1))
        time.sleep(0.3)
        began = time.monotonic()
        peer.call("DeleteTopics", 5, {"TopicNames": [name], "TimeoutMs": 5000})
        _, values = waiting.answer("Fetch", 11)
        peer.note("answered", values)
        peer.note("soon", time.monotonic() - began < 1.5)


def case_fetch_sessions(peer):
    name = filled(peer, "sessions", 2, 2)
    for version in range(7, 13):

        def ask(label, session, epoch, **more):
            body = fetch(name, session=session, session_epoch=epoch)
            body.update(more)
            values = peer.call("Fetch", version, body)
            values["SessionId"] = values["SessionId"] != 0
            peer.note(f"{label} v{version}", values)

        ask("none", 0, -1)
        ask("new", 0, 0)
        ask("unknown", 5, 1)
        ask("unknown close", 5, -1)
        ask("epoch without id", 0, 1)
        ask("negative id", -1, 1)
        ask("minimal epoch", 0, -(2**31))
        ask("epoch 0 of an unknown", 5, 0)
        ask("forgotten", 0, 0, ForgottenTopicsData=[{"Topic": name, "Partitions": [0]}])


def case_list_offsets(peer):
    name = filled(peer, "offsets", 6, 2)
    empty = peer.topic("empty")
    append = peer.topic("append", message_timestamp_type="LogAppendTime")
    peer.produce(append, batch(3, base_time=1000))
    for version in versions("ListOffsets"):

        def ask(label, *args, **more):
            peer.ask(label, "ListOffsets", version, list_offsets(*args, **more))

        stamps = [-1, -2, -3, -4, -5, -6, -7, -100, 0, 1, 2**63 - 1, -(2**63)]
        for stamp in stamps:
            ask(f"time {stamp}", name, stamp)
            ask(f"empty time {stamp}", empty, stamp)
        for delta in (-1, 0, 1, 5, 6):
            ask(f"time of record {delta}", name, peer.start + delta)
        values = peer.call("ListOffsets", version, list_offsets(append, 2000))["Topics"][0]["Partitions"][0]
        peer.note(
            f"append before v{version}",
            (values["ErrorCode"], values["Offset"], values["Timestamp"] > peer.start),
        )
        for isolation in (0, 1, 2):
            ask(f"isolation {isolation}", name, -1, isolation=isolation)
            ask(f"isolation {isolation} earliest", name, -2, isolation=isolation)
        ask("unknown topic", peer.name_of("none"), -1)
        ask("bad name", "a b", -1)
        ask("unknown partition", name, -1, partition=5)
        ask("negative partition", name, -1, partition=-1)
        if version >= 4:
            for epoch in (-1, 0, 1, 5, -2):
                ask(f"epoch {epoch}", name, -1, epoch=epoch)
                ask(f"epoch {epoch} by time", name, 0, epoch=epoch)
                ask(f"epoch {epoch} by late time", name, 2**62, epoch=epoch)
        for replica in (-2, 1, -3, 7):
            peer.ask(
                f"replica {replica}", "ListOffsets", version, {**list_offsets(name, -1), "ReplicaId": replica}
            )
        both = list_offsets(name, -1)
        both["Topics"][0]["Partitions"] += list_offsets(name, -2)["Topics"][0]["Partitions"]
        rows = peer.call("ListOffsets", version, both)["Topics"][0]["Partitions"]
        peer.note(f"partition twice v{version}", {row["ErrorCode"] for row in rows})
        both = list_offsets(name, -1, partition=1)
        both["Topics"][0]["Partitions"] += list_offsets(name, -2)["Topics"][0]["Partitions"]
        both["Topics"] += list_offsets(peer.name_of("none"), -1)["Topics"]
        both["Topics"] += list_offsets(empty, -1)["Topics"]
        peer.ask("several", "ListOffsets", version, both)
        peer.ask("none", "ListOffsets", version, {**both, "Topics": []})
    # Times out of order, within a batch and from batch to batch.
    odd = peer.topic("odd")
    for stamps in ((50, 20, 40), (10, 30, 30), (60, 5, 7)):
        peer.produce(
            odd,
            batch(
                [record(i, s - stamps[0]) for i, s in enumerate(stamps)],
                base_time=peer.start + stamps[0],
                max_time=peer.start + max(stamps),
            ),
        )
    for version in (1, 7, 8):
        for stamp in (1, 5, 8, 15, 25, 40, 45, 50, 55, 60, 61):
            peer.ask(f"odd time {stamp}", "ListOffsets", version, list_offsets(odd, peer.start + stamp))
        peer.ask("odd max", "ListOffsets", version, list_offsets(odd, -3))
    none = peer.topic("none-timed")
    peer.produce(none, batch(2, base_time=-1))
    for stamp in (0, -1, -2, -3, 5):
        peer.ask(f"records without time {stamp}", "ListOffsets", 7, list_offsets(none, stamp))
    zero = peer.topic("zero-timed")
    peer.produce(zero, batch(2, base_time=0))
    for stamp in (0, -1, -2, -3, 5):
        peer.ask(f"records of time 0 {stamp}", "ListOffsets", 7, list_offsets(zero, stamp))


def case_offset_for_leader_epoch(peer):
    name = filled(peer, "epochs", 4, 2)
    empty = peer.topic("empty")
    for version in versions("OffsetForLeaderEpoch"):
        for topic in (name, empty, peer.name_of("none"), "a b"):
            for partition in (0, 3):
                for current in (-1, 0, 5, -2):
                    for epoch in (-1, 0, 1, 5, -2):
                        body = {
                            "Topics": [
                                {
                                    "Topic": topic,
                                    "Partitions": [
                                        {
                                            "Partition": partition,
                                            "CurrentLeaderEpoch": current,
                                            "LeaderEpoch": epoch,
                                        }
                                    ],
                                }
                            ]
                        }
                        if version >= 3:
                            body["ReplicaId"] = -1
                        values = peer.call("OffsetForLeaderEpoch", version, body)
                        label = topic.rpartition("-")[2]
                        peer.note(
                            f"{label} partition {partition} current {current} epoch {epoch} v{version}",
                            values,
                        )
        peer.ask("none", "OffsetForLeaderEpoch", version, {"Topics": []})
