//! Batches that other implementations wrote (see testdata/README.md).

use bytes::Bytes;
use wire::batch::{BatchBuilder, BatchError, Compression, ProduceLimits, ProducedBatch, TimestampType};

const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: 1 << 20, max_decompressed_bytes: 1 << 20 };

type Record = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

/// The records of generate.py.
fn expected(big: bool) -> Vec<Record> {
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    let header = |key: &str, value: Option<&[u8]>| (key.as_bytes().to_vec(), value.map(<[u8]>::to_vec));
    let mut records = vec![
        (1_700_000_000_000, None, some(b"plain"), vec![]),
        (
            1_700_000_000_001,
            some(b""),
            some(b""),
            vec![header("h", Some(b"1")), header("h", Some(b"2")), header("", None)],
        ),
        (1_600_000_000_000, some(b"key"), None, vec![header("\u{fc}", Some(b"\0\xff"))]),
    ];
    if big {
        let lines = (0..6000u64).map(|i| format!("line {:06} of some text\n", i * i % 1_000_003));
        let text: String = lines.collect();
        records.push((1_700_000_000_002, some(b"big"), Some(text.into_bytes()), vec![]));
    }
    records
}

fn read(batch: &ProducedBatch) -> Vec<Record> {
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    batch
        .records()
        .map(|record| {
            let headers = record.headers.iter().map(|(key, value)| (key.to_vec(), owned(value))).collect();
            (batch.timestamp(&record), owned(record.key), owned(record.value), headers)
        })
        .collect()
}

macro_rules! golden {
    ($name:literal) => {
        ($name, &include_bytes!(concat!("../../testdata/batches/", $name, ".bin"))[..])
    };
}

#[test]
fn batches_of_other_implementations() {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    for ((name, bytes), codec) in [
        (golden!("none"), None),
        (golden!("idempotent"), None),
        (golden!("transactional"), None),
        (golden!("gzip"), Gzip),
        (golden!("gzip-two-members"), Gzip),
        (golden!("snappy-raw"), Snappy),
        (golden!("snappy-xerial"), Snappy),
        (golden!("lz4"), Lz4),
        (golden!("lz4-4mb-blocks"), Lz4),
        (golden!("lz4-content-checksum"), Lz4),
        (golden!("lz4-linked-no-size"), Lz4),
        (golden!("zstd"), Zstd),
        (golden!("zstd-checksum"), Zstd),
        (golden!("zstd-no-content-size"), Zstd),
    ] {
        let batch = ProducedBatch::validate(Bytes::from_static(bytes), LIMITS)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(batch.header.compression(), Ok(codec), "{name}");
        assert!(read(&batch) == expected(codec != None), "{name}");
        let last = if codec == None { 1_700_000_000_001 } else { 1_700_000_000_002 };
        assert_eq!(batch.summary.max_timestamp, last, "{name}");
        let producer = (batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence);
        let idempotent = matches!(name, "idempotent" | "transactional");
        assert_eq!(producer, if idempotent { (4000, 2, 17) } else { (-1, -1, -1) }, "{name}");
        assert_eq!(batch.header.is_transactional(), name == "transactional");
    }
}

#[test]
fn the_builder_writes_the_same_bytes() {
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    for (offset, (timestamp, key, value, headers)) in expected(false).iter().enumerate() {
        let headers = headers.iter().map(|(key, value)| (&key[..], value.as_deref()));
        builder.push(offset as i64, *timestamp, key.as_deref(), value.as_deref(), headers).unwrap();
    }
    let mut expected = golden!("none").1.to_vec();
    // kafka-python leaves a leader epoch of 0 where Java and we write -1; it is outside the CRC.
    expected[12..16].copy_from_slice(&(-1i32).to_be_bytes());
    assert_eq!(builder.finish(), expected);
}

#[test]
fn decompression_stops_at_the_limit() {
    for (name, bytes) in [
        golden!("gzip"),
        golden!("gzip-two-members"),
        golden!("snappy-raw"),
        golden!("snappy-xerial"),
        golden!("lz4"),
        golden!("lz4-4mb-blocks"),
        golden!("lz4-linked-no-size"),
        golden!("zstd"),
        golden!("zstd-no-content-size"),
    ] {
        let whole = ProducedBatch::validate(Bytes::from_static(bytes), LIMITS).unwrap().records.len();
        let at = |limit| {
            let limits = ProduceLimits { max_decompressed_bytes: limit, ..LIMITS };
            ProducedBatch::validate(Bytes::from_static(bytes), limits).map(drop)
        };
        assert_eq!(at(whole), Ok(()), "{name}");
        for limit in [whole - 1, whole / 2, 1, 0] {
            assert_eq!(at(limit), Err(BatchError::DecompressedTooLarge { limit }), "{name}");
        }
    }
}
