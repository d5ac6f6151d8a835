//! Where logs start and end.

use std::collections::HashMap;

use sqlx::Row;

use crate::{
    error::StoreError,
    log::Log,
    log::waiters::{Bounds, Subscription},
    partition::PartitionKey,
};

impl Log {
    /// Asks Postgres for the bounds of partitions, all in one statement. A partition without rows
    /// starts and ends where the ledger says, or at 0.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn partition_bounds(
        &self,
        partitions: &[PartitionKey],
    ) -> Result<HashMap<PartitionKey, Bounds>, StoreError> {
        let topic_ids: Vec<i64> = partitions.iter().map(|p| p.topic_id).collect();
        let partition_ids: Vec<i32> = partitions.iter().map(|p| p.partition_id).collect();
        let mut connection = self.db.acquire().await?;
        let rows = self
            .state
            .statements
            .partition_bounds()
            .bind(topic_ids)
            .bind(partition_ids)
            .fetch_all(&mut *connection)
            .await?;
        drop(connection);
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let partition = PartitionKey::new(row.try_get(0)?, row.try_get(1)?);
            let (start_seq, next_seq): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
            let bounds = Bounds { log_start_offset: start_seq - 1, high_watermark: next_seq - 1 };
            self.state.waiters.observed(partition, bounds);
            found.insert(partition, bounds);
        }
        Ok(found)
    }

    /// The bounds as last seen, which may be behind; asks Postgres for partitions not seen yet.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn known_bounds(&self, partitions: &[PartitionKey]) -> Result<HashMap<PartitionKey, Bounds>, StoreError> {
        let mut known = HashMap::with_capacity(partitions.len());
        let mut unknown = Vec::new();
        for partition in partitions {
            match self.state.waiters.bounds(*partition) {
                Some(bounds) => drop(known.insert(*partition, bounds)),
                None => unknown.push(*partition),
            }
        }
        if !unknown.is_empty() {
            known.extend(self.partition_bounds(&unknown).await?);
        }
        Ok(known)
    }

    /// Starts to watch partitions; see [`Subscription`].
    pub fn subscribe(&self, partitions: Vec<PartitionKey>) -> Subscription {
        let subscription = Subscription::new(self.state.waiters.clone(), partitions);
        self.watch_requested();
        subscription
    }
}
