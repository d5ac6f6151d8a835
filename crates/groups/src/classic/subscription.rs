//! The topics that the members of a `consumer` group read.

use std::collections::BTreeSet;

use super::group::ClassicGroup;
use crate::consumer_protocol::{CONSUMER_PROTOCOL_TYPE, subscribed_topics};

impl ClassicGroup {
    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    /// `None`: other protocol type (never parsed), or a subscription that is not one.
    pub(super) fn compute_subscribed_topics(&self) -> Option<BTreeSet<String>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.append(&mut subscribed_topics(&member.metadata(protocol))?);
        }
        Some(topics)
    }

    /// Assumed of every topic as long as the subscriptions are not known.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }
}
