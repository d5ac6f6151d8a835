//! Making topics, for CreateTopics and for Metadata's auto-creation alike.

use std::{collections::BTreeMap, sync::Arc};

use store::{NewTopic, StoreError, Topic};
use tracing::info;
use wire::{ErrorCode, TopicName};

use crate::{context::RequestContext, topic_config};

/// Names that Apache Kafka keeps for itself. The gateway keeps that state in tables of its own, so
/// these topics do not exist and no client may make them.
const INTERNAL: &[&str] = &["__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state"];

/// Why a topic cannot be made, for the client.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn from_store(ctx: &RequestContext, error: &StoreError) -> Self {
        // What the database's owner does not allow, as Kafka's `CreateTopicPolicy` would say it.
        let code = match error {
            StoreError::Refused(_) => ErrorCode::PolicyViolation,
            _ => ctx.store_code(error),
        };
        Self::new(code, error.to_string())
    }
}

/// Refuses names that no topic may have (Kafka: `Topic.validate`) and those of Kafka's own topics.
pub(crate) fn check_name(name: &str) -> Result<TopicName, Refusal> {
    let parsed = TopicName::parse(name)
        .map_err(|invalid| Refusal::new(ErrorCode::InvalidTopicException, invalid.to_string()))?;
    if INTERNAL.contains(&name) {
        return Err(Refusal::new(ErrorCode::InvalidTopicException, format!("topic {name} is internal")));
    }
    Ok(parsed)
}

/// Refuses a name that differs from an existing topic's only in `.` and `_`
/// (Kafka: `Topic.hasCollision`).
pub(crate) async fn check_collision(ctx: &RequestContext, name: &TopicName) -> Result<(), Refusal> {
    // Only a name with one of the two characters can collide.
    if !name.as_str().contains(['.', '_']) {
        return Ok(());
    }
    let key = name.collision_key();
    let topics = ctx.shared.store.catalog.all_topics().await.map_err(|error| Refusal::from_store(ctx, &error))?;
    let collides = |topic: &&Arc<Topic>| topic.name != name.as_str() && topic.name.replace('.', "_") == key;
    match topics.iter().find(collides) {
        None => Ok(()),
        Some(topic) => {
            let message = format!("topic {name} collides with existing topic {}", topic.name);
            Err(Refusal::new(ErrorCode::InvalidTopicException, message))
        }
    }
}

/// Makes a topic whose name, partitions and configurations were checked.
pub(crate) async fn create(
    ctx: &RequestContext,
    name: &TopicName,
    partition_count: i32,
    configs: BTreeMap<String, String>,
) -> Result<Arc<Topic>, StoreError> {
    let new = NewTopic {
        name: name.as_str().to_owned(),
        partition_count,
        retention_max_age_seconds: topic_config::retention_seconds(&configs),
        configs,
    };
    let topic = ctx.shared.store.catalog.create_topic(&new).await?;
    let (peer, principal) = (ctx.session.peer, &ctx.session.principal);
    info!(topic = %name, partitions = partition_count, %peer, %principal, "topic created");
    Ok(topic)
}
