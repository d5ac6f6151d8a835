"""Compares what a client read from a topic with what was produced into it, record by record."""

import json
import threading

FIELDS = ("key", "value", "headers", "timestamp")


class Mismatch(Exception):
    pass


class Topic:
    """A topic and the records that stand in it, per partition in order: all of one codec, then of the next."""

    def __init__(self, name, client, codecs, records, beyond):
        self.name, self.client, self.codecs, self.records, self._beyond = name, client, codecs, records, beyond
        #: Of each partition the records and the codecs that they were sent with.
        self.partitions = {}
        #: Where the producing client cannot give the timestamp, the first reader tells it to the others.
        self.timestamps_known = not any("timestamp" in beyond(record) for record in records)
        self._lock = threading.Lock()
        for codec in codecs:
            for record in records:
                self.partitions.setdefault(record["partition"], []).append((record, codec))

    def without(self, codec):
        """A topic, with a name of its own, that the other codecs are to be sent to."""
        codecs = [other for other in self.codecs if other != codec]
        return Topic(f"{self.name}-no-{codec}", self.client, codecs, self.records, self._beyond)

    def check(self, lines, beyond):
        """Raises Mismatch, or returns the capabilities for lack of which a field was not compared."""
        seen = {partition: 0 for partition in self.partitions}
        left_out = []
        timestamps = {}
        for line in lines:
            read = parse(line)
            partition, offset = read["partition"], read["offset"]
            expected = self.partitions.get(partition)
            if expected is None:
                raise Mismatch(f"a record in partition {partition}, to which none was sent")
            if offset != seen[partition]:
                raise Mismatch(f"partition {partition}: offset {offset} where {seen[partition]} was due")
            if offset >= len(expected):
                raise Mismatch(f"partition {partition}: more than the {len(expected)} records sent")
            seen[partition] += 1
            record, codec = expected[offset]
            lacking = beyond(record)
            left_out.extend(lacking.values())
            for field in FIELDS:
                if field in lacking:
                    continue
                if field == "timestamp" and not self.timestamps_known:
                    timestamps[partition, offset] = read["timestamp"]
                elif read[field] != record[field]:
                    raise Mismatch(
                        f"partition {partition} offset {offset}: {field} is {show(read[field])}, "
                        f"sent with {codec} was {show(record[field])}"
                    )
        for partition, records in self.partitions.items():
            if seen[partition] != len(records):
                raise Mismatch(f"partition {partition}: {seen[partition]} of {len(records)} records")
        if timestamps:
            self._agree(timestamps)
        return left_out

    def _agree(self, timestamps):
        with self._lock:
            if not hasattr(self, "_timestamps"):
                self._timestamps = timestamps
            for place, timestamp in timestamps.items():
                if self._timestamps.get(place, timestamp) != timestamp:
                    raise Mismatch(
                        f"partition {place[0]} offset {place[1]}: timestamp {timestamp}, "
                        f"another client read {self._timestamps[place]}"
                    )


def parse(line):
    try:
        read = json.loads(line)
        for field in ("key", "value"):
            read[field] = from_hex(read[field])
        read["headers"] = [(name, from_hex(value)) for name, value in read["headers"]]
        return {name: read[name] for name in ("partition", "offset", *FIELDS)}
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(f"not a record: {line[:200]!r} ({type(error).__name__}: {error})") from None


def line_of(record):
    """The record as a line of the file that `produce` reads."""
    return json.dumps(
        {
            "partition": record["partition"],
            "key": to_hex(record["key"]),
            "value": to_hex(record["value"]),
            "headers": [[name, to_hex(value)] for name, value in record["headers"]],
            "timestamp": record["timestamp"],
        }
    )


def from_hex(text):
    return None if text is None else bytes.fromhex(text)


def to_hex(data):
    return None if data is None else data.hex()


def show(field):
    text = repr(field)
    return text if len(text) <= 120 else f"{text[:100]}… ({len(field)} long)"
