//! What is built is what is read, with every codec.

use wire::batch::{
    BatchBuilder, BatchView, Compression, ProduceLimits, ProducedBatch, ProducerFields, Records, TimestampType,
};

const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: 1 << 24, max_decompressed_bytes: 1 << 24 };

#[test]
fn a_produced_batch_keeps_everything_in_every_codec() {
    let big = vec![b'x'; 200_000];
    let headers: [(&[u8], Option<&[u8]>); 4] = [(b"a", Some(b"1")), (b"a", Some(b"2")), (b"", None), (b"b", Some(b""))];
    for codec in Compression::ALL {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        builder.push(0, 1_700_000_000_000, None, None, [].into_iter()).unwrap();
        builder.push(1, 0, Some(b""), Some(b""), headers.into_iter()).unwrap();
        builder.push(2, 1 << 50, Some(b"key"), Some(&big), headers.into_iter()).unwrap();
        let fields = ProducerFields {
            compression: codec,
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: 3,
            ..Default::default()
        };
        let bytes = builder.finish_as(&fields).unwrap();

        let batch = ProducedBatch::validate(bytes, LIMITS).unwrap();
        assert_eq!(batch.header.compression(), Ok(codec));
        assert_eq!((batch.header.producer_id, batch.header.base_sequence), (7, 3));
        assert_eq!(batch.max_timestamp, 1 << 50);
        let records: Vec<_> = batch.records().collect();
        assert_eq!(records.len(), 3);
        assert_eq!(batch.timestamp(&records[1]), 0);
        assert_eq!((records[0].key, records[0].value, records[0].headers.len()), (None, None, 0));
        assert_eq!((records[1].key, records[1].value), (Some(&b""[..]), Some(&b""[..])));
        assert_eq!(records[2].value, Some(&big[..]));
        assert_eq!(records[2].headers.iter().collect::<Vec<_>>(), headers);
    }
}

#[test]
fn offsets_may_have_gaps() {
    let mut builder = BatchBuilder::new(100, 5, TimestampType::CreateTime);
    for offset in [103, 110, 111] {
        builder.push(offset, offset * 10, None, Some(b"v"), [].into_iter()).unwrap();
    }
    assert!(builder.push(111, 0, None, None, [].into_iter()).is_err());
    assert!(builder.push(100 + (1 << 31), 0, None, None, [].into_iter()).is_err());
    let size = builder.encoded_size();
    let bytes = builder.finish();
    assert_eq!(bytes.len(), size);
    let (view, rest) = BatchView::parse(&bytes).unwrap();
    assert!(rest.is_empty() && view.crc_is_valid());
    let header = view.header();
    assert_eq!((header.base_offset, header.last_offset(), header.records_count), (100, 111, 3));
    assert_eq!((header.max_timestamp, header.partition_leader_epoch), (1110, 5));
    let deltas: Vec<_> = Records::new(view.payload()).map(|record| record.unwrap().offset_delta).collect();
    assert_eq!(deltas, [3, 10, 11]);
}
