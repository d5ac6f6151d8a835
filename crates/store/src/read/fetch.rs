//! Reading a range of one partition as record batches.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use wire::batch::{BatchBuilder, HEADER_LEN, TimestampType};

use super::row::{self, RecordRow};
use crate::{Store, error::StoreError, hub::Bounds, partition::PartitionKey};

/// Rows that one read asks for at the most. Many small rows cost more than their bytes say: each is
/// a few hundred bytes of memory between Postgres and the batch.
const MAX_ROWS: i64 = 20_000;

/// A row's weight beside its payload, for guessing how many rows fill a byte limit.
const LEAST_ROW_BYTES: usize = 64;

/// How much one read may return.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimit {
    /// Bytes of the record batches.
    pub max_bytes: usize,
    /// The first record comes even if it is larger (KIP-74: a consumer must get past it).
    pub at_least_one: bool,
}

/// What one read found.
#[derive(Debug)]
pub struct Fetched {
    /// Whole record batches, empty at the end of the log.
    pub records: Bytes,
    pub bounds: Bounds,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Below the start or above the end of the log.
    #[error("the offset is outside of the log")]
    OffsetOutOfRange(Bounds),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Reads records from `offset` on, as many as `limit` lets in.
    ///
    /// `known` is where the caller believes the log to be ([`Store::known_bounds`]); at its end
    /// nothing is asked of Postgres.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`], or [`StoreError`] as Postgres answers.
    pub async fn fetch(
        &self,
        partition: PartitionKey,
        offset: i64,
        limit: ReadLimit,
        known: Bounds,
    ) -> Result<Fetched, ReadError> {
        let mut bounds = known;
        if offset > bounds.high_watermark {
            // Somebody else may have appended what the client has already seen elsewhere.
            bounds = self.fresh_bounds(partition).await?;
        }
        if offset < bounds.log_start_offset || offset > bounds.high_watermark {
            return Err(ReadError::OffsetOutOfRange(bounds));
        }
        if offset == bounds.high_watermark {
            return Ok(Fetched { records: Bytes::new(), bounds });
        }
        let range = self.read_range(partition, offset, limit, bounds.leader_epoch).await?;
        if range.first_offset != Some(offset) {
            // Records are missing here: a gap inside the log is legal, but if retention has passed
            // the offset the client has to know.
            bounds = self.fresh_bounds(partition).await?;
            if offset < bounds.log_start_offset {
                return Err(ReadError::OffsetOutOfRange(bounds));
            }
        }
        bounds.high_watermark = bounds.high_watermark.max(range.next_offset);
        Ok(Fetched { records: range.records, bounds })
    }

    async fn fresh_bounds(&self, partition: PartitionKey) -> Result<Bounds, StoreError> {
        let found = self.partition_bounds(&[partition]).await?;
        found.get(&partition).copied().ok_or_else(|| StoreError::Corrupt("no bounds for a partition".into()))
    }

    async fn read_range(
        &self,
        partition: PartitionKey,
        offset: i64,
        limit: ReadLimit,
        leader_epoch: i32,
    ) -> Result<Range, StoreError> {
        let row_limit = (limit.max_bytes / LEAST_ROW_BYTES + 1).min(MAX_ROWS as usize) as i64;
        let mut connection = self.acquire().await?;
        let mut rows = self
            .statements()
            .read_rows()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(offset + 1)
            .bind(row_limit)
            .bind(limit.max_bytes as i64)
            .fetch(&mut *connection);
        let mut range = RangeBuilder::new(leader_epoch, limit);
        // The statement's limit is a guess from the bytes in the table: a record has a frame and a
        // compressed payload grows. The few rows that are left over are read again by the next fetch.
        while let Some(row) = rows.try_next().await? {
            if !range.is_full {
                range.push(row::decode(&row)?);
            }
        }
        Ok(range.finish())
    }
}

struct Range {
    records: Bytes,
    first_offset: Option<i64>,
    next_offset: i64,
}

/// Packs records into as few batches as their timestamp types allow.
struct RangeBuilder {
    leader_epoch: i32,
    limit: ReadLimit,
    /// A record was left out, and so is everything after it.
    is_full: bool,
    finished: BytesMut,
    open: Option<(TimestampType, BatchBuilder)>,
    first_offset: Option<i64>,
    next_offset: i64,
}

impl RangeBuilder {
    fn new(leader_epoch: i32, limit: ReadLimit) -> Self {
        Self {
            leader_epoch,
            limit,
            is_full: false,
            finished: BytesMut::new(),
            open: None,
            first_offset: None,
            next_offset: 0,
        }
    }

    fn push(&mut self, record: RecordRow<'_>) {
        let offset = record.seq - 1;
        self.first_offset.get_or_insert(offset);
        self.next_offset = offset + 1;
        let timestamp_type =
            if record.log_append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        if self.open.as_ref().is_some_and(|(open_type, _)| *open_type != timestamp_type) {
            self.close();
        }
        if !self.has_room(&record, timestamp_type) {
            self.is_full = true;
        } else if self.try_push(&record, timestamp_type).is_err() {
            // Full, or a LogAppendTime batch whose one timestamp is another. A new batch takes it.
            self.close();
            let _ = self.try_push(&record, timestamp_type);
        }
    }

    /// The batch that is open, or a new one that starts at `offset`.
    fn open(&mut self, offset: i64, timestamp_type: TimestampType) -> &mut BatchBuilder {
        let leader_epoch = self.leader_epoch;
        let new = || (timestamp_type, BatchBuilder::new(offset, leader_epoch, timestamp_type));
        &mut self.open.get_or_insert_with(new).1
    }

    fn has_room(&mut self, record: &RecordRow<'_>, timestamp_type: TimestampType) -> bool {
        let offset = record.seq - 1;
        let limit = self.limit;
        let finished = self.finished.len();
        let batch = self.open(offset, timestamp_type);
        if limit.at_least_one && finished == 0 && batch.is_empty() {
            return true;
        }
        // A record with an append time of its own needs a batch of its own.
        let own_batch = timestamp_type == TimestampType::LogAppendTime && !batch.is_empty();
        let value = record.value.as_ref().map(|value| value.as_slice());
        let size = batch.encoded_size_with(offset, record.timestamp, record.key, value, header_pairs(record));
        finished + size + if own_batch { HEADER_LEN } else { 0 } <= limit.max_bytes
    }

    fn try_push(
        &mut self,
        record: &RecordRow<'_>,
        timestamp_type: TimestampType,
    ) -> Result<(), wire::batch::BatchFull> {
        let offset = record.seq - 1;
        let value = record.value.as_ref().map(|value| value.as_slice());
        let batch = self.open(offset, timestamp_type);
        batch.push(offset, record.timestamp, record.key, value, header_pairs(record))
    }

    fn close(&mut self) {
        if let Some((_, batch)) = self.open.take() {
            self.finished.extend_from_slice(&batch.finish());
        }
    }

    fn finish(mut self) -> Range {
        let records = match self.open.take() {
            Some((_, batch)) if self.finished.is_empty() => batch.finish(),
            Some((_, batch)) => {
                self.finished.extend_from_slice(&batch.finish());
                self.finished.freeze()
            }
            None => self.finished.freeze(),
        };
        Range { records, first_offset: self.first_offset, next_offset: self.next_offset }
    }
}

fn header_pairs<'r>(record: &'r RecordRow<'_>) -> impl ExactSizeIterator<Item = (&'r [u8], Option<&'r [u8]>)> + Clone {
    record.headers.iter().map(|header| (header.key.as_slice(), header.value.as_deref()))
}
