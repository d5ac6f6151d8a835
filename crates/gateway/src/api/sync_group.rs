//! SyncGroup: the leader hands the assignment in, the others wait for theirs.
//!
//! v3 has instance ids, v5 protocol type and name, which must fit the group (KIP-559). Rules:
//! `GroupMetadataManager.classicGroupSync`.

use groups::SyncRequest;
use kafka_protocol::{
    messages::{SyncGroupRequest, SyncGroupResponse},
    protocol::StrBytes,
};
use wire::ErrorCode;

use super::group_fields::optional;
use crate::{
    context::RequestContext,
    error::{ApiError, group_error_or_none},
};

/// First version with protocol type and name.
const PROTOCOL: i16 = 5;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &SyncGroupRequest,
) -> Result<SyncGroupResponse, ApiError> {
    let assignments = request.assignments.iter().map(|a| (a.member_id.to_string(), a.assignment.clone()));
    let sync = SyncRequest {
        version,
        member_id: request.member_id.to_string(),
        instance_id: optional(&request.group_instance_id),
        generation: request.generation_id,
        protocol_type: optional(&request.protocol_type),
        protocol_name: optional(&request.protocol_name),
        assignments: assignments.collect(),
    };
    let reply = ctx.shared.coordinator.sync(&ctx.disconnected, &request.group_id, sync).await?;
    let protocol = |text: Option<String>| text.filter(|_| version >= PROTOCOL).map(StrBytes::from_string);
    Ok(SyncGroupResponse::default()
        .with_error_code(group_error_or_none(reply.error).code())
        .with_protocol_type(protocol(reply.protocol_type))
        .with_protocol_name(protocol(reply.protocol_name))
        .with_assignment(reply.assignment))
}

pub(super) fn error_response(_version: i16, _request: &SyncGroupRequest, code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse::default().with_error_code(code.code())
}
