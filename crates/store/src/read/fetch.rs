//! Reading a range of one partition as record batches.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use sqlx::PgConnection;
use wire::batch::{BatchBuilder, HEADER_LEN, TimestampType};

use super::row::{self, RecordRow};
use crate::{Store, error::StoreError, hub::Bounds, partition::PartitionKey};

/// Rows of one read at the most; many small ones take longer than their bytes say.
const MAX_ROWS: usize = 20_000;

/// Bytes that a statement may still have to send when enough was read, for the session to be kept.
const MAX_LEFT_BYTES: usize = 1024 * 1024;

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
        let range = self.read_range(partition, offset, limit).await?;
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

    /// Asks for about as many rows as fit, by what the partition's rows were last seen to weigh, and
    /// for more where that was too few.
    async fn read_range(&self, partition: PartitionKey, offset: i64, limit: ReadLimit) -> Result<Range, StoreError> {
        let mut range = RangeBuilder::new(self.leader_epoch(), limit);
        let mut connection = self.acquire().await?;
        let mut row_bytes = self.hub().row_bytes(partition);
        loop {
            let from_seq = range.next_offset.max(offset) + 1;
            let left = limit.max_bytes.saturating_sub(range.size());
            let row_limit = (left / row_bytes + 1).min(MAX_ROWS);
            let read = self.read_rows(&mut connection, partition, from_seq, row_limit, &mut range).await?;
            row_bytes = range.row_bytes().unwrap_or(row_bytes);
            if read.rows < row_limit || range.is_full || range.rows >= MAX_ROWS {
                if read.left_bytes > MAX_LEFT_BYTES {
                    // What is on its way is not wanted, and closing is cheaper than reading it.
                    drop(connection.detach());
                }
                self.hub().note_row_bytes(partition, row_bytes);
                return Ok(range.finish());
            }
        }
    }

    async fn read_rows(
        &self,
        connection: &mut PgConnection,
        partition: PartitionKey,
        from_seq: i64,
        row_limit: usize,
        range: &mut RangeBuilder,
    ) -> Result<RowsRead, StoreError> {
        let mut rows = self
            .statements()
            .read_rows()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(from_seq)
            .bind(row_limit as i64)
            .fetch(connection);
        let mut read = RowsRead { rows: 0, left_bytes: 0 };
        while let Some(row) = rows.try_next().await? {
            let record = row::decode(&row)?;
            read.rows += 1;
            if range.is_full {
                // The rest is guessed from this one; a few rows are simply read to the end.
                read.left_bytes = record.size() * (row_limit - read.rows);
                if read.left_bytes > MAX_LEFT_BYTES {
                    break;
                }
            } else {
                range.push(record);
            }
        }
        Ok(read)
    }
}

/// What one statement returned.
struct RowsRead {
    rows: usize,
    /// About the bytes that it would still return.
    left_bytes: usize,
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
    rows: usize,
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
            rows: 0,
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
        self.rows += usize::from(!self.is_full);
    }

    fn size(&self) -> usize {
        self.finished.len() + self.open.as_ref().map_or(0, |(_, batch)| batch.encoded_size())
    }

    /// Bytes of a record on average.
    fn row_bytes(&self) -> Option<usize> {
        self.size().checked_div(self.rows).map(|bytes| bytes.max(1))
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
