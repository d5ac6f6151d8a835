//! Finding offsets by time.
//!
//! Every row tells the running maximum of its partition's timestamps (`kafka_max_timestamp`, or its
//! own timestamp where that is the maximum). The first record with a timestamp of at least T is the
//! first row whose running maximum is at least T, and running maxima rise with the offset, so a
//! binary search by offset finds it in some twenty index look-ups, however long the log.
//!
//! Rows of pgQueue's clients carry no maximum and count with their own `enqueued_at`; between them
//! and records whose producers' clocks run ahead, the search is exact to that difference.

use sqlx::{Row, postgres::PgRow};

use crate::{
    error::StoreError,
    log::{Log, LogEnd},
    offset::{Offset, Seq},
    partition::PartitionKey,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetAndTimestamp {
    pub offset: Offset,
    /// Milliseconds.
    pub timestamp: i64,
}

struct Probe {
    seq: Seq,
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
        end: LogEnd,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        let (mut low, mut high) = (end.start.seq(), end.high.seq());
        let mut candidate = None;
        while low < high {
            let middle = low.plus((high.get() - low.get()) / 2);
            match self.probe(partition, middle).await? {
                Some(probe) if probe.seq < high && probe.running_max < timestamp => low = probe.seq.next(),
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
            found => {
                Ok(found.map(|probe| OffsetAndTimestamp { offset: probe.seq.offset(), timestamp: probe.timestamp }))
            }
        }
    }

    /// The record with the largest timestamp, the first of them (`ListOffsets` −3, KIP-734).
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn offset_of_max_timestamp(
        &self,
        partition: PartitionKey,
        end: LogEnd,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        match self.probe(partition, end.high.seq().plus(-1)).await? {
            Some(last) => self.offset_for_timestamp(partition, last.running_max, end).await,
            None => Ok(None),
        }
    }

    async fn probe(&self, partition: PartitionKey, seq: Seq) -> Result<Option<Probe>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self
            .state
            .statements
            .timestamp_at()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(seq.get())
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| {
            let (running_max, timestamp) = (row.try_get("running_max")?, row.try_get("timestamp")?);
            Ok(Probe { seq: seq_of(&row)?, running_max, timestamp })
        })
        .transpose()
    }

    async fn first_with_timestamp(
        &self,
        partition: PartitionKey,
        from_seq: Seq,
        timestamp: i64,
    ) -> Result<Option<OffsetAndTimestamp>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self
            .state
            .statements
            .first_with_timestamp()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(from_seq.get())
            .bind(timestamp)
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| Ok(OffsetAndTimestamp { offset: seq_of(&row)?.offset(), timestamp: row.try_get("timestamp")? }))
            .transpose()
    }
}

fn seq_of(row: &PgRow) -> Result<Seq, StoreError> {
    Ok(Seq::new(row.try_get("enqueue_seq")?))
}
