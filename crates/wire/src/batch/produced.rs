use std::borrow::Cow;

use bytes::Bytes;

use super::{BatchError, BatchHeader, BatchView, HEADER_LEN, Record, Records, TimestampType};

/// What a producer's batch may measure, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceLimits {
    /// The batch as sent, header included (Kafka: `max.message.bytes`).
    pub max_batch_bytes: usize,
    /// The records after decompression.
    pub max_decompressed_bytes: usize,
}

/// A batch from a producer that passed every check which needs nothing but its bytes.
#[derive(Debug, Clone)]
pub struct ProducedBatch {
    pub header: BatchHeader,
    /// The records, decompressed; a slice of the request when they came uncompressed.
    pub records: Bytes,
    /// What the records are like, told once, so that whoever checks them need not read them again.
    pub summary: RecordSummary,
}

/// Of all records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSummary {
    /// In milliseconds; the largest in the header is only a claim.
    pub min_timestamp: i64,
    pub max_timestamp: i64,
    pub has_null_key: bool,
}

impl ProducedBatch {
    /// Checks the `records` field of one partition in a Produce request.
    ///
    /// The rules are those of Kafka's `ProduceRequest.validateRecords`, `LogValidator.validateBatch` and
    /// `UnifiedLog.analyzeAndValidateRecords`. Stricter than Kafka in four points, where it would store
    /// something nobody can read rightly: bytes after the batch, offset deltas other than 0, 1, 2…,
    /// a delete horizon and a producer id below −1 are refused. Codecs older clients must not use
    /// (zstd before Produce 7) are the caller's part, as they depend on the request's version.
    ///
    /// # Errors
    /// Every variant of [`BatchError`] can be the result; the first failed check decides.
    pub fn validate(bytes: Bytes, limits: ProduceLimits) -> Result<ProducedBatch, BatchError> {
        let (view, rest) = BatchView::parse(&bytes)?;
        if !rest.is_empty() {
            return Err(BatchError::MoreThanOneBatch(rest.len()));
        }
        if bytes.len() > limits.max_batch_bytes {
            return Err(BatchError::TooLarge { size: bytes.len(), limit: limits.max_batch_bytes });
        }
        let header = view.header().clone();
        let computed = view.computed_crc();
        if computed != header.crc {
            return Err(BatchError::CrcMismatch { stored: header.crc, computed });
        }
        header.compression()?;
        check_header(&header)?;
        let records = match view.decompress(limits.max_decompressed_bytes)? {
            Cow::Borrowed(_) => bytes.slice(HEADER_LEN..),
            Cow::Owned(records) => Bytes::from(records),
        };
        let summary = walk(&header, &records)?;
        Ok(ProducedBatch { header, records, summary })
    }

    /// The records in offset order. Cannot fail, as [`ProducedBatch::validate`] has read them all.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> + Clone {
        Records::new(&self.records).map_while(Result::ok)
    }

    /// Number of records: at least 1.
    pub fn record_count(&self) -> usize {
        self.header.records_count as usize
    }

    /// A record's timestamp in milliseconds since the Unix epoch; −1 when the producer gave none.
    pub fn timestamp(&self, record: &Record<'_>) -> i64 {
        timestamp(&self.header, record)
    }
}

fn timestamp(header: &BatchHeader, record: &Record<'_>) -> i64 {
    // Wraps as Java's sum does; whether a time is plausible is for the topic's configuration to say.
    header.base_timestamp.wrapping_add(record.timestamp_delta)
}

fn check_header(header: &BatchHeader) -> Result<(), BatchError> {
    let invalid = |field, value| Err(BatchError::InvalidHeader { field, value });
    if header.base_offset != 0 {
        return invalid("base_offset", header.base_offset);
    }
    let spanned = i64::from(header.last_offset_delta) + 1;
    if header.records_count < 1 || i64::from(header.records_count) != spanned {
        return Err(BatchError::RecordCount { claimed: header.records_count, actual: spanned });
    }
    if header.timestamp_type() == TimestampType::LogAppendTime {
        return Err(BatchError::LogAppendTimeFromProducer);
    }
    if header.is_control() || header.has_delete_horizon() {
        return invalid("attributes", i64::from(header.attributes));
    }
    if header.producer_id < -1 || (header.is_transactional() && !header.has_producer_id()) {
        return invalid("producer_id", header.producer_id);
    }
    // Without a producer id the two fields mean nothing and clients fill them as they like.
    if header.has_producer_id() && header.base_sequence < 0 {
        return invalid("base_sequence", i64::from(header.base_sequence));
    }
    if header.has_producer_id() && header.producer_epoch < 0 {
        return invalid("producer_epoch", i64::from(header.producer_epoch));
    }
    Ok(())
}

/// Reads all records once; their number and offsets must be what the header says.
fn walk(header: &BatchHeader, bytes: &[u8]) -> Result<RecordSummary, BatchError> {
    let mut records = Records::new(bytes);
    let mut summary = RecordSummary { min_timestamp: i64::MAX, max_timestamp: i64::MIN, has_null_key: false };
    for index in 0..header.records_count {
        let Some(record) = records.next().transpose()? else {
            return Err(BatchError::RecordCount { claimed: header.records_count, actual: i64::from(index) });
        };
        if record.offset_delta != index {
            return Err(BatchError::MalformedRecord { index, reason: "offset is not consecutive" });
        }
        let timestamp = timestamp(header, &record);
        summary.min_timestamp = summary.min_timestamp.min(timestamp);
        summary.max_timestamp = summary.max_timestamp.max(timestamp);
        summary.has_null_key |= record.key.is_none();
    }
    match records.remaining() {
        0 => Ok(summary),
        left => Err(BatchError::BytesAfterRecords(left)),
    }
}
