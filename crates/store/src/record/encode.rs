//! Records as rows of the message table: the mapping of keys, values, headers and timestamps to
//! columns is storage.md D4; reading it back is [`super::decode`].

use std::fmt::Write as _;

use clap::ValueEnum;
use wire::batch::{ProducedBatch, Record};

use super::headers;
use crate::partition::PartitionKey;

/// Bits of `kafka_flags`; NULL means none of them.
pub(crate) mod flags {
    pub(crate) const NULL_KEY: i16 = 1;
    pub(crate) const NULL_VALUE: i16 = 2;
    /// The key is in `kafka_key`; `routing_key` only shows it.
    pub(crate) const KEY_IN_BYTES: i16 = 4;
    /// The topic had `message.timestamp.type=LogAppendTime`: the timestamp is `enqueued_at`.
    pub(crate) const LOG_APPEND_TIME: i16 = 8;
}

/// `payload_compression` of the rows that the gateway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadCompression {
    None,
    /// Raw snappy blocks, pgQueue's codec 1
    Snappy,
}

const PLAIN: i16 = 0;
pub(crate) const SNAPPY: i16 = 1;

/// Where a batch goes: what the partition's lock holder knows and the batch does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) partition: PartitionKey,
    pub(crate) first_seq: i64,
    /// Set for LogAppendTime topics: the transaction's `now()` in milliseconds.
    pub(crate) log_append_time: Option<i64>,
}

/// The columns of a [`Row`], as every statement that writes rows names them.
pub(crate) const COLUMNS: &str = "topic_id, partition_id, enqueue_seq, routing_key, payload, \
     payload_compression, headers, kafka_key, kafka_flags, kafka_timestamp, kafka_max_timestamp, \
     kafka_producer_id, kafka_producer_epoch, kafka_base_sequence, kafka_batch_records";

/// One row. Columns that are not here take their defaults: `id`, `enqueued_at`, `priority`,
/// `content_type_id`.
pub(crate) struct Row<'a> {
    pub(crate) partition: PartitionKey,
    pub(crate) seq: i64,
    pub(crate) routing_key: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_compression: i16,
    /// JSON.
    pub(crate) headers: Option<&'a str>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) flags: Option<i16>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) max_timestamp: Option<i64>,
    /// Of the last row of an idempotent producer's batch.
    pub(crate) batch: Option<BatchColumns>,
}

#[derive(Clone, Copy)]
pub(crate) struct BatchColumns {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) records: i32,
}

/// Makes rows; keeps the buffers of what has to be encoded for them.
pub(crate) struct RowMaker {
    compression: PayloadCompression,
    snappy: snap::raw::Encoder,
    compressed: Vec<u8>,
    hex: String,
    json: String,
}

impl RowMaker {
    pub(crate) fn new(compression: PayloadCompression) -> Self {
        Self {
            compression,
            snappy: snap::raw::Encoder::new(),
            compressed: Vec::new(),
            hex: String::new(),
            json: String::new(),
        }
    }

    /// Hands each record of `batch` to `take` as a row; `max_timestamp` is the partition's running
    /// maximum and is moved on.
    pub(crate) fn each_row(
        &mut self,
        batch: &ProducedBatch,
        at: Placement,
        max_timestamp: &mut i64,
        mut take: impl FnMut(&Row<'_>),
    ) {
        let header = &batch.header;
        let columns = (header.producer_id >= 0).then_some(BatchColumns {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            records: header.records_count,
        });
        for (i, record) in batch.records().enumerate() {
            let timestamp = at.log_append_time.unwrap_or_else(|| batch.timestamp(&record));
            let is_last = i as i32 == header.records_count - 1;
            take(&Row {
                seq: at.first_seq + i as i64,
                timestamp: at.log_append_time.is_none().then_some(timestamp),
                max_timestamp: (timestamp < *max_timestamp).then_some(*max_timestamp),
                batch: columns.filter(|_| is_last),
                ..self.row(&record, at)
            });
            *max_timestamp = timestamp.max(*max_timestamp);
        }
    }

    /// What comes from the record alone.
    fn row<'a>(&'a mut self, record: &Record<'a>, at: Placement) -> Row<'a> {
        let mut flags = if at.log_append_time.is_some() { flags::LOG_APPEND_TIME } else { 0 };
        if record.value.is_none() {
            flags |= flags::NULL_VALUE;
        }
        let (routing_key, key) = match record.key {
            None => {
                flags |= flags::NULL_KEY;
                ("", None)
            }
            Some(key) => match postgres_text(key) {
                Some(text) => (text, None),
                None => {
                    flags |= flags::KEY_IN_BYTES;
                    fill_hex(key, &mut self.hex);
                    (self.hex.as_str(), Some(key))
                }
            },
        };
        let value = record.value.unwrap_or_default();
        let compressed = match self.compression {
            PayloadCompression::Snappy if !value.is_empty() => {
                self.compressed.resize(snap::raw::max_compress_len(value.len()), 0);
                // Fails only for inputs of 4 GiB and more, which no request can hold.
                self.snappy.compress(value, &mut self.compressed).ok()
            }
            _ => None,
        };
        let (payload, payload_compression) = match compressed {
            Some(length) => (&self.compressed[..length], SNAPPY),
            None => (value, PLAIN),
        };
        let headers = (!record.headers.is_empty()).then(|| {
            self.json.clear();
            headers::encode(record.headers.iter(), &mut self.json);
            self.json.as_str()
        });
        Row {
            partition: at.partition,
            seq: at.first_seq,
            routing_key,
            payload,
            payload_compression,
            headers,
            key,
            flags: (flags != 0).then_some(flags),
            timestamp: None,
            max_timestamp: None,
            batch: None,
        }
    }
}

/// What a `text` column can hold: UTF-8 without NUL.
fn postgres_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// A key that is no text, shown as Postgres shows a bytea: `\x00ff`.
fn fill_hex(key: &[u8], hex: &mut String) {
    hex.clear();
    hex.push_str("\\x");
    for byte in key {
        // A String takes everything.
        let _ = write!(hex, "{byte:02x}");
    }
}
