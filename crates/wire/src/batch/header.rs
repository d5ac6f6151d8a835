use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{BatchError, Compression, MAGIC, TimestampType};

/// Bytes before the first record (Kafka: `DefaultRecordBatch.RECORD_BATCH_OVERHEAD`).
pub const HEADER_LEN: usize = 61;

/// Base offset and length field, which `batch_length` does not count (Kafka: `Records.LOG_OVERHEAD`).
pub(super) const LOG_OVERHEAD: usize = 12;

/// The magic byte has the same place in every record format.
pub(super) const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;

const COMPRESSION_MASK: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

/// The 61 bytes in front of the records, field by field (Kafka: `DefaultRecordBatch.java`).
///
/// `Default` is an empty CreateTime batch without a producer id; −1 means "none" in the producer fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes of the batch after this field.
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub magic: i8,
    /// CRC32C of everything from `attributes` to the end of the batch.
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    /// Milliseconds since the Unix epoch.
    pub base_timestamp: i64,
    /// Milliseconds since the Unix epoch; a producer's value is not to be trusted.
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records_count: i32,
}

impl Default for BatchHeader {
    fn default() -> Self {
        BatchHeader {
            base_offset: 0,
            batch_length: (HEADER_LEN - LOG_OVERHEAD) as i32,
            partition_leader_epoch: -1,
            magic: MAGIC,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: 0,
        }
    }
}

impl BatchHeader {
    /// Codec of the records.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] for the unassigned ids 5 to 7.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        match self.attributes & COMPRESSION_MASK {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            id => Err(BatchError::UnknownCompression(id as u8)),
        }
    }

    pub fn set_compression(&mut self, compression: Compression) {
        self.attributes = (self.attributes & !COMPRESSION_MASK) | compression as i16;
    }

    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    pub fn set_timestamp_type(&mut self, timestamp_type: TimestampType) {
        self.set(LOG_APPEND_TIME, timestamp_type == TimestampType::LogAppendTime);
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn set_transactional(&mut self, transactional: bool) {
        self.set(TRANSACTIONAL, transactional);
    }

    /// Transaction markers and the like, which only brokers write.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub fn set_control(&mut self, control: bool) {
        self.set(CONTROL, control);
    }

    /// `base_timestamp` is a compaction deadline instead (KIP-534); only brokers set it.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    fn set(&mut self, bit: i16, on: bool) {
        self.attributes = if on { self.attributes | bit } else { self.attributes & !bit };
    }

    /// An idempotent or transactional producer wrote the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// Offset of the last record, as far as the header is true.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The whole batch: this header, `payload` (already compressed as `attributes` says) and the right
    /// `batch_length` and `crc`, whatever those two fields hold. All other fields are written as they are,
    /// so that tests can also write what no producer should send.
    pub fn assemble(&self, payload: &[u8]) -> Bytes {
        let mut buf = BytesMut::with_capacity(HEADER_LEN + payload.len());
        self.put(&mut buf);
        buf.put_slice(payload);
        seal(&mut buf);
        buf.freeze()
    }

    /// The header's bytes; [`seal`] then makes length and CRC right.
    pub(super) fn put(&self, buf: &mut impl BufMut) {
        buf.put_i64(self.base_offset);
        buf.put_i32(self.batch_length);
        buf.put_i32(self.partition_leader_epoch);
        buf.put_i8(self.magic);
        buf.put_u32(self.crc);
        buf.put_i16(self.attributes);
        buf.put_i32(self.last_offset_delta);
        buf.put_i64(self.base_timestamp);
        buf.put_i64(self.max_timestamp);
        buf.put_i64(self.producer_id);
        buf.put_i16(self.producer_epoch);
        buf.put_i32(self.base_sequence);
        buf.put_i32(self.records_count);
    }

    pub(super) fn read(bytes: &[u8; HEADER_LEN]) -> Self {
        let mut fields = &bytes[..];
        BatchHeader {
            base_offset: fields.get_i64(),
            batch_length: fields.get_i32(),
            partition_leader_epoch: fields.get_i32(),
            magic: fields.get_i8(),
            crc: fields.get_u32(),
            attributes: fields.get_i16(),
            last_offset_delta: fields.get_i32(),
            base_timestamp: fields.get_i64(),
            max_timestamp: fields.get_i64(),
            producer_id: fields.get_i64(),
            producer_epoch: fields.get_i16(),
            base_sequence: fields.get_i32(),
            records_count: fields.get_i32(),
        }
    }
}

/// CRC32C over a whole batch, from its attributes on (the base offset and the leader epoch are outside,
/// so that a broker can set them without computing it again).
pub(super) fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[ATTRIBUTES_AT..])
}

/// Writes the length and the CRC into a whole batch of at least [`HEADER_LEN`] bytes.
pub(super) fn seal(batch: &mut [u8]) {
    let length = (batch.len() - LOG_OVERHEAD) as i32;
    batch[8..LOG_OVERHEAD].copy_from_slice(&length.to_be_bytes());
    let crc = checksum(batch);
    batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
}
