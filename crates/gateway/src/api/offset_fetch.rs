//! OffsetFetch: how far groups have read. v8 and later ask for many groups at once (KIP-709); null
//! topics mean all (v2 and later).
//!
//! Every gateway answers for every group: offsets are read where commits are stored, so the answer
//! cannot be older than another one's. NOT_COORDINATOR would do harm: librdkafka then never asks again
//! for the partitions of that request. "No offset" (−1) is answered only when the database says so;
//! while Postgres is away it is COORDINATOR_LOAD_IN_PROGRESS, on which clients ask again (Java:
//! `OffsetFetchResponseHandler` takes COORDINATOR_NOT_AVAILABLE for fatal). Nothing is pending
//! without transactions, so `require_stable` changes nothing.

use std::collections::{BTreeMap, HashMap};

use kafka_protocol::{
    messages::{
        GroupId, OffsetFetchRequest, OffsetFetchResponse, TopicName,
        offset_fetch_response::{
            OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
            OffsetFetchResponseTopic, OffsetFetchResponseTopics,
        },
    },
    protocol::StrBytes,
};
use store::{OffsetQuery, PartitionKey, StoredOffset, TopicRef};
use wire::ErrorCode;

use crate::{acl::Operation, context::RequestContext, error::ApiError, resolve::Resolved};

/// First version that asks for many groups.
const BATCHED: i16 = 8;
/// First version with an error for the whole group.
const GROUP_ERROR: i16 = 2;
/// First version with leader epochs.
const LEADER_EPOCHS: i16 = 5;

/// What is asked about one group, in the shape of the newest version.
struct Asked<'a> {
    group_id: &'a GroupId,
    /// `None`: all.
    topics: Option<Vec<(&'a TopicName, &'a [i32])>>,
}

type Answer = Vec<(TopicName, Vec<OffsetFetchResponsePartitions>)>;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &OffsetFetchRequest,
) -> Result<OffsetFetchResponse, ApiError> {
    let mut results = Vec::new();
    for asked in asked(version, request) {
        let result = fetch(ctx, &asked).await.map_err(|error| ctx.code(&error));
        results.push((asked, result));
    }
    Ok(response(version, results))
}

pub(super) fn error_response(version: i16, request: &OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse {
    response(version, asked(version, request).into_iter().map(|asked| (asked, Err(code))).collect())
}

fn asked(version: i16, request: &OffsetFetchRequest) -> Vec<Asked<'_>> {
    if version < BATCHED {
        let topics = request.topics.as_ref();
        let topics =
            topics.map(|topics| topics.iter().map(|t| (&t.name, t.partition_indexes.as_slice())).collect::<Vec<_>>());
        return vec![Asked { group_id: &request.group_id, topics }];
    }
    let groups = request.groups.iter().map(|group| Asked {
        group_id: &group.group_id,
        topics: group
            .topics
            .as_ref()
            .map(|topics| topics.iter().map(|t| (&t.name, t.partition_indexes.as_slice())).collect()),
    });
    groups.collect()
}

async fn fetch(ctx: &RequestContext, asked: &Asked<'_>) -> Result<Answer, ApiError> {
    if asked.group_id.contains('\0') {
        return Err(ErrorCode::InvalidGroupId.into());
    }
    match &asked.topics {
        None => fetch_all(ctx, asked.group_id).await,
        Some(topics) => fetch_named(ctx, asked.group_id, topics).await,
    }
}

async fn fetch_all(ctx: &RequestContext, group_id: &GroupId) -> Result<Answer, ApiError> {
    let query = OffsetQuery { group: group_id, partitions: None };
    let mut topics: BTreeMap<String, Vec<OffsetFetchResponsePartitions>> = BTreeMap::new();
    for offset in ctx.shared.store.groups.fetch_offsets(&[query]).await? {
        topics.entry(offset.topic.clone()).or_default().push(found(&offset));
    }
    let named = |(name, partitions)| (TopicName(StrBytes::from_string(name)), partitions);
    Ok(topics.into_iter().map(named).collect())
}

