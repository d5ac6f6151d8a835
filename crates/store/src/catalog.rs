//! Topics: the rows that pgQueue clients, SQL and the gateway share.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, postgres::PgRow, types::Json};
use tokio::sync::{Mutex, OnceCell};
use uuid::Uuid;

use crate::{Store, error::StoreError, tables::Tables};

/// pgQueue's upper bound (a check of the topic table).
pub const MAX_PARTITIONS: i32 = 4096;

/// Writers of the topic can be in the way.
const DELETE_ATTEMPTS: u32 = 3;

/// A topic as it stands in Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Never given to another topic, not even to one of the same name.
    pub id: i64,
    pub name: String,
    /// Kafka's topic id (KIP-516).
    pub topic_id: Uuid,
    /// 1..=[`MAX_PARTITIONS`]; only ever grows.
    pub partition_count: i32,
    /// Kafka topic configs that differ from the defaults.
    pub configs: BTreeMap<String, String>,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
}

/// A topic to be made.
#[derive(Debug, Clone)]
pub struct NewTopic {
    /// A legal Kafka name, and not one that differs from another's only in `.` and `_`: the caller
    /// has checked that.
    pub name: String,
    /// 1..=[`MAX_PARTITIONS`]
    pub partition_count: i32,
    /// What pgQueue's retention goes by, ≥ 0; 0 is no limit.
    pub retention_max_age_seconds: i32,
    pub configs: BTreeMap<String, String>,
}

/// What was seen of the topics lately. The database is the truth.
#[derive(Debug)]
pub(crate) struct Catalog {
    time_to_live: Duration,
    by_name: DashMap<String, Seen>,
    names: DashMap<Uuid, String>,
    /// So that a topic whose time is up is asked for once, not by every request at once.
    refreshing: Mutex<()>,
    cluster_id: OnceCell<String>,
}

#[derive(Debug)]
struct Seen {
    at: Instant,
    topic: Arc<Topic>,
    /// Asked for since then: worth asking Postgres for again.
    used: AtomicBool,
}

impl Catalog {
    pub(crate) fn new(time_to_live: Duration) -> Catalog {
        Catalog {
            time_to_live,
            by_name: DashMap::new(),
            names: DashMap::new(),
            refreshing: Mutex::new(()),
            cluster_id: OnceCell::new(),
        }
    }

    fn fresh(&self, name: &str) -> Option<Arc<Topic>> {
        let seen = self.by_name.get(name)?;
        seen.used.store(true, Ordering::Relaxed);
        (seen.at.elapsed() < self.time_to_live).then(|| Arc::clone(&seen.topic))
    }

    /// Topics in use whose time is up, or soon will be: many idle consumers then cost one query,
    /// not one for each of their topics.
    fn due(&self) -> Vec<String> {
        let is_due = |seen: &Seen| seen.used.load(Ordering::Relaxed) && seen.at.elapsed() > self.time_to_live / 2;
        self.by_name.iter().filter(|seen| is_due(seen)).map(|seen| seen.key().clone()).collect()
    }

    fn remember(&self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        self.names.insert(topic.topic_id, topic.name.clone());
        let seen = Seen { at: Instant::now(), topic: Arc::clone(&topic), used: AtomicBool::new(false) };
        if let Some(before) = self.by_name.insert(topic.name.clone(), seen)
            && before.topic.topic_id != topic.topic_id
        {
            self.names.remove(&before.topic.topic_id);
        }
        topic
    }

    fn forget(&self, name: &str) {
        if let Some((_, seen)) = self.by_name.remove(name) {
            self.names.remove(&seen.topic.topic_id);
        }
    }
}

