//! Properties of the batch codec: what is built is what is read, and no bytes do harm.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::batch::{
    BatchBuilder, BatchError, BatchView, Compression, HEADER_LEN, ProduceLimits, ProducedBatch, ProducerFields,
    RecordSummary, Records, TimestampType,
};

const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: 1 << 22, max_decompressed_bytes: 1 << 22 };

#[derive(Debug, Clone, PartialEq)]
struct Written {
    /// Distance from the previous offset, at least 1.
    gap: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..20), (any::<u8>(), 0..70_000usize).prop_map(|(byte, len)| vec![byte; len])]
}

fn written() -> impl Strategy<Value = Written> {
    let timestamp = prop_oneof![Just(-1), 1_600_000_000_000..1_800_000_000_000i64, any::<i64>()];
    // Few names, so that duplicates are usual.
    let headers = vec((vec(b'a'..=b'b', 0..2), option::of(vec(any::<u8>(), 0..5))), 0..5);
    (1..200_000i64, timestamp, option::of(bytes()), option::of(bytes()), headers)
        .prop_map(|(gap, timestamp, key, value, headers)| Written { gap, timestamp, key, value, headers })
}

fn push(builder: &mut BatchBuilder, offset: i64, record: &Written) {
    let headers = record.headers.iter().map(|(key, value)| (&key[..], value.as_deref()));
    builder.push(offset, record.timestamp, record.key.as_deref(), record.value.as_deref(), headers).unwrap();
}

fn is_same(read: &wire::batch::Record<'_>, written: &Written) -> bool {
    read.key == written.key.as_deref()
        && read.value == written.value.as_deref()
        && read.headers.len() == written.headers.len()
        && read.headers.into_iter().eq(written.headers.iter().map(|(key, value)| (&key[..], value.as_deref())))
}

fn compression() -> impl Strategy<Value = Compression> {
    prop::sample::select(&Compression::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn produced_batches_keep_everything(
        records in vec(written(), 1..20),
        compression in compression(),
        producer_id in -1..1000i64,
    ) {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        for (offset, record) in records.iter().enumerate() {
            push(&mut builder, offset as i64, record);
        }
        let fields = ProducerFields { compression, producer_id, producer_epoch: 3, base_sequence: 9, transactional: producer_id >= 0 };
        let bytes = builder.finish_as(&fields).unwrap();

        let (view, rest) = BatchView::parse(&bytes).unwrap();
        prop_assert!(rest.is_empty() && view.crc_is_valid());
        let batch = ProducedBatch::validate(bytes.clone(), LIMITS).unwrap();
        prop_assert_eq!(batch.header.compression(), Ok(compression));
        prop_assert_eq!(batch.header.producer_id, producer_id);
        prop_assert_eq!(batch.record_count(), records.len());
        prop_assert_eq!(batch.records().count(), records.len());
        let times = || records.iter().map(|record| record.timestamp);
        let summary = RecordSummary {
            min_timestamp: times().min().unwrap(),
            max_timestamp: times().max().unwrap(),
            has_null_key: records.iter().any(|record| record.key.is_none()),
        };
        prop_assert_eq!(batch.summary, summary);
        for (read, written) in batch.records().zip(&records) {
            prop_assert!(is_same(&read, written));
            prop_assert_eq!(batch.timestamp(&read), written.timestamp);
        }
    }

    #[test]
    fn built_batches_keep_offsets_with_gaps(base in 0..1i64 << 40, records in vec(written(), 1..20)) {
        let mut builder = BatchBuilder::new(base, 4, TimestampType::CreateTime);
        let mut offset = base - 1;
        let mut offsets = Vec::new();
        for record in &records {
            offset += record.gap;
            offsets.push(offset);
            push(&mut builder, offset, record);
        }
        let size = builder.encoded_size();
        let bytes = builder.finish();
        prop_assert_eq!(bytes.len(), size);
        let (view, _) = BatchView::parse(&bytes).unwrap();
        let header = view.header();
        prop_assert!(view.crc_is_valid());
        prop_assert_eq!(header.last_offset(), offset);
        prop_assert_eq!(header.records_count as usize, records.len());
        let records_again = view.decompress(bytes.len()).unwrap();
        for ((read, written), offset) in Records::new(&records_again).zip(&records).zip(&offsets) {
            let read = read.unwrap();
            prop_assert!(is_same(&read, written));
            prop_assert_eq!(header.base_offset + i64::from(read.offset_delta), *offset);
            prop_assert_eq!(header.base_timestamp.wrapping_add(read.timestamp_delta), written.timestamp);
        }
    }

    #[test]
    fn any_damage_is_noticed(
        records in vec(written(), 1..4),
        compression in compression(),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        for (offset, record) in records.iter().enumerate() {
            push(&mut builder, offset as i64, record);
        }
        let bytes = builder.finish_as(&ProducerFields { compression, ..ProducerFields::default() }).unwrap();
        let at = at.index(bytes.len());
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 1 << bit;
        let result = ProducedBatch::validate(Bytes::from(damaged), LIMITS);
        match at {
            // The leader epoch is outside the CRC and the broker's anyway.
            12..16 => prop_assert!(result.is_ok()),
            17.. => {
                let noticed = matches!(result, Err(BatchError::CrcMismatch { .. }));
                prop_assert!(noticed);
            },
            ..12 | 16 => prop_assert!(result.is_err()),
        }
    }

    /// With a right CRC the damage reaches the codecs and the record reader.
    #[test]
    fn damage_behind_a_right_crc_does_no_harm(
        records in vec(written(), 1..4),
        compression in compression(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        for (offset, record) in records.iter().enumerate() {
            push(&mut builder, offset as i64, record);
        }
        let bytes = builder.finish_as(&ProducerFields { compression, ..ProducerFields::default() }).unwrap();
        let header = BatchView::parse(&bytes).unwrap().0.header().clone();
        let mut payload = bytes[HEADER_LEN..].to_vec();
        for (at, byte) in damage {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        if let Some(cut) = cut {
            payload.truncate(cut.index(payload.len()));
        }
        if let Ok(batch) = ProducedBatch::validate(header.assemble(&payload), LIMITS) {
            prop_assert_eq!(batch.records().count(), batch.record_count());
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200), compression in compression()) {
        let _ = ProducedBatch::validate(Bytes::copy_from_slice(&bytes), LIMITS);
        for record in Records::new(&bytes).flatten() {
            prop_assert_eq!(record.headers.iter().count(), record.headers.len());
        }
        let mut header = wire::batch::BatchHeader { records_count: 1, ..Default::default() };
        header.set_compression(compression);
        let _ = ProducedBatch::validate(header.assemble(&bytes), LIMITS);
    }
}

#[test]
fn a_builder_that_refuses_is_as_before() {
    let mut builder = BatchBuilder::new(100, 5, TimestampType::CreateTime);
    builder.push(103, 1030, None, Some(b"v"), [].into_iter()).unwrap();
    let before = builder.encoded_size();
    for offset in [i64::MIN, 99, 102, 103, 100 + (1 << 31), i64::MAX] {
        assert!(builder.push(offset, 0, None, None, [].into_iter()).is_err(), "{offset}");
    }
    assert_eq!((builder.encoded_size(), builder.record_count()), (before, 1));
    builder.push(100 + i64::from(i32::MAX), 0, None, None, [].into_iter()).unwrap();
    assert!(builder.push(100 + i64::from(i32::MAX), 0, None, None, [].into_iter()).is_err());
}
