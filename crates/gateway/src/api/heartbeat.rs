//! Heartbeat: a member is alive, and hears when it has to join again (REBALANCE_IN_PROGRESS).
//!
//! Answered from memory. Rules: `GroupMetadataManager.classicGroupHeartbeat`.

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use wire::ErrorCode;

use super::group_fields::optional;
use crate::{context::RequestContext, error::ApiError};

pub(super) async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &HeartbeatRequest,
) -> Result<HeartbeatResponse, ApiError> {
    let heartbeat = groups::HeartbeatRequest {
        member_id: request.member_id.to_string(),
        instance_id: optional(&request.group_instance_id),
        generation: request.generation_id,
    };
    ctx.shared.coordinator.heartbeat(&request.group_id, &heartbeat).await?;
    Ok(HeartbeatResponse::default())
}

pub(super) fn error_response(_version: i16, _request: &HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse {
    HeartbeatResponse::default().with_error_code(code.code())
}
