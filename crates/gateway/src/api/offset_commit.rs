//! OffsetCommit: stores how far a group has read, where pgQueue's clients have it too
//! (storage.md D1).
//!
//! All partitions of a request are stored in one statement, or none is. Different from Apache Kafka:
//! a negative offset is refused with INVALID_REQUEST (Kafka keeps it, and clients that fetch it take
//! it for "none"), and so is metadata with NUL, which Postgres stores in no text
//! (OFFSET_METADATA_TOO_LARGE). `retention_time_ms` counts in v2–4, which have it.

use std::{collections::BTreeMap, time::Duration};

use groups::CommitRequest;
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse,
    offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
    offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic},
};
use store::{Committed, NewOffset, TopicRef};
use wire::ErrorCode;

use super::group_fields::optional;
use crate::{acl::Operation, context::RequestContext, error::ApiError};

/// Last version with a retention of its own.
const RETENTION: i16 = 4;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &OffsetCommitRequest,
) -> Result<OffsetCommitResponse, ApiError> {
    ctx.shared.coordinator.check_owned(&request.group_id)?;
    let commit = CommitRequest {
        member_id: request.member_id.to_string(),
        instance_id: optional(&request.group_instance_id),
        generation: request.generation_id_or_member_epoch,
        transactional: false,
    };
    let names = request.topics.iter().map(|topic| TopicRef::Name(&topic.name));
    let topics = ctx.resolve(Operation::Read, names).await?;
    let max_metadata = ctx.shared.config.groups.offset_metadata_max_bytes as usize;
    let mut offsets = BTreeMap::new();
    for (asked, topic) in request.topics.iter().zip(&topics) {
        for partition in asked.partitions.iter().filter(|partition| refusal(partition, max_metadata).is_none()) {
            if let Ok(key) = topic.partition(partition.partition_index) {
                offsets.insert(key, new_offset(version, request, partition));
            }
        }
    }
    let committed = ctx.shared.coordinator.commit(version, &request.group_id, &commit, &offsets).await?;
    let told = |partition: &OffsetCommitRequestPartition, key| match refusal(partition, max_metadata) {
        Some(code) => code,
        None => match committed.get(&key) {
            Some(Committed::Stored { .. }) => ErrorCode::None,
            Some(Committed::InvalidMetadata) => ErrorCode::OffsetMetadataTooLarge,
            Some(Committed::UnknownPartition) | None => ErrorCode::UnknownTopicOrPartition,
        },
    };
    let results = request.topics.iter().zip(&topics).map(|(asked, topic)| {
        results(asked, |partition| {
            topic.partition(partition.partition_index).map_or_else(|code| code, |key| told(partition, key))
        })
    });
    Ok(OffsetCommitResponse::default().with_topics(results.collect()))
}

pub(super) fn error_response(_version: i16, request: &OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|asked| results(asked, |_| code));
    OffsetCommitResponse::default().with_topics(topics.collect())
}

fn refusal(partition: &OffsetCommitRequestPartition, max_metadata: usize) -> Option<ErrorCode> {
    if partition.committed_metadata.as_ref().is_some_and(|metadata| metadata.len() > max_metadata) {
        return Some(ErrorCode::OffsetMetadataTooLarge);
    }
    (partition.committed_offset < 0).then_some(ErrorCode::InvalidRequest)
}

fn new_offset(version: i16, request: &OffsetCommitRequest, partition: &OffsetCommitRequestPartition) -> NewOffset {
    let retention = u64::try_from(request.retention_time_ms).ok().filter(|_| version <= RETENTION);
    NewOffset {
        offset: partition.committed_offset,
        leader_epoch: Some(partition.committed_leader_epoch).filter(|epoch| *epoch >= 0),
        metadata: optional(&partition.committed_metadata).unwrap_or_default(),
        expires_after: retention.map(Duration::from_millis),
    }
}

fn results(
    asked: &OffsetCommitRequestTopic,
    code: impl Fn(&OffsetCommitRequestPartition) -> ErrorCode,
) -> OffsetCommitResponseTopic {
    let partitions = asked.partitions.iter().map(|partition| {
        OffsetCommitResponsePartition::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(code(partition).code())
    });
    OffsetCommitResponseTopic::default().with_name(asked.name.clone()).with_partitions(partitions.collect())
}
