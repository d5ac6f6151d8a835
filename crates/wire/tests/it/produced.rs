//! What a producer may and may not send: one case per rule.

use bytes::{BufMut, Bytes, BytesMut};
use wire::batch::{
    BatchBuilder, BatchError, BatchHeader, Compression, HEADER_LEN, ProduceLimits, ProducedBatch, ProducerFields,
    TimestampType,
};

const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: 10_000, max_decompressed_bytes: 20_000 };

fn builder() -> BatchBuilder {
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    for offset in 0..3 {
        builder.push(offset, 1000 - offset, Some(b"k"), Some(b"value"), [].into_iter()).unwrap();
    }
    builder
}

fn validate(bytes: impl Into<Bytes>) -> Result<ProducedBatch, BatchError> {
    ProducedBatch::validate(bytes.into(), LIMITS)
}

/// The error of a batch whose header was changed and whose CRC is right.
fn with_header(change: impl FnOnce(&mut BatchHeader)) -> Option<BatchError> {
    let (mut header, records) = builder().into_parts();
    change(&mut header);
    validate(header.assemble(&records)).err()
}

/// The error of a batch of `count` records with these bytes.
fn with_records(count: i32, records: &[u8]) -> BatchError {
    let header = BatchHeader { records_count: count, last_offset_delta: count - 1, ..BatchHeader::default() };
    validate(header.assemble(records)).unwrap_err()
}

#[test]
fn a_plain_batch_is_a_slice_of_the_request() {
    let bytes = builder().finish();
    let range = bytes.as_ptr_range();
    let batch = validate(bytes.clone()).unwrap();
    assert_eq!(batch.record_count(), 3);
    assert_eq!(batch.summary.max_timestamp, 1000);
    assert_eq!(batch.records.as_ptr(), bytes[HEADER_LEN..].as_ptr());
    assert!(range.contains(&batch.records().next().unwrap().value.unwrap().as_ptr()));
}

#[test]
fn the_header_is_not_believed_about_the_largest_timestamp() {
    assert_eq!(with_header(|header| header.max_timestamp = 5), None);
    let (header, records) = builder().into_parts();
    let lying = BatchHeader { max_timestamp: i64::MAX, ..header };
    assert_eq!(validate(lying.assemble(&records)).unwrap().summary.max_timestamp, 1000);
}

#[test]
fn fields_only_brokers_or_nobody_may_set() {
    let invalid = |field, value| Some(BatchError::InvalidHeader { field, value });
    assert_eq!(with_header(|_| {}), None);
    assert_eq!(with_header(|header| header.partition_leader_epoch = 77), None);
    assert_eq!(with_header(|header| header.base_offset = 1), invalid("base_offset", 1));
    assert_eq!(with_header(|header| header.set_control(true)), invalid("attributes", 1 << 5));
    assert_eq!(with_header(|header| header.attributes |= 1 << 6), invalid("attributes", 1 << 6));
    assert_eq!(with_header(|header| header.attributes |= 1 << 9), None, "unassigned bits are ignored as in Kafka");
    let log_append_time = |header: &mut BatchHeader| header.set_timestamp_type(TimestampType::LogAppendTime);
    assert_eq!(with_header(log_append_time), Some(BatchError::LogAppendTimeFromProducer));
    for id in 5..=7 {
        assert_eq!(with_header(|header| header.attributes = id), Some(BatchError::UnknownCompression(id as u8)));
    }
}

#[test]
fn counts_must_agree() {
    let count = |claimed, actual| Some(BatchError::RecordCount { claimed, actual });
    assert_eq!(with_header(|header| header.records_count = 0), count(0, 3));
    assert_eq!(with_header(|header| header.records_count = -1), count(-1, 3));
    assert_eq!(with_header(|header| header.last_offset_delta = 5), count(3, 6));
    assert_eq!(with_header(|header| header.last_offset_delta = -1), count(3, 0));
    let set = |header: &mut BatchHeader, count: i32| {
        (header.records_count, header.last_offset_delta) = (count, count.wrapping_sub(1));
    };
    assert_eq!(with_header(|header| set(header, 0)), count(0, 0));
    assert_eq!(with_header(|header| set(header, i32::MIN)), count(i32::MIN, 1 << 31));
    assert_eq!(with_header(|header| set(header, 4)), count(4, 3));
    assert_eq!(with_header(|header| set(header, i32::MAX)), count(i32::MAX, 3));
    assert!(matches!(with_header(|header| set(header, 2)), Some(BatchError::BytesAfterRecords(_))));
}

