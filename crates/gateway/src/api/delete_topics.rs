//! DeleteTopics: removes topics with all their records and offsets.
//!
//! From v6 on a topic may be named by its id (KIP-516); naming it both ways or neither is
//! INVALID_REQUEST. So is naming it twice, by whichever means: then it stays. `delete.topic.enable=false` gives
//! TOPIC_DELETION_DISABLED, before v3 INVALID_REQUEST (Kafka: `ControllerApis.deleteTopics`).

use std::{collections::HashMap, sync::Arc};

use kafka_protocol::{
    messages::{
        DeleteTopicsRequest, DeleteTopicsResponse, TopicName, delete_topics_request::DeleteTopicState,
        delete_topics_response::DeletableTopicResult,
    },
    protocol::StrBytes,
};
use store::{Topic, TopicRef};
use tracing::info;
use uuid::Uuid;
use wire::ErrorCode;

use crate::{acl::Operation, context::RequestContext, error::ApiError, resolve::Resolved};

/// First version in which topics may be named by id.
const BY_ID: i16 = 6;
/// First version with words for an error (KIP-599).
const MESSAGES: i16 = 5;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &DeleteTopicsRequest,
) -> Result<DeleteTopicsResponse, ApiError> {
    if !ctx.shared.config.topics.delete_topics {
        let code = if version < 3 { ErrorCode::InvalidRequest } else { ErrorCode::TopicDeletionDisabled };
        return Ok(error_response(version, request, code));
    }
    let states = states(version, request);
    let mut resolved = ctx.resolve(Operation::Delete, states.iter().flat_map(asked)).await?.into_iter();
    let found: Vec<_> = states.iter().map(|state| find(state, &mut resolved)).collect();
    let mut counts: HashMap<Uuid, usize> = HashMap::new();
    for topic in found.iter().flatten() {
        *counts.entry(topic.topic_id).or_default() += 1;
    }
    let mut responses = Vec::with_capacity(states.len());
    for (state, topic) in states.iter().zip(found) {
        let count = topic.as_ref().map_or(Some(1), |topic| counts.remove(&topic.topic_id));
        let result = match (topic, count) {
            (_, None) => continue, // the first of its name has answered for it
            (Ok(topic), Some(1)) => delete(ctx, topic).await,
            (Ok(_), Some(_)) => Err(ErrorCode::InvalidRequest),
            (Err(code), _) => Err(code),
        };
        responses.push(match result {
            Ok(topic) => DeletableTopicResult::default()
                .with_name(Some(TopicName(StrBytes::from_string(topic.name.clone()))))
                .with_topic_id(topic.topic_id),
            Err(code) => failed(version, state, code),
        });
    }
    Ok(DeleteTopicsResponse::default().with_responses(responses))
}

pub(super) fn error_response(version: i16, request: &DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse {
    let responses = states(version, request).iter().map(|state| failed(version, state, code)).collect();
    DeleteTopicsResponse::default().with_responses(responses)
}

/// The topics named, in the shape of the newest version.
fn states(version: i16, request: &DeleteTopicsRequest) -> Vec<DeleteTopicState> {
    if version >= BY_ID {
        return request.topics.clone();
    }
    request.topic_names.iter().map(|name| DeleteTopicState::default().with_name(Some(name.clone()))).collect()
}

/// By name or by id. `None`: by both or neither.
fn asked(state: &DeleteTopicState) -> Option<TopicRef<'_>> {
    match (&state.name, state.topic_id.is_nil()) {
        (Some(name), true) => Some(TopicRef::Name(name)),
        (None, false) => Some(TopicRef::Id(state.topic_id)),
        _ => None,
    }
}

fn find(state: &DeleteTopicState, resolved: &mut impl Iterator<Item = Resolved>) -> Result<Arc<Topic>, ErrorCode> {
    asked(state).and_then(|_| resolved.next()).ok_or(ErrorCode::InvalidRequest)?.into_topic()
}

async fn delete(ctx: &RequestContext, topic: Arc<Topic>) -> Result<Arc<Topic>, ErrorCode> {
    if !ctx.shared.store.delete_topic(&topic.name).await.map_err(|error| ctx.store_code(&error))? {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    info!(topic = topic.name, peer = %ctx.session.peer, principal = %ctx.session.principal, "topic deleted");
    Ok(topic)
}

fn failed(version: i16, state: &DeleteTopicState, code: ErrorCode) -> DeletableTopicResult {
    let message = (version >= MESSAGES).then(|| StrBytes::from_static_str(code.message()));
    DeletableTopicResult::default()
        .with_name(state.name.clone())
        .with_topic_id(state.topic_id)
        .with_error_code(code.code())
        .with_error_message(message)
}
