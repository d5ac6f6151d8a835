//! Records as rows of the message table in the format of `COPY … (FORMAT binary)`.
//!
//! The mapping of keys, values, headers and timestamps to columns is storage.md D4; reading it back
//! is [`crate::read::row`].

use bytes::{BufMut, BytesMut};
use wire::batch::{ProducedBatch, Record};

use crate::{headers, partition::PartitionKey};

/// Bits of `kafka_flags`; NULL means none of them.
pub(crate) mod flags {
    pub(crate) const NULL_KEY: i16 = 1;
    pub(crate) const NULL_VALUE: i16 = 2;
    /// The key is in `kafka_key`; `routing_key` only shows it.
    pub(crate) const KEY_IN_BYTES: i16 = 4;
    /// The topic had `message.timestamp.type=LogAppendTime`: the timestamp is `enqueued_at`.
    pub(crate) const LOG_APPEND_TIME: i16 = 8;
}

/// Columns in the order in which [`RowEncoder`] writes them. Those that are not named take their
/// defaults: `id`, `enqueued_at`, `priority`, `content_type_id`.
pub(crate) const COLUMNS: &str = "topic_id, partition_id, enqueue_seq, routing_key, payload, \
     payload_compression, headers, kafka_key, kafka_flags, kafka_timestamp, kafka_max_timestamp, \
     kafka_producer_id, kafka_producer_epoch, kafka_base_sequence, kafka_batch_records";
const COLUMN_COUNT: i16 = 15;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
const JSONB_VERSION: u8 = 1;

/// `payload_compression` of the rows that the gateway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PayloadCompression {
    #[default]
    None,
    /// A raw snappy block, as pgQueue's clients write it.
    Snappy,
}

pub(crate) const SNAPPY: i16 = 1;

/// Where a batch goes: what the partition's lock holder knows and the batch does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) partition: PartitionKey,
    pub(crate) first_seq: i64,
    /// Set for LogAppendTime topics: the transaction's `now()` in milliseconds.
    pub(crate) log_append_time: Option<i64>,
}

/// Writes the rows of one COPY.
pub(crate) struct RowEncoder {
    out: BytesMut,
    compression: PayloadCompression,
    snappy: snap::raw::Encoder,
    scratch: Vec<u8>,
    json: String,
}

impl RowEncoder {
    pub(crate) fn new(compression: PayloadCompression) -> Self {
        let mut out = BytesMut::with_capacity(256 * 1024);
        out.put_slice(SIGNATURE);
        out.put_i32(0); // flags
        out.put_i32(0); // length of the header extension
        Self { out, compression, snappy: snap::raw::Encoder::new(), scratch: Vec::new(), json: String::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// The bytes so far, to be sent.
    pub(crate) fn take(&mut self) -> BytesMut {
        self.out.split()
    }

    pub(crate) fn finish(mut self) -> BytesMut {
        self.out.put_i16(-1);
        self.out
    }

    /// Encodes the records of `batch` as rows; `max_timestamp` is the partition's running maximum
    /// and is moved on.
    pub(crate) fn push_batch(&mut self, batch: &ProducedBatch, at: Placement, max_timestamp: &mut i64) {
        let header = &batch.header;
        for (i, record) in batch.records().enumerate() {
            let timestamp = at.log_append_time.unwrap_or_else(|| batch.timestamp(&record));
            let seq = at.first_seq + i as i64;
            self.push_record(&record, at, seq, timestamp, *max_timestamp);
            *max_timestamp = timestamp.max(*max_timestamp);
            if header.producer_id >= 0 && i as i32 == header.records_count - 1 {
                self.put_i64(header.producer_id);
                self.put_i16(header.producer_epoch);
                self.put_i32(header.base_sequence);
                self.put_i32(header.records_count);
            } else {
                for _ in 0..4 {
                    self.put_null();
                }
            }
        }
    }

    /// Every column but the last four.
    fn push_record(&mut self, record: &Record<'_>, at: Placement, seq: i64, timestamp: i64, max_timestamp: i64) {
        self.out.put_i16(COLUMN_COUNT);
        self.put_i64(at.partition.topic_id);
        self.put_i32(at.partition.partition_id);
        self.put_i64(seq);

        let mut flags = if at.log_append_time.is_some() { flags::LOG_APPEND_TIME } else { 0 };
        let mut key_bytes = None;
        match record.key {
            None => {
                flags |= flags::NULL_KEY;
                self.put_bytes(b"");
            }
            Some(key) if is_postgres_text(key) => self.put_bytes(key),
            Some(key) => {
                flags |= flags::KEY_IN_BYTES;
                key_bytes = Some(key);
                self.put_hex(key);
            }
        }
        if record.value.is_none() {
            flags |= flags::NULL_VALUE;
        }
        self.put_payload(record.value.unwrap_or_default());
        self.put_headers(record);
        match key_bytes {
            Some(key) => self.put_bytes(key),
            None => self.put_null(),
        }
        match flags {
            0 => self.put_null(),
            flags => self.put_i16(flags),
        }
        match at.log_append_time {
            None => self.put_i64(timestamp),
            Some(_) => self.put_null(),
        }
        if timestamp >= max_timestamp {
            self.put_null();
        } else {
            self.put_i64(max_timestamp);
        }
    }

    fn put_payload(&mut self, value: &[u8]) {
        match self.compression {
            PayloadCompression::Snappy if !value.is_empty() => {
                self.scratch.resize(snap::raw::max_compress_len(value.len()), 0);
                // Fails only for inputs of 4 GiB and more, which no request can hold.
                if let Ok(len) = self.snappy.compress(value, &mut self.scratch) {
                    self.out.put_i32(len as i32);
                    self.out.put_slice(&self.scratch[..len]);
                    self.put_i16(SNAPPY);
                    return;
                }
                self.put_plain_payload(value);
            }
            _ => self.put_plain_payload(value),
        }
    }

    fn put_plain_payload(&mut self, value: &[u8]) {
        self.put_bytes(value);
        self.put_i16(0);
    }

    fn put_headers(&mut self, record: &Record<'_>) {
        if record.headers.is_empty() {
            return self.put_null();
        }
        self.json.clear();
        headers::encode(record.headers.iter(), &mut self.json);
        self.out.put_i32(self.json.len() as i32 + 1);
        self.out.put_u8(JSONB_VERSION);
        self.out.put_slice(self.json.as_bytes());
    }

    /// A key that is no text, shown as Postgres shows a bytea: `\x00ff`.
    fn put_hex(&mut self, key: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.out.put_i32(2 + 2 * key.len() as i32);
        self.out.put_slice(b"\\x");
        for byte in key {
            self.out.put_u8(DIGITS[usize::from(byte >> 4)]);
            self.out.put_u8(DIGITS[usize::from(byte & 15)]);
        }
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.out.put_i32(bytes.len() as i32);
        self.out.put_slice(bytes);
    }

    fn put_null(&mut self) {
        self.out.put_i32(-1);
    }

    fn put_i16(&mut self, value: i16) {
        self.out.put_i32(2);
        self.out.put_i16(value);
    }

    fn put_i32(&mut self, value: i32) {
        self.out.put_i32(4);
        self.out.put_i32(value);
    }

    fn put_i64(&mut self, value: i64) {
        self.out.put_i32(8);
        self.out.put_i64(value);
    }
}

/// Whether a `text` column holds these bytes: UTF-8 without NUL.
fn is_postgres_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}