#[test]
fn producer_fields() {
    let set = |id, epoch, sequence| {
        with_header(|header| (header.producer_id, header.producer_epoch, header.base_sequence) = (id, epoch, sequence))
    };
    let invalid = |field, value| Some(BatchError::InvalidHeader { field, value });
    assert_eq!(set(0, 0, 0), None);
    assert_eq!(set(i64::MAX, i16::MAX, i32::MAX), None);
    assert_eq!(set(-1, 0, 0), None, "kafkajs writes zeros without a producer id");
    assert_eq!(set(-2, 0, 0), invalid("producer_id", -2));
    assert_eq!(set(5, -1, 0), invalid("producer_epoch", -1));
    assert_eq!(set(5, 0, -1), invalid("base_sequence", -1));
    assert_eq!(with_header(|header| header.set_transactional(true)), invalid("producer_id", -1));
}

#[test]
fn sizes_and_formats() {
    assert_eq!(validate(Bytes::new()).unwrap_err(), BatchError::Empty);
    let whole = builder().finish();
    for end in 1..whole.len() {
        let available = end;
        let needed = if end < HEADER_LEN { HEADER_LEN } else { whole.len() };
        assert_eq!(validate(whole.slice(..end)).unwrap_err(), BatchError::Truncated { needed, available });
    }
    let twice = [&whole[..], &whole[..]].concat();
    assert_eq!(validate(twice).unwrap_err(), BatchError::MoreThanOneBatch(whole.len()));

    let patched = |at: usize, bytes: &[u8]| {
        let mut patched = BytesMut::from(&whole[..]);
        patched[at..at + bytes.len()].copy_from_slice(bytes);
        validate(patched).unwrap_err()
    };
    for length in [i32::MIN, -1, 0, 48] {
        assert_eq!(patched(8, &length.to_be_bytes()), BatchError::InvalidLength(length));
    }
    assert!(matches!(patched(8, &i32::MAX.to_be_bytes()), BatchError::Truncated { .. }));
    assert_eq!(patched(16, &[0]), BatchError::OldMagic(0));
    assert_eq!(patched(16, &[1]), BatchError::OldMagic(1));
    assert_eq!(patched(16, &[3]), BatchError::UnknownMagic(3));
    assert_eq!(patched(16, &[0x80]), BatchError::UnknownMagic(i8::MIN));
    for at in 17..whole.len() {
        assert!(matches!(patched(at, &[whole[at] ^ 1]), BatchError::CrcMismatch { .. }), "{at}");
    }
}

#[test]
fn the_size_limits_hold_at_their_edges() {
    let size = builder().finish().len();
    let check = |batch, records| {
        let limits = ProduceLimits { max_batch_bytes: batch, max_decompressed_bytes: records };
        ProducedBatch::validate(builder().finish(), limits).map(drop)
    };
    let records = size - HEADER_LEN;
    assert_eq!(check(size, records), Ok(()));
    assert_eq!(check(size - 1, records), Err(BatchError::TooLarge { size, limit: size - 1 }));
    let limit = records - 1;
    assert_eq!(check(size, limit), Err(BatchError::DecompressedTooLarge { limit }));
}

#[test]
fn a_bomb_is_not_inflated() {
    let zeros = vec![0; 30 << 20];
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    builder.push(0, 0, None, Some(&zeros), [].into_iter()).unwrap();
    let (header, records) = builder.into_parts();
    for compression in &Compression::ALL[1..] {
        let mut header = header.clone();
        header.set_compression(*compression);
        let bytes = header.assemble(&wire::batch::compress(*compression, &records).unwrap());
        let limits = ProduceLimits { max_batch_bytes: 1 << 30, max_decompressed_bytes: 1 << 20 };
        let error = ProducedBatch::validate(bytes, limits).unwrap_err();
        assert_eq!(error, BatchError::DecompressedTooLarge { limit: 1 << 20 }, "{compression}");
    }
}

#[test]
fn garbage_for_a_codec_is_no_record() {
    for compression in &Compression::ALL[1..] {
        for garbage in [&b""[..], b"x", b"\xff\xff\xff\xff\xff\xff\xff\xff", &[0; 100], b"\x82SNAPPY\0", b"(\xb5/\xfd"]
        {
            let (mut header, _) = builder().into_parts();
            header.set_compression(*compression);
            let error = validate(header.assemble(garbage)).unwrap_err();
            let known = matches!(
                error,
                BatchError::Decompression { .. } | BatchError::RecordCount { .. } | BatchError::MalformedRecord { .. }
            );
            assert!(known, "{compression} {garbage:?}: {error}");
        }
    }
}

