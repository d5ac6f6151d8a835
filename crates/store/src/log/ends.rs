//! Where logs start and end.

use std::collections::HashMap;

use sqlx::{PgConnection, Row};

use crate::{
    error::StoreError,
    log::{Log, LogEnd, Subscription},
    offset::Seq,
    partition::PartitionKey,
};

impl Log {
    /// Asks Postgres where partitions start and end, all in one statement. One without rows starts and
    /// ends where the ledger says, or at 0.
    ///
    /// An end that this gateway has told never falls: where rows at the end are gone, it is written to
    /// the ledger before it is told again (storage.md D3).
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn ends(&self, partitions: &[PartitionKey]) -> Result<HashMap<PartitionKey, LogEnd>, StoreError> {
        // Before the statement, so that its snapshot has all of them.
        let told: Vec<Option<LogEnd>> = partitions.iter().map(|key| self.state.waiters.end(*key)).collect();
        let mut connection = self.db.acquire().await?;
        let mut found = self.read_ends(&mut connection, partitions).await?;
        for (partition, told) in partitions.iter().zip(told) {
            if let (Some(told), Some(end)) = (told, found.get_mut(partition))
                && told.high > end.high
            {
                self.raise_end(&mut connection, *partition, told.high.seq(), end.high.seq()).await?;
                *end = told.furthest(*end);
            }
        }
        drop(connection);
        found.iter().for_each(|(partition, end)| self.state.waiters.observed(*partition, *end));
        Ok(found)
    }

    async fn read_ends(
        &self,
        connection: &mut PgConnection,
        partitions: &[PartitionKey],
    ) -> Result<HashMap<PartitionKey, LogEnd>, StoreError> {
        let rows = self
            .state
            .statements
            .log_ends()
            .bind(partitions.iter().map(|key| key.topic_id).collect::<Vec<i64>>())
            .bind(partitions.iter().map(|key| key.partition_id).collect::<Vec<i32>>())
            .fetch_all(connection)
            .await?;
        rows.iter()
            .map(|row| {
                let seq = |name: &str| Ok::<Seq, StoreError>(Seq::new(row.try_get(name)?));
                let partition = PartitionKey::new(row.try_get("topic_id")?, row.try_get("partition_id")?);
                Ok((partition, LogEnd::new(seq("log_start_seq")?.offset(), seq("next_seq")?.offset())))
            })
            .collect()
    }

    /// Notes in the ledger that the next row has the seq `expected`, though the rows say `found`: rows that
    /// this gateway has seen are gone. A user removed them, or the server lost its last transactions.
    pub(super) async fn raise_end(
        &self,
        connection: &mut PgConnection,
        partition: PartitionKey,
        expected: Seq,
        found: Seq,
    ) -> Result<(), StoreError> {
        tracing::warn!(?partition, expected = expected.get(), found = found.get(), "rows at the end of a log are gone");
        self.state
            .statements
            .raise_next_seq()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(expected.get())
            .execute(connection)
            .await?;
        Ok(())
    }

    /// The ends as last seen, which may be behind; asks Postgres for partitions not seen yet.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers.
    pub async fn last_ends(&self, partitions: &[PartitionKey]) -> Result<HashMap<PartitionKey, LogEnd>, StoreError> {
        let mut ends = HashMap::with_capacity(partitions.len());
        let mut unseen = Vec::new();
        for partition in partitions {
            match self.state.waiters.end(*partition) {
                Some(end) => drop(ends.insert(*partition, end)),
                None => unseen.push(*partition),
            }
        }
        if !unseen.is_empty() {
            ends.extend(self.ends(&unseen).await?);
        }
        Ok(ends)
    }

    /// Starts to watch partitions; see [`Subscription`].
    pub fn subscribe(&self, partitions: Vec<PartitionKey>) -> Subscription {
        let subscription = Subscription::new(self.state.waiters.clone(), partitions);
        self.state.watch_wake.notify_one();
        subscription
    }
}
