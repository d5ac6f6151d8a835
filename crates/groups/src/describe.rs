//! What DescribeGroups, ListGroups, DeleteGroups and OffsetDelete see of a group, and whose offsets it needs.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::classic::Member;
use crate::{CONSUMER_PROTOCOL_TYPE, Group, GroupError, State};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    pub group_id: String,
    pub state: State,
    pub protocol_type: String,
    /// The protocol that was chosen; "" unless `Stable`.
    pub protocol_data: String,
    pub members: Vec<DescribedMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    /// Of the protocol that was chosen; empty unless `Stable`.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl Group {
    pub fn describe(&self) -> DescribedGroup {
        let protocol = self.protocol_name.as_deref().filter(|_| self.state == State::Stable);
        let member = |(member_id, member): (&String, &Member)| DescribedMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: protocol.map(|name| member.metadata(name)).unwrap_or_default(),
            assignment: member.assignment.clone(),
        };
        DescribedGroup {
            group_id: self.id.clone(),
            state: self.state,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: self.members.iter().map(member).collect(),
        }
    }

    /// ListGroups: "" when no member ever joined (a simple group).
    pub fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    /// DeleteGroups: only a group without members can be deleted.
    pub fn check_delete(&self) -> Result<(), GroupError> {
        match self.state {
            State::Dead => Err(GroupError::GroupIdNotFound),
            State::Empty => Ok(()),
            _ => Err(GroupError::NonEmptyGroup),
        }
    }

    /// OffsetDelete, for the whole request: members of other protocol types may use any topic.
    pub fn check_offset_delete(&self) -> Result<(), GroupError> {
        match self.state {
            State::Dead => Err(GroupError::GroupIdNotFound),
            State::Empty => Ok(()),
            _ if self.uses_consumer_protocol() => Ok(()),
            _ => Err(GroupError::NonEmptyGroup),
        }
    }

    /// OffsetDelete, for one topic.
    pub fn check_offset_delete_of(&self, topic: &str) -> Result<(), GroupError> {
        if self.is_subscribed_to(topic) { Err(GroupError::GroupSubscribedToTopic) } else { Ok(()) }
    }

    /// Whether a member of a `consumer` group reads the topic; assumed of every topic as long as the subscriptions
    /// are not known.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    /// Topics whose offsets do not expire, however old, since the group has members that read them; `None`: all
    /// topics, as long as nobody can say which (KIP-211). The offsets of others expire as those of a simple group.
    ///
    /// Kafka: `ClassicGroup.offsetExpirationCondition`.
    pub fn needed_topics(&self) -> Option<&BTreeSet<String>> {
        self.subscribed_topics.as_ref().filter(|_| self.state == State::Stable)
    }

    fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }
}
