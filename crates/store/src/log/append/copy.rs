//! Rows in the format of `COPY … (FORMAT binary)`.

use bytes::{BufMut, BytesMut};

use crate::record::Row;

/// Of [`COLUMNS`](crate::record::COLUMNS), which [`CopyEncoder`] writes in their order.
const COLUMN_COUNT: i16 = 15;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
const JSONB_VERSION: u8 = 1;

/// Writes the rows of one COPY.
pub(super) struct CopyEncoder {
    out: BytesMut,
}

impl CopyEncoder {
    pub(super) fn new() -> Self {
        let mut out = BytesMut::with_capacity(256 * 1024);
        out.put_slice(SIGNATURE);
        out.put_i32(0); // flags
        out.put_i32(0); // length of the header extension
        Self { out }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// The bytes so far, to be sent.
    pub(super) fn take(&mut self) -> BytesMut {
        self.out.split()
    }

    pub(super) fn finish(mut self) -> BytesMut {
        self.out.put_i16(-1);
        self.out
    }

    pub(super) fn push(&mut self, row: &Row<'_>) {
        self.out.put_i16(COLUMN_COUNT);
        self.put_i64(Some(row.partition.topic_id));
        self.put_i32(Some(row.partition.partition_id));
        self.put_i64(Some(row.seq));
        self.put_bytes(Some(row.routing_key.as_bytes()));
        self.put_bytes(Some(row.payload));
        self.put_i16(Some(row.payload_compression));
        self.put_jsonb(row.headers);
        self.put_bytes(row.key);
        self.put_i16(row.flags);
        self.put_i64(row.timestamp);
        self.put_i64(row.max_timestamp);
        self.put_i64(row.batch.map(|batch| batch.producer_id));
        self.put_i16(row.batch.map(|batch| batch.producer_epoch));
        self.put_i32(row.batch.map(|batch| batch.base_sequence));
        self.put_i32(row.batch.map(|batch| batch.records));
    }

    fn put_bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else { return self.put_null() };
        self.out.put_i32(bytes.len() as i32);
        self.out.put_slice(bytes);
    }

    fn put_jsonb(&mut self, json: Option<&str>) {
        let Some(json) = json else { return self.put_null() };
        self.out.put_i32(json.len() as i32 + 1);
        self.out.put_u8(JSONB_VERSION);
        self.out.put_slice(json.as_bytes());
    }

    fn put_null(&mut self) {
        self.out.put_i32(-1);
    }

    fn put_i16(&mut self, value: Option<i16>) {
        let Some(value) = value else { return self.put_null() };
        self.out.put_i32(2);
        self.out.put_i16(value);
    }

    fn put_i32(&mut self, value: Option<i32>) {
        let Some(value) = value else { return self.put_null() };
        self.out.put_i32(4);
        self.out.put_i32(value);
    }

    fn put_i64(&mut self, value: Option<i64>) {
        let Some(value) = value else { return self.put_null() };
        self.out.put_i32(8);
        self.out.put_i64(value);
    }
}
