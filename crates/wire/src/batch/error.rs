use thiserror::Error;

use super::{Compression, MAGIC};

/// Why bytes are not the record batch they should be.
///
/// The variants are as fine as the answers differ: the gateway maps them to CORRUPT_MESSAGE,
/// MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE and INVALID_RECORD, as named at
/// each variant. CORRUPT_MESSAGE is retriable, so it is only for what a second send can heal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// No bytes at all (Kafka: `ProduceRequest.validateRecords`) — INVALID_RECORD.
    #[error("no record batch")]
    Empty,
    /// The bytes end before the batch does (Kafka: `ProduceRequest.validateRecords` finds no batch) — INVALID_RECORD.
    #[error("record batch is cut short: {needed} bytes needed, {available} there")]
    Truncated { needed: usize, available: usize },
    /// The length field is negative or smaller than a batch header (Kafka: `ByteBufferLogInputStream.java`) — CORRUPT_MESSAGE.
    #[error("record batch claims a length of {0}")]
    InvalidLength(i32),
    /// A message set of format 0 or 1 (Kafka: `ProduceRequest.validateRecords`) — INVALID_RECORD.
    #[error("record format {0} is not supported, only {MAGIC}")]
    OldMagic(i8),
    /// A format that does not exist — CORRUPT_MESSAGE.
    #[error("unknown record format {0}")]
    UnknownMagic(i8),
    /// The CRC32C does not match — CORRUPT_MESSAGE.
    #[error("record batch checksum does not match (stored {stored:#010x}, computed {computed:#010x})")]
    CrcMismatch { stored: u32, computed: u32 },
    /// The batch as sent is larger than `max.message.bytes` — MESSAGE_TOO_LARGE.
    #[error("record batch of {size} bytes is larger than the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
    /// The records inflate beyond the limit — MESSAGE_TOO_LARGE, on which producers split the batch.
    #[error("record batch is larger than {limit} bytes when decompressed")]
    DecompressedTooLarge { limit: usize },
    /// Something follows the one batch a producer may send (Kafka: `ProduceRequest.validateRecords`) — INVALID_RECORD.
    #[error("{0} bytes follow the record batch; exactly one batch is allowed")]
    MoreThanOneBatch(usize),
    /// Compression ids 5 to 7 are not assigned — UNSUPPORTED_COMPRESSION_TYPE.
    #[error("unknown compression type {0}")]
    UnknownCompression(u8),
    /// The CRC is right but the payload does not decompress; sending it again cannot help — INVALID_RECORD.
    #[error("records do not decompress as {codec}: {reason}")]
    Decompression { codec: Compression, reason: String },
    /// The LogAppendTime bit belongs to the broker (Kafka: `LogValidator.validateTimestamp`) — INVALID_TIMESTAMP.
    #[error("a producer must not set the timestamp type to LogAppendTime")]
    LogAppendTimeFromProducer,
    /// A header field that no producer may send like this (Kafka: `LogValidator.validateBatch`) — INVALID_RECORD.
    #[error("record batch header: {field} is {value}, which is not allowed")]
    InvalidHeader { field: &'static str, value: i64 },
    /// `records_count` is not what the batch spans or holds (Kafka: `LogValidator.validateBatch`) — INVALID_RECORD.
    #[error("record batch claims {claimed} records but has {actual}")]
    RecordCount { claimed: i32, actual: i64 },
    /// A record is malformed (Kafka: `DefaultRecord.readFrom`) — INVALID_RECORD.
    #[error("record {index} is malformed: {reason}")]
    MalformedRecord { index: i32, reason: &'static str },
    /// Bytes follow the last record (Kafka: `DefaultRecordBatch`, incorrect declared batch size) — INVALID_RECORD.
    #[error("{0} bytes follow the last record of the batch")]
    BytesAfterRecords(usize),
}
