//! JoinGroup: a member wants to be in the next generation of its group; the answer waits for it.
//!
//! Versions: v0 has no rebalance timeout, v4 first gives out a member id (KIP-394), v5 has instance
//! ids (KIP-345), v7 the protocol type and a null instead of "" for "no protocol", v9
//! `skip_assignment` (KIP-814). Rules: `GroupMetadataManager.classicGroupJoin`.

use groups::{JoinMember, JoinReply, JoinRequest, Protocol};
use kafka_protocol::{
    messages::{JoinGroupRequest, JoinGroupResponse, join_group_response::JoinGroupResponseMember},
    protocol::StrBytes,
};
use uuid::Uuid;
use wire::ErrorCode;

use super::group_fields::{optional, text};
use crate::{
    context::RequestContext,
    error::{ApiError, group_error_or_none},
};

/// First version that tells members each other's instance ids.
const INSTANCE_IDS: i16 = 5;
/// First version with the protocol type, and with null for "no protocol".
const PROTOCOL_TYPE: i16 = 7;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &JoinGroupRequest,
) -> Result<JoinGroupResponse, ApiError> {
    let protocol = |protocol: &kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol| Protocol {
        name: protocol.name.to_string(),
        metadata: protocol.metadata.clone(),
    };
    let join = JoinRequest {
        version,
        member_id: request.member_id.to_string(),
        instance_id: optional(&request.group_instance_id),
        client_id: ctx.client_id.clone().unwrap_or_default(),
        // As Java's InetAddress prints it: Apache Kafka shows "/127.0.0.1".
        client_host: format!("/{}", ctx.session.peer.ip()),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        protocol_type: request.protocol_type.to_string(),
        protocols: request.protocols.iter().map(protocol).collect(),
        fresh_uuid: Uuid::new_v4().to_string(),
    };
    let reply = ctx.shared.coordinator.join(&ctx.disconnected, &request.group_id, join).await?;
    Ok(response(version, reply))
}

pub(super) fn error_response(version: i16, request: &JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(code.code())
        .with_generation_id(-1)
        .with_protocol_name(no_protocol(version))
        .with_member_id(request.member_id.clone())
}

fn response(version: i16, reply: JoinReply) -> JoinGroupResponse {
    let members = reply.members.into_iter().map(|member| listed(version, member)).collect();
    JoinGroupResponse::default()
        .with_error_code(group_error_or_none(reply.error).code())
        .with_generation_id(reply.generation)
        .with_protocol_type(reply.protocol_type.filter(|_| version >= PROTOCOL_TYPE).map(StrBytes::from_string))
        .with_protocol_name(reply.protocol_name.map(StrBytes::from_string).or_else(|| no_protocol(version)))
        .with_leader(text(reply.leader))
        .with_skip_assignment(reply.skip_assignment)
        .with_member_id(text(reply.member_id))
        .with_members(members)
}

fn no_protocol(version: i16) -> Option<StrBytes> {
    (version < PROTOCOL_TYPE).then(StrBytes::default)
}

fn listed(version: i16, member: JoinMember) -> JoinGroupResponseMember {
    JoinGroupResponseMember::default()
        .with_member_id(text(member.member_id))
        .with_group_instance_id(member.instance_id.filter(|_| version >= INSTANCE_IDS).map(StrBytes::from_string))
        .with_metadata(member.metadata)
}

#[cfg(test)]
mod tests {
    use groups::GroupError;

    use super::*;

    /// Java refuses a null name before v7 and takes "" for a protocol after it (KIP-559).
    #[test]
    fn no_protocol_is_empty_before_v7_and_null_from_it() {
        for (version, name) in [(6, Some("")), (7, None)] {
            let refused = response(version, JoinReply::error("m", GroupError::MemberIdRequired));
            assert_eq!(refused.protocol_name.as_deref(), name, "v{version}");
            assert_eq!((refused.error_code, refused.member_id.as_str(), refused.generation_id), (79, "m", -1));
            let failed = error_response(version, &JoinGroupRequest::default(), ErrorCode::NotCoordinator);
            assert_eq!(failed.protocol_name.as_deref(), name, "v{version}");
        }
    }
}
