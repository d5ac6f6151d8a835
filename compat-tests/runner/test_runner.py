"""The runner must see every kind of difference: `python3 -m unittest runner.test_runner`."""

import contextlib
import io
import json
import unittest

from .capability import beyond, for_group, for_verb
from .client import Failed
from .expected import Mismatch, Topic, line_of
from .generated import LARGEST_VALUE, generate
from .history import Event, History, heard
from .matrix import Tally, produce
from .suites import add_counts

EVERYTHING = {
    "codecs": ["none"], "binary": True, "headers": True, "null_header_values": True, "duplicate_headers": True,
    "null_key": True, "empty_key": True, "null_value": True, "empty_value": True, "timestamps": True,
    "max_value_bytes": LARGEST_VALUE,
}


def lacking(*names):
    capabilities = for_verb({**EVERYTHING, **{name: False for name in names}}, "consume")
    return lambda record: beyond(record, capabilities)


class Sender:
    """A client that cannot send with one of its codecs."""

    name = "sender"

    def __init__(self, broken):
        self.broken, self.sent = broken, []

    def produce(self, _bootstrap, topic, codec, _path):
        if codec == self.broken:
            raise Failed("no")
        self.sent.append((topic, codec))


def read_lines(records):
    offsets = {}
    lines = []
    for record in records:
        offset = offsets.get(record["partition"], 0)
        offsets[record["partition"]] = offset + 1
        lines.append(json.dumps({**json.loads(line_of(record)), "offset": offset}).encode())
    return lines


class Comparison(unittest.TestCase):
    def setUp(self):
        self.records = generate(quick=True)
        self.lines = read_lines(self.records)
        self.topic = Topic("t", None, ["none"], self.records, lacking())

    def changed(self, index, **fields):
        lines = list(self.lines)
        lines[index] = json.dumps({**json.loads(lines[index]), **fields}).encode()
        return lines

    def assert_seen(self, lines, text):
        with self.assertRaisesRegex(Mismatch, text):
            self.topic.check(lines, lacking())

    def test_equal(self):
        self.assertEqual(self.topic.check(self.lines, lacking()), [])

    def test_null_for_empty_and_the_reverse(self):
        for field in ("key", "value"):
            null = next(i for i, r in enumerate(self.records) if r[field] is None)
            empty = next(i for i, r in enumerate(self.records) if r[field] == b"")
            self.assert_seen(self.changed(null, **{field: ""}), f"{field} is b''")
            self.assert_seen(self.changed(empty, **{field: None}), f"{field} is None")

    def test_headers_in_another_order(self):
        index = next(i for i, r in enumerate(self.records) if len(r["headers"]) == 4)
        headers = json.loads(self.lines[index])["headers"]
        self.assert_seen(self.changed(index, headers=sorted(headers)), "headers")

    def test_another_timestamp(self):
        self.assert_seen(self.changed(5, timestamp=3), "timestamp is 3")

    def test_a_lost_a_doubled_and_an_extra_record(self):
        self.assert_seen(self.lines[1:], "offset 1 where 0 was due")
        self.assert_seen(self.lines[:-1], "of .* records")
        self.assert_seen(self.lines[:1] + self.lines, "offset 0 where 1 was due")
        extra = self.changed(0, partition=1, offset=len(self.topic.partitions[1]))
        self.assert_seen(self.lines + extra[:1], "more than the")

    def test_garbage(self):
        self.assert_seen([b"panic: no\n"], "not a record")

    def test_what_the_reader_lacks_is_counted(self):
        lines = [json.dumps({**json.loads(line), "timestamp": 0}).encode() for line in self.lines]
        self.assertEqual(
            self.topic.check(lines, lacking("timestamps")), ["timestamps"] * len(self.records)
        )

    def test_readers_agree_on_timestamps_that_the_sender_cannot_give(self):
        topic = Topic("t", None, ["none"], self.records, lacking("timestamps"))
        topic.check(self.changed(0, timestamp=9), lacking())
        with self.assertRaisesRegex(Mismatch, "another client read 9"):
            topic.check(self.lines, lacking())

    def test_one_codec_after_the_other(self):
        topic = Topic("t", None, ["gzip", "zstd"], self.records, lacking())
        both = read_lines(self.records * 2)
        topic.check(both, lacking())
        for lines in (self.lines, read_lines(self.records * 3), read_lines(sorted(self.records * 2, key=id))):
            with self.assertRaises(Mismatch):
                topic.check(lines, lacking())
        changed = json.dumps({**json.loads(both[-1]), "value": "00"}).encode()
        with self.assertRaisesRegex(Mismatch, "sent with zstd"):
            topic.check([*both[:-1], changed], lacking())


