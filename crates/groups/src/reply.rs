//! Answers, in the shape of the newest version, and the requests that wait for theirs.

use bytes::Bytes;

use crate::error::GroupError;

/// The caller's handle of a JoinGroup that waits. Never used twice for one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinToken(pub u64);

/// The caller's handle of a SyncGroup that waits. Never used twice for one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncToken(pub u64);

/// A request that waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaiting {
    Join(JoinToken),
    Sync(SyncToken),
}

/// The reply to a request that waited. Every other request is answered by what the event returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Join(JoinToken, JoinReply),
    Sync(SyncToken, SyncReply),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinReply {
    pub error: Option<GroupError>,
    /// −1 with an error.
    pub generation: i32,
    pub protocol_type: Option<String>,
    /// Nullable on the wire since version 7, "" before.
    pub protocol_name: Option<String>,
    pub leader: String,
    pub skip_assignment: bool,
    pub member_id: String,
    /// For the leader only.
    pub members: Vec<JoinMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    /// Of the protocol that was chosen.
    pub metadata: Bytes,
}

impl JoinReply {
    pub fn error(member_id: &str, error: GroupError) -> JoinReply {
        JoinReply {
            error: Some(error),
            generation: -1,
            protocol_type: None,
            protocol_name: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncReply {
    pub error: Option<GroupError>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    /// Exactly the leader's bytes for this member; empty with an error.
    pub assignment: Bytes,
}

impl SyncReply {
    pub(crate) fn assigned(
        protocol_type: &Option<String>,
        protocol_name: &Option<String>,
        assignment: &Bytes,
    ) -> SyncReply {
        SyncReply {
            error: None,
            protocol_type: protocol_type.clone(),
            protocol_name: protocol_name.clone(),
            assignment: assignment.clone(),
        }
    }

    pub fn error(error: GroupError) -> SyncReply {
        SyncReply { error: Some(error), protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveReply {
    /// Of the whole request.
    pub error: Option<GroupError>,
    pub members: Vec<LeaveResult>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveResult {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub error: Option<GroupError>,
}

impl LeaveReply {
    /// The one error that versions 0–2 have room for.
    pub fn single_error(&self) -> Option<GroupError> {
        self.error.or_else(|| self.members.iter().find_map(|member| member.error))
    }
}
