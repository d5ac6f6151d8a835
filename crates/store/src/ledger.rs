//! The sequence ledger (storage.md D3): makes sure that offsets never start over, also when all
//! rows of a partition are gone.
//!
//! Appends do not touch it. It is brought up to date now and then, far more often than the
//! shortest retention, and when a topic's rows are about to be removed.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;

use crate::{Store, error::StoreError, partition::PartitionKey};

/// Rows that one statement writes.
const CHUNK: usize = 5000;

/// What the ledger was last told.
#[derive(Debug, Default)]
pub struct Checkpoint {
    written: HashMap<PartitionKey, i64>,
}

impl Store {
    /// Writes the ends of the partitions that have moved since the last call; returns how many.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers; a later call makes up for it.
    pub async fn checkpoint_ledger(&self, checkpoint: &mut Checkpoint) -> Result<usize, StoreError> {
        let moved: Vec<(PartitionKey, i64)> = self
            .hub()
            .high_watermarks()
            .into_iter()
            .filter(|(partition, end)| *end > checkpoint.written.get(partition).copied().unwrap_or(0))
            .collect();
        let sql = format!(
            "INSERT INTO {ledger} AS p (topic_id, partition_id, next_seq) \
             SELECT k.topic_id, k.partition_id, k.next_seq \
             FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS k(topic_id, partition_id, next_seq) \
             JOIN {topic} t ON t.id = k.topic_id \
             ORDER BY k.topic_id, k.partition_id \
             ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq \
             WHERE p.next_seq < excluded.next_seq",
            ledger = self.tables().kafka_partition,
            topic = self.tables().topic,
        );
        for chunk in moved.chunks(CHUNK) {
            sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(chunk.iter().map(|(partition, _)| partition.topic_id).collect::<Vec<_>>())
                .bind(chunk.iter().map(|(partition, _)| partition.partition_id).collect::<Vec<_>>())
                .bind(chunk.iter().map(|(_, end)| end + 1).collect::<Vec<_>>())
                .execute(&mut *self.acquire().await?)
                .await?;
            checkpoint.written.extend(chunk.iter().copied());
        }
        Ok(moved.len())
    }
}