class Production(unittest.TestCase):
    def test_every_codec_in_one_topic(self):
        client = Sender(broken=None)
        topic, failures = produce(Topic("t", client, ["none", "gzip"], [], lacking()), None, None)
        self.assertEqual((topic.name, failures), ("t", ()))
        self.assertEqual(client.sent, [("t", "none"), ("t", "gzip")])

    def test_a_codec_that_fails_does_not_hide_the_others(self):
        client = Sender(broken="gzip")
        topic, failures = produce(Topic("t", client, ["none", "gzip", "lz4"], [], lacking()), None, None)
        self.assertEqual([codec for codec, _ in failures], ["gzip"])
        self.assertEqual(topic.codecs, ["none", "lz4"])
        self.assertEqual(client.sent[-2:], [(topic.name, "none"), (topic.name, "lz4")])
        self.assertNotEqual(topic.name, "t")


class Groups(unittest.TestCase):
    """History must find each way in which a group can be wrong."""

    #: What `members` told and the runner saw, a moment apart each: nothing is wrong with it.
    GOOD = [
        ("a", "assigned", {"partitions": [0, 1]}),
        ("a", "record", {"partition": 0, "offset": 0, "value": "a0"}),
        ("a", "record", {"partition": 1, "offset": 0, "value": "b0"}),
        ("a", "committed", {"partition": 0, "offset": 1}),
        ("a", "committed", {"partition": 1, "offset": 1}),
        (None, "seen", {"offsets": {0: 1, 1: 1}}),
        ("a", "record", {"partition": 1, "offset": 1, "value": "b1"}),
        ("a", "revoked", {"partitions": [1]}),
        ("b", "assigned", {"partitions": [1]}),
        # Not committed by a, so b reads it again.
        ("b", "record", {"partition": 1, "offset": 1, "value": "b1"}),
        ("b", "committed", {"partition": 1, "offset": 2}),
        ("a", "closing", {}),
        ("a", "exited", {"status": 0}),
        ("b", "closing", {}),
        ("b", "exited", {"status": 0}),
    ]
    SENT = {0: ["a0"], 1: ["b0", "b1"]}
    COMMITTED = {0: 1, 1: 2}

    def faults(self, told, sent=SENT, committed=COMMITTED, without_events=()):
        events = [Event(2 * i, *event) for i, event in enumerate(told)]
        return History(events, without_events).check(sent, committed)

    def changed(self, index, fields=None, before=()):
        """GOOD with other fields at an index, or with events put in before it."""
        told = list(self.GOOD)
        if fields is not None:
            told[index] = (*told[index][:2], fields)
        return told[:index] + list(before) + told[index:]

    def assert_found(self, told, text, **others):
        faults = self.faults(told, **others)
        self.assertEqual(len(faults), 1, faults)
        self.assertRegex(faults[0], text)

    def test_nothing_is_wrong(self):
        self.assertEqual(self.faults(self.GOOD), [])

    def test_a_lost_record(self):
        self.assert_found(self.GOOD, "1 records were never read, from 1 on", sent={**self.SENT, 0: ["a0", "a1"]},
                          committed={0: 2, 1: 2})

    def test_a_record_that_was_not_sent(self):
        told = self.changed(2, {"partition": 1, "offset": 0, "value": "ff"})
        self.assert_found(told, "at 0 stands what was not sent there")

    def test_a_committed_record_that_is_read_again(self):
        told = self.changed(9, before=[("b", "record", {"partition": 1, "offset": 0, "value": "b0"})])
        self.assert_found(told, "b reads offset 0 of partition 1 again, of which 1 was committed before")

    def test_the_same_where_only_the_server_or_only_the_member_tells_of_commits(self):
        for silent in (slice(3, 5), slice(5, 6)):
            told = self.changed(9, before=[("b", "record", {"partition": 1, "offset": 0, "value": "b0"})])
            del told[silent]
            self.assert_found(told, "b reads offset 0 of partition 1 again, of which 1 was committed before")

    def test_a_repeat_and_a_gap_within_an_assignment(self):
        for offset in (0, 2):
            told = self.changed(7, before=[("a", "record", {"partition": 0, "offset": offset, "value": "a0"})])
            self.assertIn(f"a reads offset {offset} of partition 0 after 0", self.faults(told))

    def test_a_partition_at_two_members(self):
        told = list(self.GOOD)
        told[7], told[9] = told[9], told[7]
        told[7], told[8] = told[8], told[7]
        self.assert_found(told, "partition 1 is b's while a still has it")

    def test_lines_of_one_moment_may_be_in_either_order(self):
        told = list(self.GOOD)
        told[7], told[8] = told[8], told[7]
        for between, faults in ((1, 0), (2, 1)):
            events = [Event(between * i, *event) for i, event in enumerate(told)]
            self.assertEqual(len(History(events).check(self.SENT, self.COMMITTED)), faults)

    def test_one_that_is_paused_killed_or_about_to_end_may_still_have_a_partition(self):
        for kind in ("paused", "killed", "closing"):
            told = [event for event in self.changed(7, before=[("a", kind, {})]) if event[:2] != ("a", "revoked")]
            self.assertEqual(self.faults(told), [])

    def test_a_record_of_a_partition_that_is_gone(self):
        told = self.changed(11, before=[("a", "record", {"partition": 1, "offset": 1, "value": "b1"})])
        self.assert_found(told, "a reads offset 1 of partition 1, which it has not")

    def test_assignments_that_do_not_follow_from_each_other(self):
        self.assert_found(self.changed(5, before=[("a", "assigned", {"partitions": [0]})]),
                          "a is assigned partition 0, which it has")
        self.assert_found(self.changed(8, before=[("a", "lost", {"partitions": [1]})]),
                          "a loses partition 1, which it has not")

    def test_a_commit_that_moves_backwards(self):
        told = self.changed(7, before=[
            ("a", "committed", {"partition": 1, "offset": 2}), ("a", "committed", {"partition": 1, "offset": 1}),
        ])
        self.assertIn("a commits 1 of partition 1 after 2: backwards", self.faults(told))
        told = self.changed(6, before=[(None, "seen", {"offsets": {0: 0}})])
        self.assert_found(told, "partition 0: the server says 0 is committed after 1: backwards")

    def test_a_commit_of_what_was_not_read(self):
        told = self.changed(5, before=[("a", "committed", {"partition": 0, "offset": 2})])
        self.assert_found(told, "a commits 2 of partition 0, which it has not read")

    def test_what_is_not_committed_at_the_end(self):
        self.assert_found(self.GOOD, "partition 1: 1 is committed at the end of 2 records", committed={0: 1, 1: 1})

    def test_a_member_that_fails(self):
        self.assert_found(self.changed(12, {"status": 1}), "a ended with 1")

    def test_members_that_tell_no_assignments(self):
        told = [event for event in self.GOOD if event[1] not in ("assigned", "revoked")]
        self.assertEqual(self.faults(told, without_events="ab"), [])
        # a reads again what it had not committed.
        told.insert(2, told[0])
        self.assertEqual(self.faults(told, without_events="ab"), [])
        del told[2]
        told.insert(6, ("b", "record", {"partition": 1, "offset": 0, "value": "b0"}))
        self.assert_found(told, "b reads offset 0 of partition 1 again, of which 1", without_events="ab")

    def test_what_a_member_heard(self):
        events = [Event(0, *event) for event in self.GOOD]
        self.assertEqual([event.kind for event in heard(events, "a", {1})], ["assigned", "revoked"])
        self.assertEqual(heard(events, "b", {0}), [])