#[test]
fn malformed_records() {
    // length, attributes, timestamp delta, offset delta, key (null), value (null), headers (0)
    let good = b"\x0c\0\0\0\x01\x01\0";
    let header = BatchHeader { records_count: 1, ..BatchHeader::default() };
    assert!(validate(header.assemble(good)).is_ok());
    let negative_lengths = b"\x0c\0\0\0\x0d\x0b\0";
    assert!(validate(header.assemble(negative_lengths)).is_ok(), "Kafka takes any negative length as null");

    let reason = |records: &[u8]| match with_records(1, records) {
        BatchError::MalformedRecord { index: 0, reason } => reason,
        other => panic!("{other}"),
    };
    assert_eq!(reason(b"\xff"), "no length");
    assert_eq!(reason(b"\x01"), "negative length");
    assert_eq!(reason(b"\x0e\0\0\0\x01\x01\0"), "longer than the batch");
    assert_eq!(reason(b"\0\0\0\0\0\0"), "no attributes");
    assert_eq!(reason(b"\x02\0"), "no timestamp");
    assert_eq!(reason(b"\x04\0\0"), "no offset");
    assert_eq!(reason(b"\x06\0\0\0"), "key longer than the record");
    assert_eq!(reason(b"\x0c\0\0\0\x08\x01\0"), "key longer than the record");
    assert_eq!(reason(b"\x0c\0\0\0\x01\x08\0"), "value longer than the record");
    assert_eq!(reason(b"\x0a\0\0\0\x01\x01"), "no header count");
    assert_eq!(reason(b"\x0c\0\0\0\x01\x01\x01"), "negative header count");
    assert_eq!(reason(b"\x0c\0\0\0\x01\x01\x02"), "malformed header");
    assert_eq!(reason(b"\x12\0\0\0\x01\x01\xfe\xff\xff\x0f"), "malformed header");
    assert_eq!(reason(b"\x10\0\0\0\x01\x01\x02\x01\x01"), "malformed header", "a header key cannot be null");
    assert_eq!(reason(b"\x0e\0\0\0\x01\x01\0\0"), "longer than its fields");
    assert_eq!(reason(b"\x0c\0\0\x02\x01\x01\0"), "offset is not consecutive");
    assert_eq!(reason(b"\x0c\0\0\x01\x01\x01\0"), "offset is not consecutive");

    let second = [&good[..], b"\x0c\0\0\0\x01\x01\0"].concat();
    assert_eq!(with_records(2, &second), BatchError::MalformedRecord { index: 1, reason: "offset is not consecutive" });
}

#[test]
fn timestamps_of_64_bits() {
    let far = [i64::MIN, i64::MAX, -1, 0, 1 << 60];
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    for (offset, timestamp) in far.into_iter().enumerate() {
        builder.push(offset as i64, timestamp, None, None, [].into_iter()).unwrap();
    }
    let batch = validate(builder.finish()).unwrap();
    let read: Vec<_> = batch.records().map(|record| batch.timestamp(&record)).collect();
    assert_eq!(read, far);
    assert_eq!(batch.summary.max_timestamp, i64::MAX);
}

#[test]
fn log_append_time_batches_hold_one_time() {
    let mut builder = BatchBuilder::new(7, 0, TimestampType::LogAppendTime);
    assert!(builder.is_empty());
    builder.push(7, 100, None, None, [].into_iter()).unwrap();
    assert!(builder.push(8, 101, None, None, [].into_iter()).is_err());
    builder.push(8, 100, None, None, [].into_iter()).unwrap();
    assert_eq!(builder.record_count(), 2);
    let bytes = builder.finish();
    let (view, _) = wire::batch::BatchView::parse(&bytes).unwrap();
    assert_eq!(view.header().timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(view.header().max_timestamp, 100);
}

#[test]
fn no_records_are_no_bytes() {
    let builder = || BatchBuilder::new(0, 0, TimestampType::CreateTime);
    assert!(builder().finish().is_empty());
    assert!(builder().finish_as(&ProducerFields::default()).unwrap().is_empty());
}

#[test]
fn two_batches_follow_each_other_in_a_fetch() {
    let mut bytes = BytesMut::new();
    for base in [10, 20] {
        let mut builder = BatchBuilder::new(base, 0, TimestampType::CreateTime);
        builder.push(base + 3, 0, None, Some(b"v"), [].into_iter()).unwrap();
        bytes.put(builder.finish());
    }
    let (first, rest) = wire::batch::BatchView::parse(&bytes).unwrap();
    let (second, rest) = wire::batch::BatchView::parse(rest).unwrap();
    assert!(rest.is_empty());
    assert_eq!((first.header().last_offset(), second.header().last_offset()), (13, 23));
    assert_eq!(first.bytes().len() + second.bytes().len(), bytes.len());
}
