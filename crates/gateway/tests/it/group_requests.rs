//! Requests of the group APIs, and what their answers say.

use bytes::Bytes;
use gateway::config::Config;
use kafka_protocol::{
    messages::{
        GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, OffsetFetchRequest,
        SyncGroupRequest,
        join_group_request::JoinGroupRequestProtocol,
        offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
        offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics},
        sync_group_request::SyncGroupRequestAssignment,
    },
    protocol::StrBytes,
};
use testkit::{Client, TestGateway};

use crate::samples::{batch, metadata, produce, topic_name};

pub(crate) const ASSIGNMENT: &[u8] = b"\0\0\0\0\0\x01\0\x06orders\0\0\0\x02\0\0\0\0\0\0\0\x01\xff\xff\xff\xff";

pub(crate) fn fast(config: &mut Config) {
    config.server.groups.group_initial_rebalance_delay_ms = 0;
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn group(id: &str) -> GroupId {
    GroupId(text(id))
}

/// A consumer of the topic "orders".
pub(crate) fn join(group_id: &str, member_id: &str) -> JoinGroupRequest {
    let subscription = Bytes::from_static(b"\0\0\0\0\0\x01\0\x06orders\xff\xff\xff\xff");
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(subscription);
    JoinGroupRequest::default()
        .with_group_id(group(group_id))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

/// Joins as a dynamic member, with the member id asked for first where the version wants it.
pub(crate) async fn joined(client: &mut Client, version: i16, group_id: &str) -> JoinGroupResponse {
    let first = client.call(version, join(group_id, "")).await;
    if version < 4 {
        return first;
    }
    assert_eq!(first.error_code, 79, "v{version}: {first:?}");
    assert!(!first.member_id.is_empty());
    client.call(version, join(group_id, &first.member_id)).await
}

pub(crate) fn sync(version: i16, group_id: &str, joined: &JoinGroupResponse) -> SyncGroupRequest {
    let assignments = joined.members.iter().map(|member| {
        SyncGroupRequestAssignment::default()
            .with_member_id(member.member_id.clone())
            .with_assignment(Bytes::from_static(ASSIGNMENT))
    });
    let request = SyncGroupRequest::default()
        .with_group_id(group(group_id))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_assignments(assignments.collect());
    match version {
        5.. => request.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range"))),
        _ => request,
    }
}

pub(crate) fn heartbeat(group_id: &str, generation: i32, member_id: &str) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(group(group_id))
        .with_generation_id(generation)
        .with_member_id(text(member_id))
}

pub(crate) fn commit(group_id: &str, topic: &str, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(text("note")));
    let topic = OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group(group_id))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic])
}

pub(crate) fn offset_fetch(version: i16, group_id: &str, topic: &str) -> OffsetFetchRequest {
    if version >= 8 {
        let topic = OffsetFetchRequestTopics::default().with_name(topic_name(topic)).with_partition_indexes(vec![0]);
        let group = OffsetFetchRequestGroup::default().with_group_id(group(group_id)).with_topics(Some(vec![topic]));
        return OffsetFetchRequest::default().with_groups(vec![group]);
    }
    let topic = OffsetFetchRequestTopic::default().with_name(topic_name(topic)).with_partition_indexes(vec![0]);
    OffsetFetchRequest::default().with_group_id(group(group_id)).with_topics(Some(vec![topic]))
}

/// Error of the group or the partition, offset, metadata.
pub(crate) async fn fetched(client: &mut Client, version: i16, group_id: &str, topic: &str) -> (i16, i64, String) {
    let response = client.call(version, offset_fetch(version, group_id, topic)).await;
    if version >= 8 {
        let group = &response.groups[0];
        if group.error_code != 0 {
            return (group.error_code, -1, String::new());
        }
        let partition = &group.topics[0].partitions[0];
        return (partition.error_code, partition.committed_offset, partition.metadata.clone().unwrap().to_string());
    }
    let partition = &response.topics[0].partitions[0];
    let error = if response.error_code == 0 { partition.error_code } else { response.error_code };
    (error, partition.committed_offset, partition.metadata.clone().unwrap().to_string())
}

pub(crate) fn committed(response: &kafka_protocol::messages::OffsetCommitResponse) -> i16 {
    response.topics[0].partitions[0].error_code
}

pub(crate) async fn with_topic(gateway: &TestGateway) -> Client {
    let mut client = gateway.client().await;
    client.call(12, metadata("orders")).await;
    client.call(9, produce("orders", -1, batch(b"value"))).await;
    client
}
