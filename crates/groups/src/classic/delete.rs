//! What may be forgotten of a group: on request, and with time.

use std::collections::BTreeSet;

use super::{group::ClassicGroup, state::ClassicGroupState as State};
use crate::error::GroupError;

impl ClassicGroup {
    pub(crate) fn check_delete(&self) -> Result<(), GroupError> {
        match self.state {
            State::Dead => Err(GroupError::GroupIdNotFound),
            State::Empty => Ok(()),
            _ => Err(GroupError::NonEmptyGroup),
        }
    }

    /// Members of other protocol types than `consumer` may use any topic.
    pub(crate) fn check_offset_delete(&self) -> Result<(), GroupError> {
        match self.state {
            State::Dead => Err(GroupError::GroupIdNotFound),
            State::Empty => Ok(()),
            _ if self.uses_consumer_protocol() => Ok(()),
            _ => Err(GroupError::NonEmptyGroup),
        }
    }

    pub(crate) fn check_offset_delete_of(&self, topic: &str) -> Result<(), GroupError> {
        if self.is_subscribed_to(topic) { Err(GroupError::GroupSubscribedToTopic) } else { Ok(()) }
    }

    /// Kafka: `ClassicGroup.offsetExpirationCondition`.
    pub(crate) fn needed_topics(&self) -> Option<&BTreeSet<String>> {
        self.subscribed_topics.as_ref().filter(|_| self.state == State::Stable)
    }
}
