//! Reading a range of one partition as record batches.

use bytes::Bytes;
use futures::TryStreamExt;
use sqlx::PgConnection;

use crate::{
    error::StoreError,
    log::{
        Log, LogEnd,
        range::{Range, RangeBuilder, ReadLimit},
    },
    offset::{Offset, Seq},
    partition::PartitionKey,
    record::RecordColumns,
};

/// Rows of one read at the most; many small ones take longer than their bytes say.
const MAX_ROWS: usize = 20_000;

/// Bytes that a statement may still have to send when enough was read, for the session to be kept.
const MAX_LEFT_BYTES: usize = 1024 * 1024;

/// What one read found.
#[derive(Debug)]
pub struct Fetched {
    /// Whole record batches, empty at the end of the log.
    pub records: Bytes,
    pub end: LogEnd,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Below the start or above the end of the log.
    #[error("the offset is outside of the log")]
    OffsetOutOfRange(LogEnd),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Log {
    /// Reads records from `offset` on, as many as `limit` lets in.
    ///
    /// `last` is where the caller believes the log to be ([`Log::last_ends`]); at its end, and
    /// for what this gateway has just appended, nothing is asked of Postgres.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`], or [`StoreError`] as Postgres answers.
    pub async fn fetch(
        &self,
        partition: PartitionKey,
        offset: Offset,
        limit: ReadLimit,
        last: LogEnd,
    ) -> Result<Fetched, ReadError> {
        let mut end = last;
        if offset > end.high {
            // The client may have seen it at another gateway.
            end = self.present_end(partition).await?;
        }
        if !end.contains(offset) {
            return Err(ReadError::OffsetOutOfRange(end));
        }
        if offset == end.high {
            self.state.waiters.note_reader_at_end(partition);
            return Ok(Fetched { records: Bytes::new(), end });
        }
        let range = match self.state.tail.read(partition, offset, limit.max_bytes) {
            Some(range) => range,
            None => self.read_range(partition, offset, limit).await?,
        };
        if range.next_offset >= end.high {
            self.state.waiters.note_reader_at_end(partition);
        }
        if range.first_offset != Some(offset) {
            // Records are missing here: a gap inside the log is legal, but if retention has passed
            // the offset the client has to know.
            end = self.present_end(partition).await?;
            if offset < end.start {
                return Err(ReadError::OffsetOutOfRange(end));
            }
        }
        // Rows that were read are committed.
        end = end.furthest(LogEnd::new(end.start, range.next_offset));
        Ok(Fetched { records: range.records, end })
    }

    async fn present_end(&self, partition: PartitionKey) -> Result<LogEnd, StoreError> {
        let found = self.ends(&[partition]).await?;
        found.get(&partition).copied().ok_or_else(|| StoreError::Corrupt("no end for a partition".into()))
    }

    /// Asks for about as many rows as fit, by what the partition's rows were last seen to weigh, and
    /// for more where that was too few.
    async fn read_range(&self, partition: PartitionKey, offset: Offset, limit: ReadLimit) -> Result<Range, StoreError> {
        let mut range = RangeBuilder::new(self.cluster.leader_epoch(), limit);
        let mut connection = self.db.acquire().await?;
        let mut row_bytes = self.state.waiters.row_bytes(partition);
        loop {
            let from_seq = range.next_offset.max(offset).seq();
            let left = limit.max_bytes.saturating_sub(range.size());
            let row_limit = (left / row_bytes + 1).min(MAX_ROWS);
            let read = self.read_rows(&mut connection, partition, from_seq, row_limit, &mut range).await?;
            row_bytes = range.row_bytes().unwrap_or(row_bytes);
            if read.rows < row_limit || read.is_full || range.rows >= MAX_ROWS {
                if read.left_bytes > MAX_LEFT_BYTES {
                    // What is on its way is not wanted, and closing is cheaper than reading it.
                    drop(connection.detach());
                }
                self.state.waiters.note_row_bytes(partition, row_bytes);
                return Ok(range.finish());
            }
        }
    }

    async fn read_rows(
        &self,
        connection: &mut PgConnection,
        partition: PartitionKey,
        from_seq: Seq,
        row_limit: usize,
        range: &mut RangeBuilder,
    ) -> Result<RowsRead, StoreError> {
        let mut rows = self
            .state
            .statements
            .read_rows()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(from_seq.get())
            .bind(row_limit as i64)
            .fetch(connection);
        let mut read = RowsRead { rows: 0, is_full: false, left_bytes: 0 };
        let mut columns = None;
        while let Some(row) = rows.try_next().await? {
            let columns = match &columns {
                Some(columns) => columns,
                None => columns.insert(RecordColumns::of(&row)?),
            };
            let record = columns.decode(&row)?;
            read.rows += 1;
            let size = record.size();
            if read.is_full || !range.push(record) {
                read.is_full = true;
                // The rest is guessed from this one; a few rows are simply read to the end.
                read.left_bytes = size * (row_limit - read.rows);
                if read.left_bytes > MAX_LEFT_BYTES {
                    break;
                }
            }
        }
        Ok(read)
    }
}

/// What one statement returned.
struct RowsRead {
    rows: usize,
    /// A record was left out, and so is everything after it.
    is_full: bool,
    /// About the bytes that it would still return.
    left_bytes: usize,
}