impl Store {
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
        let catalog = self.catalog();
        let mut found: Vec<_> = names.iter().map(|name| catalog.fresh(name)).collect();
        let is_stale = |name: &&str| catalog.by_name.contains_key(*name);
        let one_at_a_time = if found.iter().zip(names).any(|(seen, name)| seen.is_none() && is_stale(name)) {
            let guard = catalog.refreshing.lock().await;
            found = names.iter().map(|name| catalog.fresh(name)).collect();
            Some(guard)
        } else {
            None
        };
        let mut wanted: HashSet<&str> =
            names.iter().zip(&found).filter(|(_, seen)| seen.is_none()).map(|(name, _)| *name).collect();
        if wanted.is_empty() {
            return Ok(found);
        }
        let due = if one_at_a_time.is_some() { catalog.due() } else { Vec::new() };
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
        let known = self.catalog().names.get(&topic_id).map(|name| name.clone());
        if let Some(name) = known
            && let Some(topic) = self.topic(&name).await?
            && topic.topic_id == topic_id
        {
            return Ok(Some(topic));
        }
        let statement = select_topics(self.tables(), "WHERE kafka_topic_id = $1");
        let mut connection = self.acquire().await?;
        let row = sqlx::query(AssertSqlSafe(statement)).bind(topic_id).fetch_optional(&mut *connection).await?;
        row.map(|row| Ok(self.catalog().remember(read_topic(&row)?))).transpose()
    }

    /// All, by name; always asked for.
    ///
    /// # Errors
    /// As every statement.
    pub async fn all_topics(&self) -> Result<Vec<Arc<Topic>>, StoreError> {
        let statement = select_topics(self.tables(), "ORDER BY topic_name");
        let mut connection = self.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(statement)).fetch_all(&mut *connection).await?;
        rows.iter().map(|row| Ok(self.catalog().remember(read_topic(row)?))).collect()
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
        let statement = format!(
            "INSERT INTO {} (topic_name, partition_count, retention_max_age_seconds, \
               max_rows_per_topic, max_total_payload_bytes, kafka_config) \
             VALUES ($1, $2, $3, 0, 0, $4) RETURNING {TOPIC_COLUMNS}",
            self.tables().topic
        );
        let mut connection = self.acquire().await?;
        let inserted = sqlx::query(AssertSqlSafe(statement))
            .bind(&new.name)
            .bind(new.partition_count)
            .bind(new.retention_max_age_seconds)
            .bind(Json(&new.configs))
            .fetch_one(&mut *connection)
            .await
            .map_err(StoreError::from);
        match inserted {
            Ok(row) => Ok(self.catalog().remember(read_topic(&row)?)),
            Err(StoreError::AlreadyExists(_)) => Err(StoreError::AlreadyExists(format!("topic {}", new.name))),
            Err(error) => Err(error),
        }
    }

    /// Removes the topic with everything that is of it, in one transaction; `false` if there is
    /// none. Takes as long as removing its rows takes; others do not wait for it.
    ///
    /// # Errors
    /// [`StoreError::Contended`] if a writer of the topic does not end.
    pub async fn delete_topic(&self, name: &str) -> Result<bool, StoreError> {
        let mut connection = self.acquire().await?;
        let mut attempt = 1;
        let deleted = loop {
            match delete_topic(&mut connection, self.tables(), name).await {
                Err(StoreError::Contended(_)) if attempt < DELETE_ATTEMPTS => attempt += 1,
                result => break result,
            }
        };
        self.catalog().forget(name);
        let Some(topic_id) = deleted? else { return Ok(false) };
        self.batcher().forget_topic(topic_id);
        self.hub().forget_topic(topic_id);
        self.tail().forget_topic(topic_id);
        Ok(true)
    }

    /// Identifies the cluster: all gateways of these tables are brokers of it.
    ///
    /// # Errors
    /// As every statement.
    pub async fn cluster_id(&self) -> Result<String, StoreError> {
        let ask = async {
            let statement = format!("SELECT cluster_id FROM {}", self.tables().kafka_cluster);
            let mut connection = self.acquire().await?;
            Ok::<String, StoreError>(sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut *connection).await?)
        };
        self.catalog().cluster_id.get_or_try_init(|| ask).await.cloned()
    }

    async fn ask_topics(&self, names: &[&str]) -> Result<BTreeMap<String, Arc<Topic>>, StoreError> {
        let statement = select_topics(self.tables(), "WHERE topic_name = ANY($1)");
        let mut connection = self.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(statement)).bind(names).fetch_all(&mut *connection).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let topic = self.catalog().remember(read_topic(row)?);
            found.insert(topic.name.clone(), topic);
        }
        for name in names.iter().filter(|name| !found.contains_key(**name)) {
            self.catalog().forget(name);
        }
        Ok(found)
    }
}

/// `kafka_config` can be edited by hand: what is not an object is no configuration.
const TOPIC_COLUMNS: &str = "id, topic_name, kafka_topic_id, partition_count, kafka_config, \
     floor(extract(epoch FROM created_at) * 1000)::bigint";

fn select_topics(tables: &Tables, condition: &str) -> String {
    format!("SELECT {TOPIC_COLUMNS} FROM {} {condition}", tables.topic)
}

fn read_topic(row: &PgRow) -> Result<Topic, StoreError> {
    let Json(configs): Json<serde_json::Value> = row.try_get(4)?;
    Ok(Topic {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        topic_id: row.try_get(2)?,
        partition_count: row.try_get(3)?,
        configs: read_configs(&configs),
        created_at_ms: row.try_get(5)?,
    })
}

/// People write numbers and booleans without quotes.
fn read_configs(configs: &serde_json::Value) -> BTreeMap<String, String> {
    let entries = configs.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| match value {
            serde_json::Value::String(text) => Some((name.clone(), text.clone())),
            serde_json::Value::Number(number) => Some((name.clone(), number.to_string())),
            serde_json::Value::Bool(flag) => Some((name.clone(), flag.to_string())),
            _ => None,
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_that_were_edited_by_hand_are_read_as_far_as_they_make_sense() {
        let value = serde_json::json!({"a": "x", "b": 5, "c": true, "d": null, "e": [1]});
        let expected = [("a", "x"), ("b", "5"), ("c", "true")];
        let configs = read_configs(&value);
        assert!(configs.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
        assert!(read_configs(&serde_json::json!([1])).is_empty());
    }
}
