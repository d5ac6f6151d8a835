use std::collections::BTreeMap;

use sqlx::{Row, postgres::PgRow, types::Json};
use uuid::Uuid;

use super::config::TopicConfig;
use crate::error::StoreError;

/// pgQueue's upper bound (a check of the topic table).
pub const MAX_PARTITIONS: i32 = 4096;

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
    /// Those of them that an append goes by.
    pub config: TopicConfig,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
}

/// How a topic is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TopicRef<'a> {
    Name(&'a str),
    /// Kafka's topic id.
    Id(Uuid),
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

impl Topic {
    /// From a row of the topic table, with `created_at_ms`. `kafka_config` can be edited by hand: what
    /// is not an object is no configuration.
    pub(super) fn read(row: &PgRow) -> Result<Topic, StoreError> {
        let Json(configs): Json<serde_json::Value> = row.try_get("kafka_config")?;
        let configs = read_configs(&configs);
        Ok(Topic {
            config: TopicConfig::parse(&configs),
            id: row.try_get("id")?,
            name: row.try_get("topic_name")?,
            topic_id: row.try_get("kafka_topic_id")?,
            partition_count: row.try_get("partition_count")?,
            configs,
            created_at_ms: row.try_get("created_at_ms")?,
        })
    }
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
