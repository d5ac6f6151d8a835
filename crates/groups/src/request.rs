//! What the members send, in the shape of the newest version; `version` decides where the versions differ in meaning.

use bytes::Bytes;

use crate::{error::GroupError, settings::Settings};

/// A protocol (an assignor, for consumers) that a member offers, with its opaque metadata (the subscription).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    pub name: String,
    pub metadata: Bytes,
}

/// JoinGroup 0–9.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRequest {
    pub version: i16,
    /// Empty: a new member, or a restarted static one.
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    /// Ignored in version 0, which has none: the session timeout counts.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: String,
    /// In order of preference.
    pub protocols: Vec<Protocol>,
    /// A random UUID of the caller; the id of a new member ends with it.
    pub fresh_uuid: String,
}

impl JoinRequest {
    /// What is refused before any group is looked up or made: empty group id, session timeout out of range.
    pub fn validate(&self, group_id: &str, settings: &Settings) -> Result<(), GroupError> {
        if group_id.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        if !(settings.min_session_timeout_ms..=settings.max_session_timeout_ms).contains(&self.session_timeout_ms) {
            return Err(GroupError::InvalidSessionTimeout);
        }
        Ok(())
    }

    pub(crate) fn rebalance_timeout_ms(&self) -> i32 {
        if self.version == 0 { self.session_timeout_ms } else { self.rebalance_timeout_ms.max(0) }
    }

    /// KIP-394: since version 4 a dynamic member learns its id before it is let in.
    pub(crate) fn requires_known_member_id(&self) -> bool {
        self.version >= 4
    }

    /// KIP-814: since version 9 a leader can be told to skip the assignment.
    pub(crate) fn supports_skipping_assignment(&self) -> bool {
        self.version >= 9
    }

    /// Kafka: instance id or client id, a dash, a UUID. Clients take it as it is.
    pub(crate) fn new_member_id(&self) -> String {
        format!("{}-{}", self.instance_id.as_ref().unwrap_or(&self.client_id), self.fresh_uuid)
    }
}

/// SyncGroup 0–5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncRequest {
    pub version: i16,
    pub member_id: String,
    pub instance_id: Option<String>,
    pub generation: i32,
    /// Required since version 5.
    pub protocol_type: Option<String>,
    /// Required since version 5.
    pub protocol_name: Option<String>,
    /// From the leader: member id and assignment.
    pub assignments: Vec<(String, Bytes)>,
}

/// Heartbeat 0–4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatRequest {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub generation: i32,
}

/// LeaveGroup 0–5; versions 0–2 have exactly one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    pub members: Vec<LeavingMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    /// May be empty when an instance id is given: an administrator removes a static member.
    pub member_id: String,
    pub instance_id: Option<String>,
}

/// The member that commits offsets: OffsetCommit 2–9, TxnOffsetCommit 0–4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRequest {
    /// Empty: not a member (an administrator, or a consumer with assigned partitions).
    pub member_id: String,
    pub instance_id: Option<String>,
    /// −1: not a member.
    pub generation: i32,
    pub transactional: bool,
}
