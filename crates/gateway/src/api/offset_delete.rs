//! OffsetDelete: forgets what a group has committed for some partitions (KIP-496).
//!
//! Topics that a member of the group reads are refused with GROUP_SUBSCRIBED_TO_TOPIC; a partition
//! without an offset is no error (Kafka: `GroupCoordinatorService.deleteOffsets`).

use std::collections::BTreeMap;

use kafka_protocol::messages::{
    OffsetDeleteRequest, OffsetDeleteResponse,
    offset_delete_request::OffsetDeleteRequestTopic,
    offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic},
};
use store::{PartitionKey, TopicRef};
use wire::ErrorCode;

use crate::{
    acl::Operation,
    context::RequestContext,
    error::{ApiError, group_error_code},
};

pub(super) async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &OffsetDeleteRequest,
) -> Result<OffsetDeleteResponse, ApiError> {
    ctx.shared.coordinator.check_owned(&request.group_id)?;
    let names = request.topics.iter().map(|topic| TopicRef::Name(&topic.name));
    let topics = ctx.resolve(Operation::Read, names).await?;
    let mut keys: BTreeMap<String, Vec<PartitionKey>> = BTreeMap::new();
    for (asked, topic) in request.topics.iter().zip(&topics) {
        let of_topic = keys.entry(asked.name.to_string()).or_default();
        of_topic.extend(asked.partitions.iter().flat_map(|partition| topic.partition(partition.partition_index)));
    }
    let refused = ctx.shared.coordinator.delete_offsets(&request.group_id, &keys).await?;
    let results = request.topics.iter().zip(&topics).map(|(asked, topic)| {
        let refused = refused.get(asked.name.as_str()).map_or(ErrorCode::None, |error| group_error_code(*error));
        results(asked, |index| topic.partition(index).err().unwrap_or(refused))
    });
    Ok(OffsetDeleteResponse::default().with_topics(results.collect()))
}

pub(super) fn error_response(_version: i16, _request: &OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse {
    OffsetDeleteResponse::default().with_error_code(code.code())
}

fn results(asked: &OffsetDeleteRequestTopic, code: impl Fn(i32) -> ErrorCode) -> OffsetDeleteResponseTopic {
    let partition = |index: i32| {
        OffsetDeleteResponsePartition::default().with_partition_index(index).with_error_code(code(index).code())
    };
    OffsetDeleteResponseTopic::default()
        .with_name(asked.name.clone())
        .with_partitions(asked.partitions.iter().map(|p| partition(p.partition_index)).collect())
}
