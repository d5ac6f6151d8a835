//! LeaveGroup: members go, so that the others need not wait for their session timeouts.
//!
//! v0–2 name one member and have one error; from v3 on there are many, and an administrator removes
//! a static member by its instance id alone (KIP-345). Rules:
//! `GroupMetadataManager.classicGroupLeaveToClassicGroup`.

use groups::{LeaveRequest, LeavingMember};
use kafka_protocol::{
    messages::{LeaveGroupRequest, LeaveGroupResponse, leave_group_response::MemberResponse},
    protocol::StrBytes,
};
use wire::ErrorCode;

use super::group_fields::{optional, text};
use crate::{
    context::RequestContext,
    error::{ApiError, group_error_or_none},
};

/// First version with a list of members.
const BATCHED: i16 = 3;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &LeaveGroupRequest,
) -> Result<LeaveGroupResponse, ApiError> {
    let members = match version {
        BATCHED.. => {
            let member = |member: &kafka_protocol::messages::leave_group_request::MemberIdentity| LeavingMember {
                member_id: member.member_id.to_string(),
                instance_id: optional(&member.group_instance_id),
            };
            request.members.iter().map(member).collect()
        }
        _ => vec![LeavingMember { member_id: request.member_id.to_string(), instance_id: None }],
    };
    let leave = LeaveRequest { members };
    let reply = ctx.shared.coordinator.leave(&request.group_id, leave).await?;
    if version < BATCHED {
        let code = group_error_or_none(reply.single_error());
        return Ok(LeaveGroupResponse::default().with_error_code(code.code()));
    }
    let members = reply.members.into_iter().map(|member| {
        MemberResponse::default()
            .with_member_id(text(member.member_id))
            .with_group_instance_id(member.instance_id.map(StrBytes::from_string))
            .with_error_code(group_error_or_none(member.error).code())
    });
    Ok(LeaveGroupResponse::default()
        .with_error_code(group_error_or_none(reply.error).code())
        .with_members(members.collect()))
}

pub(super) fn error_response(_version: i16, _request: &LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse::default().with_error_code(code.code())
}
