"""The records that every client produces: the same in every run, chosen to reach the corners of the format."""

import hashlib

PARTITIONS = 2  # num.partitions of the gateway, of pgQueue and of the reference
BASE_TIMESTAMP = 1_700_000_000_000  # ms
LARGEST_VALUE = 921_600  # 900 KB: with key, headers and framing below max.message.bytes

KEYS = {
    "null": None,
    "empty": b"",
    "text": "urn:li:dataset:(ключ,鍵)".encode(),
    "not UTF-8": b"\xff\xfe\x80key",
    "with NUL": b"a\x00b",
}
VALUES = {
    "null": None,
    "empty": b"",
    "text": b'{"name":"value"}',
    "every byte": bytes(range(256)),
}
HEADERS = [
    [],
    [("one", b"1")],
    [("twice", b"first"), ("twice", b"second")],
    [("twice", b"first"), ("between", b"x"), ("twice", b"second"), ("twice", b"first")],
    [("null", None)],
    [("empty", b"")],
    [("null", None), ("null", b"not null"), ("empty", b"")],
    [("bytes", bytes(range(255, -1, -1)))],
    [("имя-заголовка", "значение".encode())],
    [("long", b"v" * 5000)],
    [("many-%02d" % i, b"%d" % i) for i in range(60)],
]
# One byte around each step of the variable-length integers and of the 32 KiB snappy block.
SIZES = [1, 2, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 32767, 32768, 32769, 65535, 65536, 100_000]
QUICK_SIZES = [1, 63, 64, 8191, 8192, 32768, 32769]
# Forwards, backwards and with differences that need 64 bits. Neither 0, which some clients take for
# "now", nor the future, which message.timestamp.after.max.ms (an hour) refuses.
TIMESTAMPS = [1, BASE_TIMESTAMP, 1_000, 2**31, BASE_TIMESTAMP - 86_400_000, 2**32, 2]


def generate(quick):
    """All records in the order in which they are sent, as dicts with bytes in them."""
    records = []
    for partition in range(PARTITIONS):
        for fields in _corners(quick, partition):
            record = {"partition": partition, "key": None, "value": None, "headers": [], "timestamp": None}
            record.update(fields)
            if record["timestamp"] is None:
                record["timestamp"] = BASE_TIMESTAMP + 7 * len(records)
            records.append(record)
    if not quick:
        # The two partitions interleaved, so that one request carries both.
        halves = [[r for r in records if r["partition"] == p] for p in range(PARTITIONS)]
        longest = max(map(len, halves))
        records = [half[i] for i in range(longest) for half in halves if i < len(half)]
    return records


def _corners(quick, partition):
    for key in KEYS.values():
        for value in VALUES.values():
            yield {"key": key, "value": value}
    for headers in HEADERS:
        yield {"key": b"headers", "value": b"v", "headers": headers}
    yield {"headers": HEADERS[3]}
    for i, timestamp in enumerate(TIMESTAMPS):
        yield {"key": b"timestamp", "value": b"%d" % i, "timestamp": timestamp}
    for i in range(60 if quick else 400):
        yield {"key": b"bulk-%d" % (i % 17), "value": _text(20 + i * 37 % 900), "headers": HEADERS[i % 3]}
    for size in QUICK_SIZES if quick else SIZES:
        yield {"key": b"noise", "value": _noise(size, size)}
        yield {"key": b"text", "value": _text(size)}
    yield {"key": _noise(40_000, 1), "value": b"a large key"}
    # Half of it shrinks, half of it does not: codecs mix both kinds of block.
    mixed = b"".join(_noise(5_000, i) + _text(5_000) for i in range(5 if quick else 20))
    yield {"key": b"mixed", "value": mixed}
    if partition == 0:
        yield {"key": b"largest", "value": _noise(LARGEST_VALUE, 2), "headers": HEADERS[1]}
    elif not quick:
        yield {"key": b"largest", "value": _text(LARGEST_VALUE), "headers": HEADERS[1]}
    yield {"key": b"last", "value": b"of partition %d" % partition}


def _noise(size, seed):
    """Bytes that no codec makes smaller."""
    blocks = (hashlib.sha256(b"%d:%d" % (seed, i)).digest() for i in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def _text(size):
    lines = (b"line %d of a text that compresses well\n" % i for i in range(size // 30 + 1))
    return b"".join(lines)[:size]
