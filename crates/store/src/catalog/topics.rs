//! Topics as they are made and listed.

use std::sync::Arc;

use sqlx::{PgConnection, types::Json};

use super::{
    handle::Catalog,
    topic::{MAX_PARTITIONS, NewTopic, Topic},
};
use crate::error::StoreError;

impl Catalog {
    /// All, by name; always asked for.
    ///
    /// # Errors
    /// As every statement.
    pub async fn all_topics(&self) -> Result<Vec<Arc<Topic>>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let rows = self.statements.all_topics().fetch_all(&mut *connection).await?;
        rows.iter().map(|row| Ok(self.cache.remember(Topic::read(row)?))).collect()
    }

    /// # Errors
    /// [`StoreError::AlreadyExists`]; [`StoreError::InvalidConfig`] for a partition count or a
    /// retention out of range.
    pub async fn create_topic(&self, new: &NewTopic) -> Result<Arc<Topic>, StoreError> {
        if !(1..=MAX_PARTITIONS).contains(&new.partition_count) {
            let reason = format!("{} partitions: must be 1 to {MAX_PARTITIONS}", new.partition_count);
            return Err(StoreError::InvalidConfig(reason));
        }
        if new.retention_max_age_seconds < 0 {
            return Err(StoreError::InvalidConfig("the retention must not be negative".to_owned()));
        }
        let topic = self.create_topic_on(&mut *self.db.acquire().await?, new).await?;
        Ok(self.cache.remember(topic))
    }

    async fn create_topic_on(&self, connection: &mut PgConnection, new: &NewTopic) -> Result<Topic, StoreError> {
        let statement = self.statements.create_topic().bind(&new.name).bind(new.partition_count);
        let statement = statement.bind(new.retention_max_age_seconds).bind(Json(&new.configs));
        match statement.fetch_one(connection).await.map_err(StoreError::from) {
            Ok(row) => Topic::read(&row),
            Err(StoreError::AlreadyExists(_)) => Err(StoreError::AlreadyExists(format!("topic {}", new.name))),
            Err(error) => Err(error),
        }
    }
}
