//! A row of the message table as a Kafka record: the reverse of [`super::encode`]. Rows of pgQueue's
//! clients and of plain SQL have NULL in our columns and read well: key = `routing_key`,
//! timestamp = `enqueued_at`.

use sqlx::{Row, postgres::PgRow};

use super::{
    columns::{PLAIN, RecordColumns, SNAPPY, flags},
    headers::{self, Header},
};
use crate::{error::StoreError, offset::Seq};

/// One record, borrowed from its row but for what had to be decoded.
pub(crate) struct RecordRow<'r> {
    pub(crate) seq: Seq,
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

impl RecordColumns {
    /// # Errors
    /// [`StoreError::Corrupt`] for a payload codec or headers that no reader understands.
    pub(crate) fn decode<'r>(&self, row: &'r PgRow) -> Result<RecordRow<'r>, StoreError> {
        let flags: i16 = row.try_get::<Option<i16>, _>(self.flags)?.unwrap_or(0);
        let key = if flags & flags::NULL_KEY != 0 {
            None
        } else if flags & flags::KEY_IN_BYTES != 0 {
            Some(row.try_get::<Option<&[u8]>, _>(self.key)?.unwrap_or_default())
        } else {
            Some(row.try_get::<&str, _>(self.routing_key)?.as_bytes())
        };
        let seq = Seq::new(row.try_get(self.seq)?);
        let value = if flags & flags::NULL_VALUE != 0 { None } else { Some(self.value(row, seq)?) };
        let headers = match row.try_get::<Option<&str>, _>(self.headers)? {
            Some(json) => headers::decode(json)?,
            None => Vec::new(),
        };
        let log_append_time = flags & flags::LOG_APPEND_TIME != 0;
        Ok(RecordRow { seq, timestamp: row.try_get(self.timestamp)?, log_append_time, key, value, headers })
    }

    fn value<'r>(&self, row: &'r PgRow, seq: Seq) -> Result<Value<'r>, StoreError> {
        let payload: &[u8] = row.try_get(self.payload)?;
        match row.try_get::<i16, _>(self.payload_compression)? {
            PLAIN => Ok(Value::Plain(payload)),
            SNAPPY => snap::raw::Decoder::new()
                .decompress_vec(payload)
                .map(|bytes| Value::Decompressed { bytes, stored_bytes: payload.len() })
                .map_err(|error| StoreError::Corrupt(format!("snappy payload of seq {}: {error}", seq.get()))),
            other => Err(StoreError::Corrupt(format!("unknown payload_compression {other} of seq {}", seq.get()))),
        }
    }
}
