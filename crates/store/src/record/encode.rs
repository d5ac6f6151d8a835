//! Records as rows; [`super::decode`] is the reverse.

use std::fmt::Write as _;

use clap::ValueEnum;
use wire::batch::{ProducedBatch, Record};

use super::{
    column::Json,
    columns::{PLAIN, Row, SNAPPY, flags},
    headers,
};
use crate::{offset::Seq, partition::PartitionKey};

/// `payload_compression` of the rows that the gateway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadCompression {
    None,
    /// Raw snappy blocks, pgQueue's codec 1
    Snappy,
}

/// Where a batch goes: what the partition's lock holder knows and the batch does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) partition: PartitionKey,
    pub(crate) first_seq: Seq,
    /// Set for LogAppendTime topics: the transaction's `now()` in milliseconds.
    pub(crate) log_append_time: Option<i64>,
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
        let is_idempotent = header.producer_id >= 0;
        for (index, record) in (0..).zip(batch.records()) {
            let timestamp = at.log_append_time.unwrap_or_else(|| batch.timestamp(&record));
            let ends_batch = is_idempotent && index == header.records_count - 1;
            take(&Row {
                seq: at.first_seq.plus(i64::from(index)),
                timestamp: at.log_append_time.is_none().then_some(timestamp),
                max_timestamp: (timestamp < *max_timestamp).then_some(*max_timestamp),
                producer_id: ends_batch.then_some(header.producer_id),
                producer_epoch: ends_batch.then_some(header.producer_epoch),
                base_sequence: ends_batch.then_some(header.base_sequence),
                batch_records: ends_batch.then_some(header.records_count),
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
            Json(self.json.as_str())
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
            producer_id: None,
            producer_epoch: None,
            base_sequence: None,
            batch_records: None,
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
