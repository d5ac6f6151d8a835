//! Removing a topic with everything that is of it.

use sqlx::{Connection, PgConnection, Row};

use super::topic::TopicRef;
use crate::{catalog::Catalog, error::StoreError};

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
            match self.delete_topic_once(&mut connection, name).await {
                Err(StoreError::Contended(_)) if attempt < DELETE_ATTEMPTS => attempt += 1,
                result => break result,
            }
        };
        self.cache.forget(TopicRef::Name(name));
        deleted
    }

    async fn delete_topic_once(&self, connection: &mut PgConnection, name: &str) -> Result<Option<i64>, StoreError> {
        let mut transaction = connection.begin().await?;
        // As long as it takes: rows are removed one by one.
        sqlx::raw_sql("SET LOCAL statement_timeout = 0").execute(&mut *transaction).await?;
        let deleted = self.delete_topic_on(&mut transaction, name).await?;
        transaction.commit().await?;
        Ok(deleted)
    }

    /// The same on a connection of the caller's, in a transaction.
    ///
    /// In pgQueue's order: first the topic's row, then the locks of its partitions. With them held no
    /// writer is in the middle of an append whose rows this would not see.
    async fn delete_topic_on(&self, connection: &mut PgConnection, name: &str) -> Result<Option<i64>, StoreError> {
        if !self.db.encoding(connection).await?.holds(name) {
            return Ok(None);
        }
        let statements = &self.statements;
        let found = statements.lock_topic().bind(name).fetch_optional(&mut *connection).await?;
        let Some(found) = found else { return Ok(None) };
        let topic: i64 = found.try_get("id")?;
        for statement in [
            statements.lock_partitions_of_topic(),
            statements.delete_leases_of_topic(),
            statements.delete_messages_of_topic(),
            statements.delete_offsets_of_topic(),
            statements.delete_registrations_of_topic(),
            statements.delete_partitions_of_topic(),
            statements.delete_topic(),
        ] {
            statement.bind(topic).execute(&mut *connection).await?;
        }
        Ok(Some(topic))
    }
}
