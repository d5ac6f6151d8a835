//! A row of the message table as a Kafka record: the reverse of [`super::encode`]. Rows of pgQueue's
//! clients and of plain SQL have NULL in our columns and read well: key = `routing_key`,
//! timestamp = `enqueued_at`.

use sqlx::{Row, postgres::PgRow};

use super::{
    encode::{SNAPPY, flags},
    headers::{self, Header},
};
use crate::error::StoreError;

/// Columns of the statement `read_rows`.
mod column {
    pub(crate) const SEQ: usize = 0;
    pub(crate) const TIMESTAMP: usize = 1;
    pub(crate) const FLAGS: usize = 2;
    pub(crate) const ROUTING_KEY: usize = 3;
    pub(crate) const KEY: usize = 4;
    pub(crate) const PAYLOAD: usize = 5;
    pub(crate) const COMPRESSION: usize = 6;
    pub(crate) const HEADERS: usize = 7;
}

/// One record, borrowed from its row but for what had to be decoded.
pub(crate) struct RecordRow<'r> {
    pub(crate) seq: i64,
    /// Milliseconds.
    pub(crate) timestamp: i64,
    pub(crate) log_append_time: bool,
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: Option<Value<'r>>,
    pub(crate) headers: Vec<Header>,
}

impl RecordRow<'_> {
    /// About its bytes in Postgres.
    pub(crate) fn size(&self) -> usize {
        let value = match &self.value {
            Some(Value::Plain(bytes)) => bytes.len(),
            Some(Value::Decompressed { stored_bytes, .. }) => *stored_bytes,
            None => 0,
        };
        let header = |header: &Header| header.key.len() + header.value.as_ref().map_or(0, Vec::len);
        self.key.map_or(0, <[u8]>::len) + value + self.headers.iter().map(header).sum::<usize>()
    }
}

pub(crate) enum Value<'r> {
    Plain(&'r [u8]),
    Decompressed { bytes: Vec<u8>, stored_bytes: usize },
}

impl Value<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Value::Plain(bytes) => bytes,
            Value::Decompressed { bytes, .. } => bytes,
        }
    }
}

pub(crate) fn seq(row: &PgRow) -> Result<i64, StoreError> {
    Ok(row.try_get(column::SEQ)?)
}

/// # Errors
/// [`StoreError::Corrupt`] for a payload codec or headers that nobody can read.
pub(crate) fn decode(row: &PgRow) -> Result<RecordRow<'_>, StoreError> {
    let flags: i16 = row.try_get::<Option<i16>, _>(column::FLAGS)?.unwrap_or(0);
    let key = if flags & flags::NULL_KEY != 0 {
        None
    } else if flags & flags::KEY_IN_BYTES != 0 {
        Some(row.try_get::<Option<&[u8]>, _>(column::KEY)?.unwrap_or_default())
    } else {
        Some(row.try_get::<&str, _>(column::ROUTING_KEY)?.as_bytes())
    };
    let value = if flags & flags::NULL_VALUE != 0 { None } else { Some(value(row)?) };
    let headers = match row.try_get::<Option<&str>, _>(column::HEADERS)? {
        Some(json) => headers::decode(json)?,
        None => Vec::new(),
    };
    Ok(RecordRow {
        seq: seq(row)?,
        timestamp: row.try_get(column::TIMESTAMP)?,
        log_append_time: flags & flags::LOG_APPEND_TIME != 0,
        key,
        value,
        headers,
    })
}

fn value(row: &PgRow) -> Result<Value<'_>, StoreError> {
    let payload: &[u8] = row.try_get(column::PAYLOAD)?;
    match row.try_get::<i16, _>(column::COMPRESSION)? {
        0 => Ok(Value::Plain(payload)),
        SNAPPY => snap::raw::Decoder::new()
            .decompress_vec(payload)
            .map(|bytes| Value::Decompressed { bytes, stored_bytes: payload.len() })
            .map_err(|error| StoreError::Corrupt(format!("snappy payload of seq {}: {error}", row_seq(row)))),
        other => Err(StoreError::Corrupt(format!("unknown payload_compression {other} of seq {}", row_seq(row)))),
    }
}

fn row_seq(row: &PgRow) -> i64 {
    seq(row).unwrap_or_default()
}
