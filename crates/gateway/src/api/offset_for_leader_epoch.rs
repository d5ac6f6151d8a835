//! OffsetForLeaderEpoch: where a leader epoch ended, so that a consumer can detect truncation
//! (KIP-320).
//!
//! The log is never truncated, whichever gateway leads: what was read in any epoch is still there. So
//! every epoch up to the present one ends at the log end, as Kafka says of the present one. Asking for
//! an epoch that does not exist gives (−1, −1) without an error (Kafka:
//! `Partition.lastOffsetForLeaderEpoch`); clients take that for a truncation, so an epoch that only
//! another gateway may know is looked up first.

use std::collections::HashMap;

use kafka_protocol::messages::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
    offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult},
};
use store::{LogEnd, TopicRef};
use wire::ErrorCode;

use super::leader_epoch;
use crate::{acl::Operation, context::RequestContext, error::ApiError};

pub(super) async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &OffsetForLeaderEpochRequest,
) -> Result<OffsetForLeaderEpochResponse, ApiError> {
    let named = request.topics.iter().flat_map(|topic| &topic.partitions);
    let named = named.flat_map(|asked| [asked.current_leader_epoch, asked.leader_epoch]);
    let present = leader_epoch::present(ctx, named).await?;
    let names = request.topics.iter().map(|asked| TopicRef::Name(&asked.topic));
    let topics = ctx.resolve(Operation::Describe, names).await?;
    let keys =
        request.topics.iter().zip(&topics).flat_map(|(asked, topic)| {
            asked.partitions.iter().flat_map(|partition| topic.partition(partition.partition))
        });
    let wanted: Vec<_> = keys.collect();
    let ends = if wanted.is_empty() { HashMap::new() } else { ctx.shared.store.log.ends(&wanted).await? };
    let results = request.topics.iter().zip(&topics).map(|(asked, topic)| {
        results(asked, |partition| match topic.partition(partition.partition) {
            Ok(key) => end_of_epoch(partition, ends.get(&key), present),
            Err(code) => unknown(partition, code),
        })
    });
    Ok(OffsetForLeaderEpochResponse::default().with_topics(results.collect()))
}

pub(super) fn error_response(
    _version: i16,
    request: &OffsetForLeaderEpochRequest,
    code: ErrorCode,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.iter().map(|asked| results(asked, |partition| unknown(partition, code)));
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

fn results(
    asked: &OffsetForLeaderTopic,
    answer: impl Fn(&OffsetForLeaderPartition) -> EpochEndOffset,
) -> OffsetForLeaderTopicResult {
    OffsetForLeaderTopicResult::default()
        .with_topic(asked.topic.clone())
        .with_partitions(asked.partitions.iter().map(answer).collect())
}

fn end_of_epoch(asked: &OffsetForLeaderPartition, end: Option<&LogEnd>, present: i32) -> EpochEndOffset {
    let Some(end) = end else {
        return unknown(asked, ErrorCode::UnknownTopicOrPartition);
    };
    if let Some(code) = leader_epoch::error(asked.current_leader_epoch, present) {
        return unknown(asked, code);
    }
    if !(0..=present).contains(&asked.leader_epoch) {
        return unknown(asked, ErrorCode::None);
    }
    EpochEndOffset::default()
        .with_partition(asked.partition)
        .with_leader_epoch(asked.leader_epoch)
        .with_end_offset(end.high.get())
}

fn unknown(asked: &OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset {
    EpochEndOffset::default()
        .with_partition(asked.partition)
        .with_error_code(code.code())
        .with_leader_epoch(-1)
        .with_end_offset(-1)
}

#[cfg(test)]
mod tests {
    use store::Offset;

    use super::*;

    fn ask(current_leader_epoch: i32, leader_epoch: i32) -> (i16, i32, i64) {
        let asked = OffsetForLeaderPartition::default()
            .with_current_leader_epoch(current_leader_epoch)
            .with_leader_epoch(leader_epoch);
        let end = LogEnd::new(Offset::new(2), Offset::new(7));
        let answer = end_of_epoch(&asked, Some(&end), 3);
        (answer.error_code, answer.leader_epoch, answer.end_offset)
    }

    #[test]
    fn every_epoch_that_existed_ends_at_the_log_end() {
        for epoch in 0..=3 {
            assert_eq!(ask(-1, epoch), (0, epoch, 7));
            assert_eq!(ask(3, epoch), (0, epoch, 7));
        }
        assert_eq!(ask(-1, 4), (0, -1, -1));
        assert_eq!(ask(-1, -1), (0, -1, -1));
        assert_eq!(ask(4, 0), (75, -1, -1));
        assert_eq!(ask(2, 0), (74, -1, -1));
        assert_eq!(ask(-2, 0), (74, -1, -1));
    }
}
