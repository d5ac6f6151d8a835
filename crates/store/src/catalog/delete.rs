//! Removing a topic with everything that is of it.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{catalog::Catalog, database::Tables, error::StoreError};

/// Writers of the topic can be in the way.
const DELETE_ATTEMPTS: u32 = 3;

impl Catalog {
    /// Removes the topic with everything that is of it, in one transaction; its id, or `None` if
    /// there is none. Takes as long as removing its rows takes; others do not wait for it.
    ///
    /// # Errors
    /// [`StoreError::Contended`] if a writer of the topic does not end.
    pub(crate) async fn delete_topic(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let mut attempt = 1;
        let deleted = loop {
            match delete_topic(&mut connection, self.db.tables(), name).await {
                Err(StoreError::Contended(_)) if attempt < DELETE_ATTEMPTS => attempt += 1,
                result => break result,
            }
        };
        self.cache.forget(name);
        deleted
    }
}

/// In pgQueue's order: first the topic's row, then the locks of its partitions. With them held no
/// writer is in the middle of an append whose rows this would not see. The row's lock is of the
/// kind that a foreign key of message does not wait for: who appends has the partition's lock
/// already, and the two would deadlock.
async fn delete_topic(connection: &mut PgConnection, tables: &Tables, name: &str) -> Result<Option<i64>, StoreError> {
    let mut transaction = connection.begin().await?;
    // As long as it takes: rows are removed one by one.
    sqlx::raw_sql("SET LOCAL statement_timeout = 0").execute(&mut *transaction).await?;
    let topic: Option<i64> = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT id FROM {} WHERE topic_name = $1 FOR NO KEY UPDATE",
        tables.topic
    )))
    .bind(name)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(topic) = topic else { return Ok(None) };
    for statement in delete_statements(tables) {
        sqlx::query(AssertSqlSafe(statement)).bind(topic).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(Some(topic))
}

/// Each with the topic's id as $1. The foreign keys that the lean profile lacks are made up for.
fn delete_statements(tables: &Tables) -> [String; 7] {
    let Tables {
        topic,
        message,
        message_group_lease,
        consumer_offset,
        consumer_registration,
        kafka_partition,
        kafka_lock_key,
        ..
    } = tables;
    [
        format!(
            "SELECT pg_advisory_xact_lock(key) FROM ( \
               SELECT {kafka_lock_key}($1, partition_id) AS key \
                 FROM {topic}, generate_series(0, partition_count - 1) AS partition_id \
                WHERE id = $1 ORDER BY key OFFSET 0) sorted"
        ),
        format!(
            "DELETE FROM {message_group_lease} lease USING {message} message \
              WHERE message.topic_id = $1 AND lease.message_id = message.id \
                AND lease.message_enqueued_at = message.enqueued_at"
        ),
        format!("DELETE FROM {message} WHERE topic_id = $1"),
        format!("DELETE FROM {consumer_offset} WHERE topic_id = $1"),
        format!("DELETE FROM {consumer_registration} WHERE topic_id = $1"),
        format!("DELETE FROM {kafka_partition} WHERE topic_id = $1"),
        format!("DELETE FROM {topic} WHERE id = $1"),
    ]
}
