//! No bytes of a stranger may make the process allocate out of proportion. An own binary with one test,
//! because the allocator is counted for the whole process.

// Clippy knows test functions, but not the helpers they share.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use wire::batch::{BatchHeader, Compression, ProduceLimits, ProducedBatch};
use wire::{RequestHeader, decode_request, encode_request};

#[path = "it/requests/mod.rs"]
mod requests;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Most bytes that were allocated at the same time while `work` ran, beyond those before it.
fn allocated<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let start = Instant::now();
    drop(work());
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
    ALLOCATOR.peak_usage().saturating_sub(before)
}

#[test]
fn hostile_bytes() {
    claims_in_small_requests();
    arrays_in_large_requests();
    claims_of_codecs();
}

/// (key, version, body) of a request of every API and version.
fn bodies() -> Vec<(i16, i16, Vec<u8>)> {
    let body = |(key, version, request)| {
        let frame = encode_request(key, version, 1, None, &request).unwrap();
        let mut body = frame.slice(8..);
        RequestHeader::decode(key, version, &mut body).unwrap();
        (key, version, body.to_vec())
    };
    requests::every_request().into_iter().map(body).collect()
}

/// Whatever a few hundred bytes claim, decoding them stays small.
fn claims_in_small_requests() {
    let claims: [&[u8]; 8] = [
        b"\x7f\xff\xff\xff",
        b"\x7f\xff\xff\xf0",
        b"\x80\0\0\0",
        b"\0\xff\xff\xff",
        b"\x7f\xff",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x07",
        b"\xff\xff\xff\x7f",
    ];
    for (key, version, body) in bodies() {
        for at in 0..body.len() {
            for claim in claims {
                let mut hostile = body[..at].to_vec();
                hostile.extend_from_slice(claim);
                hostile.extend_from_slice(&body[at..]);
                let hostile = Bytes::from(hostile);
                let peak = allocated(|| decode_request(key, version, hostile));
                assert!(peak < 64 * 1024, "key {key} v{version}: {claim:?} at {at} allocates {peak} bytes");
            }
        }
    }
}

/// Requests that are valid to the last byte and consist of nothing but the smallest elements.
struct Swelling {
    api: (i16, i16),
    before_count: &'static [u8],
    flexible: bool,
    element: &'static [u8],
    after: &'static [u8],
    max_frame: usize,
}

const fn swelling(
    api: (i16, i16),
    before_count: &'static [u8],
    element: &'static [u8],
    after: &'static [u8],
) -> Swelling {
    Swelling { api, before_count, flexible: false, element, after, max_frame: 2 * MIB }
}

const SWELLING: [Swelling; 9] = [
    // Topics without name and partitions: 6 bytes, or 3 when flexible.
    Swelling { max_frame: 100 * MIB, ..swelling((0, 3), b"\xff\xff\0\x01\0\0\0\0", b"\0\0\0\0\0\0", b"") },
    Swelling { max_frame: 100 * MIB, flexible: true, ..swelling((0, 9), b"\0\0\x01\0\0\0\0", b"\x01\x01\0", b"\0") },
    // A tagged field in each of them: 5 bytes that become a tree.
    Swelling { flexible: true, ..swelling((0, 9), b"\0\0\x01\0\0\0\0", b"\x01\x01\x01\x64\0", b"\0") },
    swelling((1, 4), &[0; 17], b"\0\0\0\0\0\0", b""),
    swelling((2, 1), &[0; 4], b"\0\0\0\0\0\0", b""),
    swelling((3, 0), b"", b"\0\0", b""),
    Swelling { flexible: true, ..swelling((3, 9), b"", b"\x01\0", b"\0\0\0\0") },
    swelling((15, 0), b"", b"\0\0", b""),
    swelling((19, 2), b"", &[0; 16], b"\0\0\0\0\0"),
];

fn arrays_in_large_requests() {
    for Swelling { api: (key, version), before_count, flexible, element, after, max_frame } in SWELLING {
        let request = |count: usize| {
            let mut body = before_count.to_vec();
            if flexible {
                let mut count = count + 1;
                while count >= 0x80 {
                    body.push(count as u8 | 0x80);
                    count >>= 7;
                }
                body.push(count as u8);
            } else {
                body.extend((count as u32).to_be_bytes());
            }
            body.extend(element.repeat(count));
            body.extend(after);
            Bytes::from(body)
        };
        assert!(decode_request(key, version, request(10_000)).is_ok(), "key {key} v{version}");
        let most = (max_frame - 100) / element.len();
        for count in [most, most / 2, most / 4, most / 10, most / 100] {
            let body = request(count);
            let peak = allocated(|| decode_request(key, version, body));
            assert!(peak < 20 * MIB, "key {key} v{version}: {count} elements allocate {peak} bytes");
        }
    }
}

/// A batch of some bytes that claims to inflate to gigabytes.
fn claims_of_codecs() {
    let lz4 = |flags_and_sizes: &[u8]| {
        let checksum = (twox_hash::XxHash32::oneshot(0, flags_and_sizes) >> 8) as u8;
        [&b"\x04\x22\x4d\x18"[..], flags_and_sizes, &[checksum], b"\x05\0\0\0\x1fa\x01\0\xff"].concat()
    };
    let payloads = [
        (Compression::Gzip, b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\xff\xff\xff\xff".to_vec()),
        (Compression::Snappy, b"\xff\xff\xff\xff\x0f\0a".to_vec()),
        (Compression::Snappy, b"\xff\xff\x3f\0a".to_vec()),
        (Compression::Snappy, b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff".to_vec()),
        (Compression::Snappy, b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x07\xff\xff\xff\xff\x0f\0a".to_vec()),
        (Compression::Lz4, lz4(b"\x60\x70")),
        (Compression::Lz4, lz4(b"\x40\x70")),
        (Compression::Lz4, lz4(b"\x68\x70\xff\xff\xff\xff\xff\xff\xff\xff")),
        // Windows of 128 MiB and of 3.75 TiB, then a content size of 2^64 - 1.
        (Compression::Zstd, b"\x28\xb5\x2f\xfd\0\x88\x01\0\0".to_vec()),
        (Compression::Zstd, b"\x28\xb5\x2f\xfd\0\xff\x01\0\0".to_vec()),
        (Compression::Zstd, b"\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0".to_vec()),
    ];
    for (compression, payload) in payloads {
        for limit in [1000, MIB, 64 * MIB] {
            let mut header = BatchHeader { records_count: 1, ..BatchHeader::default() };
            header.set_compression(compression);
            let bytes = header.assemble(&payload);
            let limits = ProduceLimits { max_batch_bytes: MIB, max_decompressed_bytes: limit };
            let peak = allocated(|| ProducedBatch::validate(bytes, limits).unwrap_err());
            assert!(peak < MIB + 256 * 1024, "{compression} {payload:?}, limit {limit}: {peak} bytes");
        }
    }
}