class Counts(unittest.TestCase):
    def counted(self, last, error=None):
        tally = Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            add_counts("suite", last, error, tally)
        return tally.passed, len(tally.failures)

    def test_of_suites(self):
        self.assertEqual(self.counted("12 passed, 0 failed"), (12, 0))
        self.assertEqual(self.counted("12 passed, 3 failed", Failed("3")), (12, 3))

    def test_that_are_missing_or_not_true(self):
        self.assertEqual(self.counted(""), (0, 1))
        self.assertEqual(self.counted("panic: no", Failed("2")), (0, 1))
        self.assertEqual(self.counted("12 passed, 0 failed", Failed("killed")), (12, 1))
        self.assertEqual(self.counted("12 passed, 3 failed"), (12, 4))


class Capability(unittest.TestCase):
    def test_each_capability_leaves_something_out(self):
        for name in ("binary", "headers", "null_header_values", "duplicate_headers", "null_key", "empty_key",
                     "null_value", "empty_value", "timestamps", "key_with_nul", "binary_header_values",
                     "null_key_and_value", "null_key_with_empty_value", "empty_key_with_null_value"):
            out = [field for record in generate(quick=True) for field in beyond(record, for_verb(
                {**EVERYTHING, name: False}, "produce"))]
            self.assertTrue(out, name)

    def test_a_verb_overrides(self):
        declared = {**EVERYTHING, "produce": {"timestamps": False}}
        self.assertFalse(for_verb(declared, "produce")["timestamps"])
        self.assertTrue(for_verb(declared, "consume")["timestamps"])

    def test_of_groups(self):
        self.assertIsNone(for_group(EVERYTHING))
        claim = for_group({"group": {"assignors": ["range"], "static": True}})
        self.assertEqual((claim["assignors"], claim["static"], claim["rebalance_events"]), (["range"], True, False))
        for misspelt in ({"assignors": ["rang"]}, {"statik": True}):
            with self.assertRaises(ValueError):
                for_group({"group": misspelt})

    def test_a_misspelt_capability_is_refused(self):
        with self.assertRaises(ValueError):
            for_verb({**EVERYTHING, "header": True}, "consume")


if __name__ == "__main__":
    unittest.main()
