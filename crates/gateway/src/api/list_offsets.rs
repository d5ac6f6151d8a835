//! ListOffsets (key 2): the start and the end of a log, and offsets by time.
//!
//! Ends come from Postgres with every request, for all partitions in one statement, so that
//! "latest" counts what is committed and nothing else. There are no transactions yet, so the
//! isolation level makes no difference. A partition named twice is INVALID_REQUEST
//! (Kafka: `ReplicaManager.fetchOffset`).
//!
//! Rules: `ListOffsetsRequest.java` (KIP-79), `Partition.fetchOffsetForTimestamp`; −3 is KIP-734,
//! −4 is KIP-405.

use std::collections::{HashMap, HashSet};

use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse,
    list_offsets_request::ListOffsetsPartition,
    list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse},
};
use store::{LogEnd, PartitionKey, Store, StoreError, TopicRef};
use wire::ErrorCode;

use super::leader_epoch;
use crate::{acl::Operation, context::RequestContext, error::ApiError};

/// First version whose answers tell the leader epoch (KIP-320).
const FIRST_WITH_EPOCH: i16 = 4;

/// First versions in which a timestamp has its special meaning; each before is UNSUPPORTED_VERSION
/// (Kafka: `ReplicaManager.fetchOffset`).
const FIRST_MAX_TIMESTAMP: i16 = 7;
const FIRST_EARLIEST_LOCAL: i16 = 8;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// Nothing is tiered away, so the local log is the log.
const EARLIEST_LOCAL: i64 = -4;

/// # Errors
/// [`ApiError`] if Postgres cannot be asked for the ends or the leader epoch.
pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &ListOffsetsRequest,
) -> Result<ListOffsetsResponse, ApiError> {
    let store = &ctx.shared.store;
    let named = request.topics.iter().flat_map(|topic| &topic.partitions).map(|asked| asked.current_leader_epoch);
    let epoch = leader_epoch::present(ctx, named).await?;
    let names = request.topics.iter().map(|topic| TopicRef::Name(&topic.name));
    let topics = ctx.resolve(Operation::Describe, names).await?;
    let keys = request.topics.iter().zip(&topics).flat_map(|(asked, topic)| {
        asked.partitions.iter().flat_map(|partition| topic.partition(partition.partition_index))
    });
    let wanted: Vec<_> = keys.collect();
    let ends = if wanted.is_empty() { HashMap::new() } else { store.log.ends(&wanted).await? };

    let mut responses = Vec::with_capacity(topics.len());
    let twice = named_twice(&wanted);
    for (topic, resolved) in request.topics.iter().zip(&topics) {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let found = resolved.partition(asked.partition_index);
            let found = found.and_then(|key| Ok((key, *ends.get(&key).ok_or(ErrorCode::UnknownTopicOrPartition)?)));
            partitions.push(match found {
                Ok((key, _)) if twice.contains(&key) => failed(asked, ErrorCode::InvalidRequest),
                Ok((key, end)) => match leader_epoch::error(asked.current_leader_epoch, epoch) {
                    Some(code) => failed(asked, code),
                    None => answer(ctx, version, asked, key, end).await,
                },
                Err(code) => failed(asked, code),
            });
        }
        responses.push(ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    Ok(ListOffsetsResponse::default().with_topics(responses))
}

/// The answer with one error for every partition of the request.
pub(super) fn error_response(_version: i16, request: &ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|topic| {
        ListOffsetsTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(topic.partitions.iter().map(|asked| failed(asked, code)).collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

fn named_twice(keys: &[PartitionKey]) -> HashSet<PartitionKey> {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().copied().filter(|key| !seen.insert(*key)).collect()
}

async fn answer(
    ctx: &RequestContext,
    version: i16,
    asked: &ListOffsetsPartition,
    key: PartitionKey,
    end: LogEnd,
) -> ListOffsetsPartitionResponse {
    let store = &ctx.shared.store;
    match find(store, version, asked.timestamp, key, end).await {
        Ok(Some((offset, timestamp))) => ListOffsetsPartitionResponse::default()
            .with_partition_index(asked.partition_index)
            .with_offset(offset)
            .with_timestamp(timestamp)
            .with_leader_epoch(if version >= FIRST_WITH_EPOCH { store.cluster.leader_epoch() } else { -1 }),
        // No such record: offset and timestamp −1 without an error.
        Ok(None) => failed(asked, ErrorCode::None),
        Err(Failure::Code(code)) => failed(asked, code),
        Err(Failure::Store(error)) => {
            tracing::debug!(%error, ?key, "offset look-up failed");
            failed(asked, ctx.store_code(&error))
        }
    }
}

enum Failure {
    Code(ErrorCode),
    Store(StoreError),
}

/// Offset and timestamp; the timestamp is −1 where the offset is not that of a record.
async fn find(
    store: &Store,
    version: i16,
    asked: i64,
    key: PartitionKey,
    end: LogEnd,
) -> Result<Option<(i64, i64)>, Failure> {
    let record = match asked {
        LATEST => return Ok(Some((end.high.get(), -1))),
        EARLIEST => return Ok(Some((end.start.get(), -1))),
        EARLIEST_LOCAL if version >= FIRST_EARLIEST_LOCAL => return Ok(Some((end.start.get(), -1))),
        MAX_TIMESTAMP if version >= FIRST_MAX_TIMESTAMP => store.log.offset_of_max_timestamp(key, end).await,
        timestamp if timestamp >= 0 => store.log.offset_for_timestamp(key, timestamp, end).await,
        _ => return Err(Failure::Code(ErrorCode::UnsupportedVersion)),
    };
    let record = record.map_err(Failure::Store)?;
    Ok(record.map(|record| (record.offset.get(), record.timestamp)))
}

fn failed(asked: &ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse::default()
        .with_partition_index(asked.partition_index)
        .with_error_code(code.code())
        .with_offset(-1)
        .with_timestamp(-1)
        .with_leader_epoch(-1)
}
