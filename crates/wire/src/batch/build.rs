use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::compression::compress;
use super::header::seal;
use super::{BatchError, BatchHeader, Compression, HEADER_LEN, TimestampType, varint};

/// The record cannot be in this batch; finish it and start the next one at the record's offset.
///
/// The reasons: its offset is not above the previous one or is 2^31 or more above the base offset, the batch
/// would be larger than 2^31 − 1 bytes, or the batch has the type LogAppendTime and the timestamp differs
/// (readers take one time for all its records).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the record does not fit into this batch")]
pub struct BatchFull;

/// What a producer adds to a batch. The default is a plain, uncompressed batch without a producer id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerFields {
    pub compression: Compression,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub transactional: bool,
}

impl Default for ProducerFields {
    fn default() -> Self {
        ProducerFields {
            compression: Compression::None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            transactional: false,
        }
    }
}

/// Writes records into one batch of format 2. Offsets rise and may have gaps.
#[derive(Debug)]
pub struct BatchBuilder {
    /// The header's room, then the records.
    buf: BytesMut,
    header: BatchHeader,
}

impl BatchBuilder {
    /// `base_offset` must not be above the first record's offset; `partition_leader_epoch` is −1 in a producer's batch.
    pub fn new(base_offset: i64, partition_leader_epoch: i32, timestamp_type: TimestampType) -> Self {
        let mut header = BatchHeader { base_offset, partition_leader_epoch, ..BatchHeader::default() };
        header.set_timestamp_type(timestamp_type);
        let mut buf = BytesMut::with_capacity(4096);
        buf.put_bytes(0, HEADER_LEN);
        BatchBuilder { buf, header }
    }

    /// Appends one record. `timestamp` is in milliseconds since the Unix epoch; −1 means none.
    ///
    /// # Errors
    /// [`BatchFull`]; the batch is then as before.
    pub fn push<'h>(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'h [u8], Option<&'h [u8]>)> + Clone,
    ) -> Result<(), BatchFull> {
        let offset_delta = self.offset_delta(offset)?;
        let first = self.header.records_count == 0;
        let base_timestamp = if first { timestamp } else { self.header.base_timestamp };
        if self.header.timestamp_type() == TimestampType::LogAppendTime && timestamp != base_timestamp {
            return Err(BatchFull);
        }
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let (length, encoded) = record_sizes(timestamp_delta, offset_delta, key, value, headers.clone());
        if self.buf.len() + encoded > i32::MAX as usize {
            return Err(BatchFull);
        }

        self.buf.reserve(encoded);
        varint::put(&mut self.buf, length as i64);
        self.buf.put_i8(0);
        varint::put(&mut self.buf, timestamp_delta);
        varint::put(&mut self.buf, i64::from(offset_delta));
        put_bytes(&mut self.buf, key);
        put_bytes(&mut self.buf, value);
        varint::put(&mut self.buf, headers.len() as i64);
        for (key, value) in headers {
            put_bytes(&mut self.buf, Some(key));
            put_bytes(&mut self.buf, value);
        }

        self.header.records_count += 1;
        self.header.last_offset_delta = offset_delta;
        self.header.base_timestamp = base_timestamp;
        self.header.max_timestamp = if first { timestamp } else { self.header.max_timestamp.max(timestamp) };
        Ok(())
    }

    /// Bytes of the batch if the record were pushed and the batch finished uncompressed; the same arguments as for
    /// [`BatchBuilder::push`], which may still refuse the record.
    pub fn encoded_size_with<'h>(
        &self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    ) -> usize {
        let base_timestamp = if self.is_empty() { timestamp } else { self.header.base_timestamp };
        let offset_delta = offset.wrapping_sub(self.header.base_offset) as i32;
        let (_, encoded) = record_sizes(timestamp.wrapping_sub(base_timestamp), offset_delta, key, value, headers);
        self.buf.len() + encoded
    }

    fn offset_delta(&self, offset: i64) -> Result<i32, BatchFull> {
        let delta = offset.checked_sub(self.header.base_offset).ok_or(BatchFull)?;
        let delta = i32::try_from(delta).map_err(|_| BatchFull)?;
        let lowest = if self.header.records_count == 0 { 0 } else { self.header.last_offset_delta.saturating_add(1) };
        // At i32::MAX the saturated bound would let the same offset in twice.
        let repeated = self.header.records_count > 0 && delta == self.header.last_offset_delta;
        if delta < lowest || repeated { Err(BatchFull) } else { Ok(delta) }
    }

    /// Bytes of the batch if it were finished uncompressed now.
    pub fn encoded_size(&self) -> usize {
        self.buf.len()
    }

    pub fn record_count(&self) -> usize {
        self.header.records_count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.header.records_count == 0
    }

    /// The uncompressed batch, or no bytes when there is no record (so does Kafka answer an empty Fetch).
    pub fn finish(mut self) -> Bytes {
        if self.is_empty() {
            return Bytes::new();
        }
        self.header.put(&mut &mut self.buf[..HEADER_LEN]);
        seal(&mut self.buf);
        self.buf.freeze()
    }

    /// The batch as a producer would send it.
    ///
    /// # Errors
    /// As for [`compress`].
    pub fn finish_as(mut self, fields: &ProducerFields) -> Result<Bytes, BatchError> {
        self.header.producer_id = fields.producer_id;
        self.header.producer_epoch = fields.producer_epoch;
        self.header.base_sequence = fields.base_sequence;
        self.header.set_transactional(fields.transactional);
        self.header.set_compression(fields.compression);
        if fields.compression == Compression::None {
            return Ok(self.finish());
        }
        let payload = compress(fields.compression, &self.buf[HEADER_LEN..])?;
        Ok(self.header.assemble(&payload))
    }

    /// The header so far and the uncompressed records, for whoever wants to change a field before
    /// [`BatchHeader::assemble`].
    pub fn into_parts(mut self) -> (BatchHeader, Bytes) {
        let records = self.buf.split_off(HEADER_LEN);
        (self.header, records.freeze())
    }
}

/// What a record's length field says, and the bytes of the record with that field.
fn record_sizes<'h>(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl ExactSizeIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
) -> (usize, usize) {
    let length = 1
        + varint::size(timestamp_delta)
        + varint::size(i64::from(offset_delta))
        + bytes_size(key)
        + bytes_size(value)
        + varint::size(headers.len() as i64)
        + headers.map(|(key, value)| bytes_size(Some(key)) + bytes_size(value)).sum::<usize>();
    (length, varint::size(length as i64) + length)
}

fn bytes_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size(bytes.len() as i64) + bytes.len())
}

fn put_bytes(buf: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint::put(buf, bytes.len() as i64);
            buf.put_slice(bytes);
        }
        None => varint::put(buf, -1),
    }
}
