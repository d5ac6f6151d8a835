//! A worker as DataHub's Python client has it: the statements of `PgQueueRepository` (acryl-datahub
//! 1.7.0.17), in its order and in its transactions.

use sqlx::{AssertSqlSafe, PgConnection, Row};
use store::{PartitionKey, SchemaProfile};
use testkit::TestDatabase;

use crate::run;

pub const PROFILES: [SchemaProfile; 2] = [SchemaProfile::Lean, SchemaProfile::Datahub];

/// `PgQueueMessageHandle`.
#[derive(Debug, Clone)]
pub struct Handle {
    id: i64,
    enqueued_at: String,
    pub seq: i64,
}

pub struct Worker {
    pub sql: PgConnection,
    group: String,
    pub lock_owner: String,
}

impl Worker {
    pub async fn new(database: &TestDatabase, group: &str) -> Self {
        let lock_owner = format!("{group}:{}", uuid::Uuid::new_v4());
        Self { sql: database.connection().await, group: group.to_owned(), lock_owner }
    }

    /// `_load_committed_offset`
    pub async fn offset(&mut self, partition: PartitionKey) -> i64 {
        sqlx::query_scalar(
            "SELECT offset_value FROM queue.metadata_queue_consumer_offset \
             WHERE consumer_group = $1 AND topic_id = $2 AND partition_id = $3",
        )
        .bind(&self.group)
        .bind(partition.topic_id)
        .bind(partition.partition_id)
        .fetch_optional(&mut self.sql)
        .await
        .unwrap()
        .unwrap_or(0)
    }

    /// `_select_candidate_handles_for_priority`
    async fn candidate(&mut self, partition: PartitionKey, above: i64, priority: i16) -> Option<Handle> {
        let row = sqlx::query(
            "SELECT m.id, m.enqueued_at::text, m.enqueue_seq FROM queue.metadata_queue_message m \
             LEFT JOIN queue.metadata_queue_message_group_lease l ON l.message_id = m.id \
               AND l.message_enqueued_at = m.enqueued_at AND l.consumer_group = $1 \
             WHERE m.topic_id = $2 AND m.partition_id = $3 AND m.enqueue_seq > $4 AND m.priority = $5 \
               AND (l.id IS NULL OR l.lock_owner <> '__acked__') ORDER BY m.enqueue_seq ASC LIMIT 1",
        )
        .bind(&self.group)
        .bind(partition.topic_id)
        .bind(partition.partition_id)
        .bind(above)
        .bind(priority)
        .fetch_optional(&mut self.sql)
        .await
        .unwrap()?;
        Some(Handle { id: row.get(0), enqueued_at: row.get(1), seq: row.get(2) })
    }

    /// `_try_acquire_lease_for_group`
    async fn lease(&mut self, handle: &Handle, seconds: f64) -> bool {
        sqlx::query(
            "INSERT INTO queue.metadata_queue_message_group_lease AS l \
               (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
             VALUES ($1, $2::text::timestamptz, $3, $4, NOW() + $5 * INTERVAL '1 second') \
             ON CONFLICT (message_id, message_enqueued_at, consumer_group) DO UPDATE SET \
               lock_owner = EXCLUDED.lock_owner, locked_until = EXCLUDED.locked_until \
             WHERE l.locked_until < NOW() AND l.lock_owner <> '__acked__' RETURNING l.message_id",
        )
        .bind(handle.id)
        .bind(&handle.enqueued_at)
        .bind(&self.group)
        .bind(&self.lock_owner)
        .bind(seconds)
        .fetch_optional(&mut self.sql)
        .await
        .unwrap()
        .is_some()
    }

    /// `receive_batch_for_group` of one partition, all bands, as many as there are.
    pub async fn receive(&mut self, partition: PartitionKey, seconds: f64) -> Vec<Handle> {
        run(&mut self.sql, "BEGIN").await;
        let offset = self.offset(partition).await;
        let received = self.receive_above(partition, offset, seconds).await;
        run(&mut self.sql, "COMMIT").await;
        received
    }

    /// The same with an offset that was read some time ago.
    pub async fn receive_above(&mut self, partition: PartitionKey, offset: i64, seconds: f64) -> Vec<Handle> {
        self.receive_some(partition, offset, seconds, usize::MAX).await
    }

    /// At most so many.
    pub async fn receive_some(
        &mut self,
        partition: PartitionKey,
        offset: i64,
        seconds: f64,
        limit: usize,
    ) -> Vec<Handle> {
        let mut received = Vec::new();
        for priority in 0..=9 {
            let mut above = offset;
            while received.len() < limit
                && let Some(handle) = self.candidate(partition, above, priority).await
            {
                if !self.lease(&handle, seconds).await {
                    break;
                }
                above = handle.seq;
                received.push(handle);
            }
        }
        received
    }

