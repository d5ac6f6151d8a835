//! FindCoordinator: which broker coordinates a group, a transactional id or a share group.
//!
//! A group's coordinator is the gateway that has the group's slot (storage.md D8), as this one saw it
//! last; while nobody has it, COORDINATOR_NOT_AVAILABLE. For transactional ids and share groups,
//! which are not served yet, it is this node. Needs no database. Key type 2 (share groups) exists from v6 on, where a key is
//! `group:topic-id:partition`; other types are INVALID_REQUEST (Kafka: `KafkaApis.getCoordinator`).

use kafka_protocol::{
    messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse, find_coordinator_response::Coordinator},
    protocol::StrBytes,
};
use wire::ErrorCode;

use crate::{
    broker::{self, Broker},
    context::RequestContext,
    error::ApiError,
};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// From this version on one request asks for many keys (KIP-699).
const BATCHED: i16 = 4;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &FindCoordinatorRequest,
) -> Result<FindCoordinatorResponse, ApiError> {
    if let Err(code) = check_type(version, request.key_type) {
        return Ok(error_response(version, request, code));
    }
    if version < BATCHED {
        let node = match coordinator(ctx, request.key_type, &request.key) {
            Ok(node) => node,
            Err(code) => return Ok(error_response(version, request, code)),
        };
        return Ok(FindCoordinatorResponse::default()
            .with_error_message(None)
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port));
    }
    let coordinators = request.coordinator_keys.iter().map(|key| match coordinator(ctx, request.key_type, key) {
        Ok(node) => Coordinator::default()
            .with_key(key.clone())
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port)
            .with_error_message(None),
        Err(code) => failed(key, code),
    });
    Ok(FindCoordinatorResponse::default().with_error_message(None).with_coordinators(coordinators.collect()))
}

pub(super) fn error_response(
    version: i16,
    request: &FindCoordinatorRequest,
    code: ErrorCode,
) -> FindCoordinatorResponse {
    if version < BATCHED {
        let message = (version >= 1).then(|| StrBytes::from_static_str(code.message()));
        return FindCoordinatorResponse::default()
            .with_error_code(code.code())
            .with_error_message(message)
            .with_node_id(BrokerId(-1))
            .with_port(-1);
    }
    let coordinators = request.coordinator_keys.iter().map(|key| failed(key, code)).collect();
    FindCoordinatorResponse::default().with_error_message(None).with_coordinators(coordinators)
}

fn check_type(version: i16, key_type: i8) -> Result<(), ErrorCode> {
    match key_type {
        GROUP | TRANSACTION => Ok(()),
        SHARE if version >= 6 => Ok(()),
        _ => Err(ErrorCode::InvalidRequest),
    }
}

fn coordinator(ctx: &RequestContext, key_type: i8, key: &str) -> Result<Broker, ErrorCode> {
    check_key(key_type, key)?;
    match key_type {
        GROUP => ctx.shared.membership.owner_of(key).map(|node| Broker::from(&node)),
        _ => Ok(broker::own(ctx)),
    }
}

fn check_key(key_type: i8, key: &str) -> Result<(), ErrorCode> {
    if key_type == SHARE && key.split(':').count() < 3 {
        return Err(ErrorCode::InvalidRequest);
    }
    Ok(())
}

fn failed(key: &StrBytes, code: ErrorCode) -> Coordinator {
    Coordinator::default()
        .with_key(key.clone())
        .with_node_id(BrokerId(-1))
        .with_port(-1)
        .with_error_code(code.code())
        .with_error_message(Some(StrBytes::from_static_str(code.message())))
}
