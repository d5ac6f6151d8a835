//! The sequence ledger (storage.md D3): makes sure that offsets never start over, also when all
//! rows of a partition are gone.
//!
//! Appends do not touch it, so that it is no hot table. It is brought up to date from the rows
//! themselves, far more often than the shortest retention.

use sqlx::AssertSqlSafe;

use crate::{error::StoreError, log::Log};

impl Log {
    /// Notes the end of every partition whose log has grown since it was last noted; returns how
    /// many. Costs a few index look-ups a partition and writes only what has moved.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers; a later call makes up for it.
    pub async fn update_ledger(&self) -> Result<u64, StoreError> {
        let sql = format!(
            "INSERT INTO {ledger} AS l (topic_id, partition_id, next_seq) \
             SELECT t.id, p.id, last.seq + 1 \
             FROM {topic} t CROSS JOIN LATERAL generate_series(0, t.partition_count - 1) AS p(id) \
             CROSS JOIN LATERAL (SELECT m.enqueue_seq AS seq FROM {message} m \
               WHERE m.topic_id = t.id AND m.partition_id = p.id ORDER BY m.enqueue_seq DESC LIMIT 1) last \
             LEFT JOIN {ledger} noted ON noted.topic_id = t.id AND noted.partition_id = p.id \
             WHERE noted.next_seq IS NULL OR noted.next_seq <= last.seq \
             ORDER BY t.id, p.id \
             ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq \
             WHERE l.next_seq < excluded.next_seq",
            ledger = self.db.tables().kafka_partition,
            topic = self.db.tables().topic,
            message = self.db.tables().message,
        );
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query(AssertSqlSafe(sql)).execute(&mut *connection).await?.rows_affected())
    }
}
