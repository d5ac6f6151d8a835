//! Finding offsets by time.
//!
//! Every row tells the running maximum of its partition's timestamps (`kafka_max_timestamp`, or its
//! own timestamp where that is the maximum). The first record with a timestamp of at least T is the
//! first row whose running maximum is at least T, and running maxima rise with the offset, so a
//! binary search by offset finds it in some twenty index look-ups, however long the log.
//!
//! Rows of pgQueue's clients carry no maximum and count with their own `enqueued_at`; between them
//! and records whose producers' clocks run ahead, the search is exact to that difference.

use sqlx::Row;

use crate::{error::StoreError, log::Log, log::waiters::Bounds, partition::PartitionKey};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetAndTimestamp {
    pub offset: i64,
    /// Milliseconds.
    pub timestamp: i64,
}

struct Probe {
    seq: i64,
    running_max: i64,
    timestamp: i64,
}

impl Log {
    /// The first record with a timestamp of at least `timestamp`; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn offset_for_timestamp(
        &self,
        partition: PartitionKey,
        timestamp: i64,
        bounds: Bounds,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        let (mut low, mut high) = (bounds.log_start_offset + 1, bounds.high_watermark + 1);
        let mut candidate = None;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.probe(partition, middle).await? {
                Some(probe) if probe.seq < high && probe.running_max < timestamp => low = probe.seq + 1,
                found => {
                    if let Some(probe) = found.filter(|probe| probe.seq < high) {
                        candidate = Some(probe);
                    }
                    high = middle;
                }
            }
        }
        match candidate {
            Some(probe) if probe.timestamp < timestamp => {
                // A maximum above the truth, from a record that is gone or out of order by SQL.
                self.first_with_timestamp(partition, probe.seq, timestamp).await
            }
            found => Ok(found.map(|probe| OffsetAndTimestamp { offset: probe.seq - 1, timestamp: probe.timestamp })),
        }
    }

    /// The record with the largest timestamp, the first of them (`ListOffsets` −3, KIP-734).
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn offset_of_max_timestamp(
        &self,
        partition: PartitionKey,
        bounds: Bounds,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        match self.probe(partition, bounds.high_watermark).await? {
            Some(last) => self.offset_for_timestamp(partition, last.running_max, bounds).await,
            None => Ok(None),
        }
    }

    async fn probe(&self, partition: PartitionKey, seq: i64) -> Result<Option<Probe>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self
            .state
            .statements
            .timestamp_at()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(seq)
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| Ok(Probe { seq: row.try_get(0)?, running_max: row.try_get(1)?, timestamp: row.try_get(2)? }))
            .transpose()
    }

    async fn first_with_timestamp(
        &self,
        partition: PartitionKey,
        from_seq: i64,
        timestamp: i64,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self
            .state
            .statements
            .first_with_timestamp()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(from_seq)
            .bind(timestamp)
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| Ok(OffsetAndTimestamp { offset: row.try_get::<i64, _>(0)? - 1, timestamp: row.try_get(1)? }))
            .transpose()
    }
}
