//! Topics by name or id, remembered for a while.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use uuid::Uuid;

use super::{
    handle::Catalog,
    topic::{Topic, TopicRef},
};
use crate::error::StoreError;

impl Catalog {
    /// `None` if there is no such topic. At most [`catalog_ttl`](crate::StoreConfig::catalog_ttl)
    /// old; what was not seen before is always asked for.
    ///
    /// # Errors
    /// As every statement.
    pub async fn topic(&self, name: &str) -> Result<Option<Arc<Topic>>, StoreError> {
        Ok(self.find(&[TopicRef::Name(name)]).await?.pop().flatten())
    }

    /// Those with these names; an answer for each name, in their order. See [`Catalog::find`].
    ///
    /// # Errors
    /// As every statement.
    pub async fn topics(&self, names: &[&str]) -> Result<Vec<Option<Arc<Topic>>>, StoreError> {
        let names: Vec<_> = names.iter().map(|name| TopicRef::Name(name)).collect();
        self.find(&names).await
    }

    /// The same for many, in one query; an answer for each, in their order.
    ///
    /// # Errors
    /// As every statement.
    pub async fn find(&self, wanted: &[TopicRef<'_>]) -> Result<Vec<Option<Arc<Topic>>>, StoreError> {
        let cache = &self.cache;
        let mut found: Vec<_> = wanted.iter().map(|topic| cache.fresh(*topic)).collect();
        let is_stale = |topic: TopicRef<'_>| cache.has(topic);
        let one_at_a_time = if found.iter().zip(wanted).any(|(seen, topic)| seen.is_none() && is_stale(*topic)) {
            let guard = cache.refreshing.lock().await;
            found = wanted.iter().map(|topic| cache.fresh(*topic)).collect();
            Some(guard)
        } else {
            None
        };
        let missing = found.iter().zip(wanted).filter(|(seen, _)| seen.is_none()).map(|(_, topic)| *topic);
        let mut missing: HashSet<TopicRef<'_>> = missing.collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let due = if one_at_a_time.is_some() { cache.due() } else { Vec::new() };
        missing.extend(due.iter().map(|name| TopicRef::Name(name)));
        let asked = self.ask(&missing).await?;
        drop(one_at_a_time);
        let asked: HashMap<TopicRef<'_>, &Arc<Topic>> = asked.iter().flat_map(by_name_and_id).collect();
        for topic in missing.iter().filter(|topic| !asked.contains_key(topic)) {
            cache.forget(*topic);
        }
        for (topic, seen) in wanted.iter().zip(&mut found) {
            if seen.is_none() {
                *seen = asked.get(topic).copied().cloned();
            }
        }
        Ok(found)
    }

    async fn ask(&self, topics: &HashSet<TopicRef<'_>>) -> Result<Vec<Arc<Topic>>, StoreError> {
        let (mut names, mut ids) = (Vec::new(), Vec::<Uuid>::new());
        for topic in topics {
            match topic {
                TopicRef::Name(name) => names.push(*name),
                TopicRef::Id(id) => ids.push(*id),
            }
        }
        let mut connection = self.db.acquire().await?;
        let encoding = self.db.encoding(&mut connection).await?;
        names.retain(|name| encoding.holds(name));
        let rows = self.statements.topics().bind(names).bind(ids).fetch_all(&mut *connection).await?;
        rows.iter().map(|row| Ok(self.cache.remember(Topic::read(row)?))).collect()
    }
}

fn by_name_and_id(topic: &Arc<Topic>) -> [(TopicRef<'_>, &Arc<Topic>); 2] {
    [(TopicRef::Name(&topic.name), topic), (TopicRef::Id(topic.topic_id), topic)]
}
