#!/usr/bin/env python3
"""Writes the record batches of this folder with kafka-python's own builder (see README.md).

Beyond what kafka-python itself can write, its uncompressed records are framed by other
libraries in the ways other clients do it: bare snappy as librdkafka, lz4 with linked blocks
and content checksum, zstd with a content size, gzip of two members.
"""
import gzip
import os
import struct

import crc32c
import cramjam
import lz4.frame
import zstandard
from kafka.record.default_records import DefaultRecordBatchBuilder

HERE = os.path.dirname(os.path.abspath(__file__))
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

# More than one block of xerial snappy (32 KiB), of lz4 (64 KiB) and of zstd (128 KiB).
BIG = b"".join(b"line %06d of some text\n" % (i * i % 1000003) for i in range(6000))


def records(big):
    """(timestamp, key, value, headers), the same as in tests/it/golden.rs."""
    yield 1_700_000_000_000, None, b"plain", []
    yield 1_700_000_000_001, b"", b"", [("h", b"1"), ("h", b"2"), ("", None)]
    yield 1_600_000_000_000, b"key", None, [("\u00fc", b"\x00\xff")]
    if big:
        yield 1_700_000_000_002, b"big", BIG, []


def batch(codec, big=True, producer=(-1, -1, -1), transactional=False):
    builder = DefaultRecordBatchBuilder(2, codec, transactional, *producer, batch_size=1 << 20)
    for offset, (timestamp, key, value, headers) in enumerate(records(big)):
        assert builder.append(offset, timestamp, key, value, headers)
    return bytes(builder.build())


def reframe(codec, compress):
    """The uncompressed batch with its records compressed by other means."""
    plain = bytearray(batch(NONE))
    head, payload = plain[:61], compress(bytes(plain[61:]))
    struct.pack_into(">i", head, 8, 61 - 12 + len(payload))
    struct.pack_into(">h", head, 21, codec)
    whole = head + payload
    struct.pack_into(">I", whole, 17, crc32c.crc32c(bytes(whole[21:])))
    return bytes(whole)


def lz4_frame(**options):
    return lambda data: lz4.frame.compress(data, **options)


def gzip_members(data):
    return gzip.compress(data[:1000], mtime=0) + gzip.compress(data[1000:], mtime=0)


def zstd_stream(data):
    writer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return writer.compress(data[:5000]) + writer.compress(data[5000:]) + writer.flush()


FILES = {
    "none": batch(NONE, big=False),
    "gzip": batch(GZIP),
    "snappy-xerial": batch(SNAPPY),
    "lz4": batch(LZ4),
    "zstd": batch(ZSTD),
    "idempotent": batch(NONE, big=False, producer=(4000, 2, 17)),
    "transactional": batch(NONE, big=False, producer=(4000, 2, 17), transactional=True),
    "snappy-raw": reframe(SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "gzip-two-members": reframe(GZIP, gzip_members),
    "lz4-content-checksum": reframe(LZ4, lz4_frame(content_checksum=True, block_linked=False)),
    "lz4-linked-no-size": reframe(
        LZ4, lz4_frame(block_linked=True, block_checksum=True, store_size=False,
                       block_size=lz4.frame.BLOCKSIZE_MAX64KB)),
    "lz4-4mb-blocks": reframe(LZ4, lz4_frame(block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "zstd-no-content-size": reframe(ZSTD, zstd_stream),
    "zstd-checksum": reframe(
        ZSTD, zstandard.ZstdCompressor(level=19, write_checksum=True).compress),
}

for name, data in FILES.items():
    with open(os.path.join(HERE, name + ".bin"), "wb") as out:
        out.write(data)
    print(f"{len(data):6} {name}")
