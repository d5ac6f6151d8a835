//! The answers for a group that is not in memory. One is made only by a JoinGroup without member id and by a commit
//! without generation (a simple group).

use crate::{
    classic::{ClassicGroupState, DescribedGroup},
    error::GroupError,
    reply::{JoinReply, LeaveReply, LeaveResult, SyncReply},
    request::{CommitRequest, JoinRequest, LeaveRequest, LeavingMember},
};

/// `None`: make the group and let it decide. Validate the request first ([`JoinRequest::validate`]).
pub fn join(request: &JoinRequest) -> Option<JoinReply> {
    (!request.member_id.is_empty()).then(|| JoinReply::error(&request.member_id, GroupError::UnknownMemberId))
}

pub fn sync() -> SyncReply {
    SyncReply::error(GroupError::UnknownMemberId)
}

pub fn heartbeat() -> GroupError {
    GroupError::UnknownMemberId
}

pub fn leave(request: &LeaveRequest) -> LeaveReply {
    let unknown = |member: &LeavingMember| LeaveResult {
        member_id: member.member_id.clone(),
        instance_id: member.instance_id.clone(),
        error: Some(GroupError::UnknownMemberId),
    };
    LeaveReply { error: None, members: request.members.iter().map(unknown).collect() }
}

/// `version` is OffsetCommit's. `Ok`: the commit makes a simple group.
pub fn check_commit(version: i16, request: &CommitRequest) -> Result<(), GroupError> {
    if request.generation < 0 {
        Ok(())
    } else if version >= 9 && !request.transactional {
        Err(GroupError::GroupIdNotFound)
    } else {
        Err(GroupError::IllegalGeneration)
    }
}

/// DeleteGroups and OffsetDelete, when no offsets of such a group are stored either.
pub fn delete() -> GroupError {
    GroupError::GroupIdNotFound
}

/// DescribeGroups; since version 6 with an error (KIP-1043).
pub fn describe(version: i16, group_id: &str, has_offsets: bool) -> (DescribedGroup, Option<GroupError>) {
    let state = if has_offsets { ClassicGroupState::Empty } else { ClassicGroupState::Dead };
    let described = DescribedGroup {
        group_id: group_id.to_owned(),
        state,
        protocol_type: String::new(),
        protocol_data: String::new(),
        members: Vec::new(),
    };
    (described, (version >= 6 && !has_offsets).then_some(GroupError::GroupIdNotFound))
}
