//! What was seen of the topics lately. The database is the truth.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::topic::{Topic, TopicRef};

#[derive(Debug)]
pub(super) struct TopicCache {
    time_to_live: Duration,
    by_name: DashMap<String, CachedTopic>,
    names: DashMap<Uuid, String>,
    /// So that a topic whose time is up is asked for once, not by every request at once.
    pub(super) refreshing: Mutex<()>,
}

#[derive(Debug)]
struct CachedTopic {
    at: Instant,
    topic: Arc<Topic>,
    /// Asked for since then: worth asking Postgres for again.
    used: AtomicBool,
}

impl TopicCache {
    pub(super) fn new(time_to_live: Duration) -> TopicCache {
        TopicCache { time_to_live, by_name: DashMap::new(), names: DashMap::new(), refreshing: Mutex::new(()) }
    }

    pub(super) fn fresh(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
        match topic {
            TopicRef::Name(name) => {
                let cached = self.by_name.get(name)?;
                cached.used.store(true, Ordering::Relaxed);
                (cached.at.elapsed() < self.time_to_live).then(|| Arc::clone(&cached.topic))
            }
            TopicRef::Id(id) => {
                let name = self.names.get(&id)?;
                self.fresh(TopicRef::Name(&name)).filter(|topic| topic.topic_id == id)
            }
        }
    }

    /// Topics in use whose time is up, or soon will be: many idle consumers then cost one query,
    /// not one for each of their topics.
    pub(super) fn due(&self) -> Vec<String> {
        let is_due =
            |cached: &CachedTopic| cached.used.load(Ordering::Relaxed) && cached.at.elapsed() > self.time_to_live / 2;
        self.by_name.iter().filter(|cached| is_due(cached)).map(|cached| cached.key().clone()).collect()
    }

    pub(super) fn remember(&self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        self.names.insert(topic.topic_id, topic.name.clone());
        let cached = CachedTopic { at: Instant::now(), topic: Arc::clone(&topic), used: AtomicBool::new(false) };
        if let Some(before) = self.by_name.insert(topic.name.clone(), cached)
            && before.topic.topic_id != topic.topic_id
        {
            self.names.remove(&before.topic.topic_id);
        }
        topic
    }

    pub(super) fn forget(&self, topic: TopicRef<'_>) {
        match topic {
            TopicRef::Name(name) => {
                if let Some((_, cached)) = self.by_name.remove(name) {
                    self.names.remove(&cached.topic.topic_id);
                }
            }
            TopicRef::Id(id) => {
                if let Some((_, name)) = self.names.remove(&id) {
                    self.by_name.remove_if(&name, |_, cached| cached.topic.topic_id == id);
                }
            }
        }
    }

    /// Seen before, however long ago.
    pub(super) fn has(&self, topic: TopicRef<'_>) -> bool {
        match topic {
            TopicRef::Name(name) => self.by_name.contains_key(name),
            TopicRef::Id(id) => self.names.contains_key(&id),
        }
    }
}