async fn fetch_named(
    ctx: &RequestContext,
    group_id: &GroupId,
    topics: &[(&TopicName, &[i32])],
) -> Result<Answer, ApiError> {
    let names = topics.iter().map(|(name, _)| TopicRef::Name(name));
    let resolved = ctx.resolve(Operation::Describe, names).await?;
    let mut keys = Vec::new();
    for ((_, partitions), topic) in topics.iter().zip(&resolved) {
        keys.extend(partitions.iter().flat_map(|index| key(topic, *index)));
    }
    let mut offsets: HashMap<PartitionKey, StoredOffset> = HashMap::new();
    if !keys.is_empty() {
        let query = OffsetQuery { group: group_id, partitions: Some(&keys) };
        let rows = ctx.shared.store.groups.fetch_offsets(&[query]).await?;
        offsets.extend(rows.into_iter().map(|offset| (offset.partition, offset)));
    }
    let answer = |((name, partitions), topic): (&(&TopicName, &[i32]), &Resolved)| {
        let partition = |index: &i32| match key(topic, *index) {
            Ok(key) => offsets.get(&key).map_or_else(|| none(*index, ErrorCode::None), found),
            // Nothing was committed for what does not exist.
            Err(ErrorCode::UnknownTopicOrPartition) => none(*index, ErrorCode::None),
            Err(code) => none(*index, code),
        };
        ((*name).clone(), partitions.iter().map(partition).collect())
    };
    Ok(topics.iter().zip(&resolved).map(answer).collect())
}

/// Of any partition: a topic may have got more of them since it was last looked at.
fn key(topic: &Resolved, index: i32) -> Result<PartitionKey, ErrorCode> {
    Ok(PartitionKey::new(topic.topic()?.id, index))
}

fn found(offset: &StoredOffset) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions::default()
        .with_partition_index(offset.partition.partition_id)
        .with_committed_offset(offset.offset)
        .with_committed_leader_epoch(offset.leader_epoch.unwrap_or(-1))
        .with_metadata(Some(StrBytes::from_string(offset.metadata.clone())))
}

fn none(index: i32, code: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions::default()
        .with_partition_index(index)
        .with_committed_offset(-1)
        .with_committed_leader_epoch(-1)
        .with_metadata(Some(StrBytes::default()))
        .with_error_code(code.code())
}

fn response(version: i16, results: Vec<(Asked<'_>, Result<Answer, ErrorCode>)>) -> OffsetFetchResponse {
    if version >= BATCHED {
        let groups = results.into_iter().map(|(asked, result)| batched(&asked, result));
        return OffsetFetchResponse::default().with_groups(groups.collect());
    }
    let mut response = OffsetFetchResponse::default();
    for (asked, result) in results {
        let topics = match result {
            Ok(topics) => topics,
            Err(code) => {
                if version >= GROUP_ERROR {
                    response.error_code = code.code();
                }
                failed(&asked, code)
            }
        };
        response.topics.extend(topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|partition| single(version, partition)).collect();
            OffsetFetchResponseTopic::default().with_name(name).with_partitions(partitions)
        }));
    }
    response
}

/// Before v2 there is only this place for the error, and later it does no harm.
fn failed(asked: &Asked<'_>, code: ErrorCode) -> Answer {
    let topics = asked.topics.iter().flatten();
    topics
        .map(|(name, partitions)| ((*name).clone(), partitions.iter().map(|index| none(*index, code)).collect()))
        .collect()
}

fn batched(asked: &Asked<'_>, result: Result<Answer, ErrorCode>) -> OffsetFetchResponseGroup {
    let group = OffsetFetchResponseGroup::default().with_group_id(asked.group_id.clone());
    match result {
        Err(code) => group.with_error_code(code.code()),
        Ok(topics) => group.with_topics(
            topics
                .into_iter()
                .map(|(name, partitions)| {
                    OffsetFetchResponseTopics::default().with_name(name).with_partitions(partitions)
                })
                .collect(),
        ),
    }
}

fn single(version: i16, partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition {
    let epoch = if version >= LEADER_EPOCHS { partition.committed_leader_epoch } else { -1 };
    OffsetFetchResponsePartition::default()
        .with_partition_index(partition.partition_index)
        .with_committed_offset(partition.committed_offset)
        .with_committed_leader_epoch(epoch)
        .with_metadata(partition.metadata)
        .with_error_code(partition.error_code)
}
