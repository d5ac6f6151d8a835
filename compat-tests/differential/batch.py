"""Record batches: built with every field at hand, so that any of them can be wrong."""

import gzip
import struct
import time

import crc32c

#: The time of records that are given none, in milliseconds; the same for both servers.
START = int(time.time() * 1000)


def zigzag(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value & ~0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def data(raw):
    return zigzag(-1) if raw is None else zigzag(len(raw)) + raw


def record(offset_delta=0, time_delta=0, key=b"k", value=b"v", headers=(), attributes=0):
    body = bytes([attributes]) + zigzag(time_delta) + zigzag(offset_delta) + data(key) + data(value)
    body += zigzag(len(headers))
    for name, content in headers:
        body += data(name) + data(content)
    return zigzag(len(body)) + body


def batch(
    records=1,
    *,
    base_offset=0,
    epoch=-1,
    magic=2,
    attributes=0,
    last_delta=None,
    base_time=None,
    max_time=None,
    pid=-1,
    pid_epoch=-1,
    sequence=-1,
    count=None,
    crc=None,
    length=None,
    compress=None,
):
    """`records` is a count of plain records, or what record() made, joined or in a list."""
    base_time = START if base_time is None else base_time
    if isinstance(records, int):
        records = [record(i, value=b"v%d" % i) for i in range(records)]
    number = len(records) if isinstance(records, list) else 1
    payload = b"".join(records) if isinstance(records, list) else records
    if compress == "gzip":
        payload, attributes = gzip.compress(payload), attributes | 1
    elif compress is not None:
        payload = compress(payload)
    tail = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            number - 1 if last_delta is None else last_delta,
            base_time,
            base_time if max_time is None else max_time,
            pid,
            pid_epoch,
            sequence,
            number if count is None else count,
        )
        + payload
    )
    crc = crc32c.crc32c(tail) if crc is None else crc
    rest = struct.pack(">ibI", epoch, magic, crc) + tail
    return struct.pack(">qi", base_offset, len(rest) if length is None else length) + rest


class Cursor:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, size):
        piece = self.raw[self.at : self.at + size]
        if len(piece) != size:
            raise ValueError("record is cut short")
        self.at += size
        return piece

    def zigzag(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def data(self):
        size = self.zigzag()
        return None if size < 0 else bytes(self.take(size))


def parse(raw):
    """Whole batches of a Fetch answer as dicts; a cut last one, as Kafka may send, is left out."""
    batches, at = [], 0
    while at + 61 <= len(raw):
        base_offset, length = struct.unpack_from(">qi", raw, at)
        end = at + 12 + length
        if end > len(raw):
            break
        epoch, magic, crc = struct.unpack_from(">ibI", raw, at + 12)
        attributes, last_delta, base_time, max_time, pid, pid_epoch, sequence, count = struct.unpack_from(
            ">hiqqqhii", raw, at + 21
        )
        if crc32c.crc32c(raw[at + 21 : end]) != crc:
            raise ValueError("wrong CRC in an answer")
        payload = raw[at + 61 : end]
        codec = attributes & 7
        if codec == 1:
            payload = gzip.decompress(payload)
        elif codec:
            raise ValueError(f"codec {codec} in an answer")
        cursor, records = Cursor(payload), []
        for _ in range(count):
            size = cursor.zigzag()
            stop = cursor.at + size
            cursor.take(1)
            stamp, delta = base_time + cursor.zigzag(), cursor.zigzag()
            if attributes & 8:
                stamp = "append time"
            key, value = cursor.data(), cursor.data()
            headers = [(cursor.data(), cursor.data()) for _ in range(cursor.zigzag())]
            if cursor.at != stop:
                raise ValueError("a record's length is wrong")
            records.append((base_offset + delta, stamp, key, value, headers))
        if cursor.at != len(payload):
            raise ValueError("bytes after the last record")
        batches.append(
            {
                "base_offset": base_offset,
                "last_delta": last_delta,
                "records": records,
                "attributes": attributes,
                "max_time": max_time,
                "pid": pid,
                "pid_epoch": pid_epoch,
                "sequence": sequence,
            }
        )
        at = end
    return batches
