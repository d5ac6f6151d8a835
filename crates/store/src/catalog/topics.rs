use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{
    handle::Catalog,
    topic::{MAX_PARTITIONS, NewTopic, Topic},
};
use crate::error::StoreError;

impl Catalog {
    /// `None` if there is no such topic. At most [`catalog_ttl`](crate::StoreConfig::catalog_ttl)
    /// old; a name that was not seen before is always asked for.
    ///
    /// # Errors
    /// As every statement.
    pub async fn topic(&self, name: &str) -> Result<Option<Arc<Topic>>, StoreError> {
        Ok(self.topics(&[name]).await?.pop().flatten())
    }

    /// The same for many, in one query; an answer for each name, in their order.
    ///
    /// # Errors
    /// As every statement.
    pub async fn topics(&self, names: &[&str]) -> Result<Vec<Option<Arc<Topic>>>, StoreError> {
        let cache = &self.cache;
        let mut found: Vec<_> = names.iter().map(|name| cache.fresh(name)).collect();
        let is_stale = |name: &&str| cache.has(name);
        let one_at_a_time = if found.iter().zip(names).any(|(seen, name)| seen.is_none() && is_stale(name)) {
            let guard = cache.refreshing.lock().await;
            found = names.iter().map(|name| cache.fresh(name)).collect();
            Some(guard)
        } else {
            None
        };
        let mut wanted: HashSet<&str> =
            names.iter().zip(&found).filter(|(_, seen)| seen.is_none()).map(|(name, _)| *name).collect();
        if wanted.is_empty() {
            return Ok(found);
        }
        let due = if one_at_a_time.is_some() { cache.due() } else { Vec::new() };
        wanted.extend(due.iter().map(String::as_str));
        let asked = self.ask_topics(&Vec::from_iter(wanted)).await?;
        drop(one_at_a_time);
        for (name, seen) in names.iter().zip(&mut found) {
            if seen.is_none() {
                *seen = asked.get(*name).cloned();
            }
        }
        Ok(found)
    }

    /// By Kafka's topic id.
    ///
    /// # Errors
    /// As every statement.
    pub async fn topic_by_id(&self, topic_id: Uuid) -> Result<Option<Arc<Topic>>, StoreError> {
        let known = self.cache.name_of(topic_id);
        if let Some(name) = known
            && let Some(topic) = self.topic(&name).await?
            && topic.topic_id == topic_id
        {
            return Ok(Some(topic));
        }
        let mut connection = self.db.acquire().await?;
        let row = self.statements.topic_by_id().bind(topic_id).fetch_optional(&mut *connection).await?;
        row.map(|row| Ok(self.cache.remember(Topic::read(&row)?))).transpose()
    }

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

    async fn ask_topics(&self, names: &[&str]) -> Result<BTreeMap<String, Arc<Topic>>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let encoding = self.db.encoding(&mut connection).await?;
        let possible: Vec<&str> = names.iter().copied().filter(|name| encoding.holds(name)).collect();
        let rows = self.statements.topics().bind(possible).fetch_all(&mut *connection).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let topic = self.cache.remember(Topic::read(row)?);
            found.insert(topic.name.clone(), topic);
        }
        for name in names.iter().filter(|name| !found.contains_key(**name)) {
            self.cache.forget(name);
        }
        Ok(found)
    }
}
