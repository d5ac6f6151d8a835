//! What DescribeGroups, ListGroups, DeleteGroups and OffsetDelete see of a group, and when its offsets expire.

use bytes::Bytes;

use crate::classic::Member;
use crate::{CONSUMER_PROTOCOL_TYPE, Group, GroupError, Millis, State};

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

    /// From when on the retention of an offset counts that was committed at `committed_at`; `None`: it is kept
    /// (KIP-211).
    pub fn offset_expiry_base(&self, topic: &str, committed_at: Millis) -> Option<Millis> {
        if self.protocol_type.is_none() {
            return Some(committed_at);
        }
        match self.state {
            State::Empty => Some(self.state_since),
            State::Stable if self.subscribed_topics.is_some() && !self.is_subscribed_to(topic) => Some(committed_at),
            _ => None,
        }
    }

    fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }
}
