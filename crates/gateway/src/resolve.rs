//! The topics and partitions of a request, by name or id.
//!
//! Every handler finds them here, all topics of a request in one query, and says what it wants to do with
//! them. So this is the one place that asks whether the client may.

use std::sync::{Arc, Mutex, PoisonError};

use store::{PartitionKey, Store, StoreError, Topic, TopicRef};
use wire::ErrorCode;

use crate::acl::{self, Operation, ResourceType};

/// Finds topics.
#[derive(Debug)]
pub(crate) struct Resolver {
    store: Store,
    /// The last complete list. A Kafka broker answers Metadata from memory whatever happens to the
    /// controller, and clients that subscribe by pattern drop topics that are not listed; so the list
    /// stays while Postgres is away.
    listed: Mutex<Option<Vec<Arc<Topic>>>>,
}

/// A topic of a request, or the code that the client gets for it.
#[derive(Debug)]
pub(crate) struct Resolved(Result<Arc<Topic>, ErrorCode>);

impl Resolver {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, listed: Mutex::default() }
    }

    /// One for each topic asked for, in their order.
    ///
    /// # Errors
    /// If Postgres cannot be asked.
    pub(crate) async fn resolve(
        &self,
        operation: Operation,
        wanted: &[TopicRef<'_>],
    ) -> Result<Vec<Resolved>, StoreError> {
        let found = self.store.catalog.find(wanted).await?;
        Ok(found.into_iter().zip(wanted).map(|(topic, wanted)| Resolved(judge(operation, *wanted, topic))).collect())
    }

    /// All topics, by name; while Postgres is away those that were there before.
    ///
    /// # Errors
    /// As the store, and while Postgres is away if there was no list yet.
    pub(crate) async fn all(&self, operation: Operation) -> Result<Vec<Arc<Topic>>, StoreError> {
        let listed = self.store.catalog.all_topics().await;
        let mut last = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut topics = match listed {
            Ok(topics) => last.insert(topics).clone(),
            Err(error) if error.is_retriable() => last.clone().ok_or(error)?,
            Err(error) => return Err(error),
        };
        topics.retain(|_| acl::is_allowed(operation, ResourceType::Topic));
        Ok(topics)
    }
}

fn judge(operation: Operation, wanted: TopicRef<'_>, topic: Option<Arc<Topic>>) -> Result<Arc<Topic>, ErrorCode> {
    if !acl::is_allowed(operation, ResourceType::Topic) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    topic.ok_or(match wanted {
        TopicRef::Name(_) => ErrorCode::UnknownTopicOrPartition,
        TopicRef::Id(_) => ErrorCode::UnknownTopicId,
    })
}

impl Resolved {
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION or, of an id, UNKNOWN_TOPIC_ID; TOPIC_AUTHORIZATION_FAILED.
    pub(crate) fn topic(&self) -> Result<&Arc<Topic>, ErrorCode> {
        self.0.as_ref().map_err(|code| *code)
    }

    /// # Errors
    /// As [`Resolved::topic`].
    pub(crate) fn into_topic(self) -> Result<Arc<Topic>, ErrorCode> {
        self.0
    }

    /// # Errors
    /// As [`Resolved::topic`], and UNKNOWN_TOPIC_OR_PARTITION if the topic has no such partition.
    pub(crate) fn partition(&self, index: i32) -> Result<PartitionKey, ErrorCode> {
        let topic = self.topic()?;
        match (0..topic.partition_count).contains(&index) {
            true => Ok(PartitionKey::new(topic.id, index)),
            false => Err(ErrorCode::UnknownTopicOrPartition),
        }
    }
}
