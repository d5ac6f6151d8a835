"""The runner must see every kind of difference: `python3 -m unittest runner.test_runner`."""

import contextlib
import io
import json
import unittest

from .capability import beyond, for_verb
from .client import Failed
from .expected import Mismatch, Topic, line_of
from .generated import LARGEST_VALUE, generate
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

    def test_a_misspelt_capability_is_refused(self):
        with self.assertRaises(ValueError):
            for_verb({**EVERYTHING, "header": True}, "consume")


if __name__ == "__main__":
    unittest.main()