    /// `commit_for_group` of one partition.
    pub async fn ack(&mut self, partition: PartitionKey, handles: &[Handle]) {
        run(&mut self.sql, "BEGIN").await;
        for handle in handles {
            sqlx::query(
                "INSERT INTO queue.metadata_queue_message_group_lease \
                   (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
                 VALUES ($1, $2::text::timestamptz, $3, '__acked__', '1970-01-01 00:00:00+00') \
                 ON CONFLICT (message_id, message_enqueued_at, consumer_group) DO UPDATE SET \
                   lock_owner = EXCLUDED.lock_owner, locked_until = EXCLUDED.locked_until",
            )
            .bind(handle.id)
            .bind(&handle.enqueued_at)
            .bind(&self.group)
            .execute(&mut self.sql)
            .await
            .unwrap();
        }
        let current = self.offset(partition).await;
        let acked: Vec<i64> = sqlx::query_scalar(
            "SELECT m.enqueue_seq FROM queue.metadata_queue_message m \
             INNER JOIN queue.metadata_queue_message_group_lease l ON l.message_id = m.id \
               AND l.message_enqueued_at = m.enqueued_at AND l.consumer_group = $1 \
             WHERE m.topic_id = $2 AND m.partition_id = $3 AND m.enqueue_seq > $4 AND l.lock_owner = '__acked__' \
             ORDER BY m.enqueue_seq",
        )
        .bind(&self.group)
        .bind(partition.topic_id)
        .bind(partition.partition_id)
        .bind(current)
        .fetch_all(&mut self.sql)
        .await
        .unwrap();
        let watermark = acked.into_iter().fold(current, |mark, seq| if seq == mark + 1 { seq } else { mark });
        if watermark > current {
            self.set_offset(partition, watermark).await;
        }
        run(&mut self.sql, "COMMIT").await;
    }

    async fn set_offset(&mut self, partition: PartitionKey, offset: i64) {
        sqlx::query(
            "INSERT INTO queue.metadata_queue_consumer_offset \
               (consumer_group, topic_id, partition_id, offset_value, epoch) VALUES ($1, $2, $3, $4, 0) \
             ON CONFLICT (consumer_group, topic_id, partition_id) DO UPDATE SET offset_value = EXCLUDED.offset_value",
        )
        .bind(&self.group)
        .bind(partition.topic_id)
        .bind(partition.partition_id)
        .bind(offset)
        .execute(&mut self.sql)
        .await
        .unwrap();
    }

    /// `register_consumer`
    pub async fn register(&mut self, topic_id: i64) {
        sqlx::query(
            "INSERT INTO queue.metadata_queue_consumer_registration (consumer_group, topic_id) VALUES ($1, $2) \
             ON CONFLICT (consumer_group, topic_id) DO UPDATE SET last_heartbeat_at = NOW()",
        )
        .bind(&self.group)
        .bind(topic_id)
        .execute(&mut self.sql)
        .await
        .unwrap();
    }
}

/// The `enqueue_seq`s.
pub fn seqs(handles: &[Handle]) -> Vec<i64> {
    handles.iter().map(|handle| handle.seq).collect()
}

/// Records with these priorities, `enqueue_seq` from `first` on.
pub async fn enqueue(sql: &mut PgConnection, partition: PartitionKey, first: i64, priorities: &[i16]) {
    let PartitionKey { topic_id, partition_id } = partition;
    for (seq, priority) in (first..).zip(priorities) {
        run(
            sql,
            &format!(
                "INSERT INTO queue.metadata_queue_message \
                   (topic_id, partition_id, routing_key, enqueue_seq, priority, payload) \
                 VALUES ({topic_id}, {partition_id}, 'k', {seq}, {priority}, '')"
            ),
        )
        .await;
    }
}

/// `seq lock_owner` of a group's leases, in order.
pub async fn leases(sql: &mut PgConnection, group: &str) -> Vec<(i64, String)> {
    let rows = sqlx::query(AssertSqlSafe(
        "SELECT m.enqueue_seq, l.lock_owner FROM queue.metadata_queue_message_group_lease l \
         JOIN queue.metadata_queue_message m ON m.id = l.message_id AND m.enqueued_at = l.message_enqueued_at \
         WHERE l.consumer_group = $1 ORDER BY m.topic_id, m.partition_id, m.enqueue_seq",
    ))
    .bind(group)
    .fetch_all(sql)
    .await
    .unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
