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
use store::PartitionKey;
use wire::ErrorCode;

use crate::{
    context::RequestContext,
    error::{ApiError, group_error_code},
};

pub async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &OffsetDeleteRequest,
) -> Result<OffsetDeleteResponse, ApiError> {
    ctx.shared.coordinator.check_owned(&request.group_id)?;
    let names: Vec<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    let found = ctx.shared.store.catalog.topics(&names).await?;
    let mut keys: BTreeMap<String, Vec<PartitionKey>> = BTreeMap::new();
    for (asked, topic) in request.topics.iter().zip(&found) {
        let Some(topic) = topic else { continue };
        let exists = asked.partitions.iter().filter(|p| (0..topic.partition_count).contains(&p.partition_index));
        let of_topic = keys.entry(topic.name.clone()).or_default();
        of_topic.extend(exists.map(|p| PartitionKey::new(topic.id, p.partition_index)));
    }
    let refused = ctx.shared.coordinator.delete_offsets(&request.group_id, &keys).await?;
    let topics = request.topics.iter().zip(&found).map(|(asked, topic)| {
        results(asked, |index| match topic {
            Some(topic) if (0..topic.partition_count).contains(&index) => {
                refused.get(&topic.name).map_or(ErrorCode::None, |error| group_error_code(*error))
            }
            _ => ErrorCode::UnknownTopicOrPartition,
        })
    });
    Ok(OffsetDeleteResponse::default().with_topics(topics.collect()))
}

pub fn error_response(_version: i16, _request: &OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse {
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
