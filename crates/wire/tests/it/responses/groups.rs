//! Responses of the APIs of groups and their committed offsets.

use bytes::Bytes;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::*;

use crate::requests::values::{group, text, topic};

pub(super) fn offset_commit(version: i16, error: i16) -> OffsetCommitResponse {
    let partition = OffsetCommitResponsePartition::default().with_partition_index(1).with_error_code(error);
    let of_topic = OffsetCommitResponseTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
    let response = OffsetCommitResponse::default().with_topics(vec![of_topic]);
    if version >= 3 { response.with_throttle_time_ms(1) } else { response }
}

pub(super) fn offset_fetch(version: i16, error: i16) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse::default();
    if version >= 3 {
        response = response.with_throttle_time_ms(1);
    }
    if version <= 7 {
        let mut partition = OffsetFetchResponsePartition::default()
            .with_partition_index(1)
            .with_committed_offset(77)
            .with_metadata(Some(text("m")))
            .with_error_code(error);
        if version >= 5 {
            partition = partition.with_committed_leader_epoch(2);
        }
        let of_topic = OffsetFetchResponseTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
        response = response.with_topics(vec![of_topic]);
        return if version >= 2 { response.with_error_code(error) } else { response };
    }
    let partition = OffsetFetchResponsePartitions::default()
        .with_partition_index(1)
        .with_committed_offset(77)
        .with_committed_leader_epoch(2)
        .with_metadata(None)
        .with_error_code(error);
    let of_topic = OffsetFetchResponseTopics::default().with_name(topic("t")).with_partitions(vec![partition]);
    let of_group =
        OffsetFetchResponseGroup::default().with_group_id(group()).with_topics(vec![of_topic]).with_error_code(error);
    response.with_groups(vec![of_group])
}

pub(super) fn find_coordinator(version: i16, error: i16) -> FindCoordinatorResponse {
    let mut response = FindCoordinatorResponse::default();
    if version >= 1 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 4 {
        let coordinator = find_coordinator_response::Coordinator::default()
            .with_key(text("group"))
            .with_node_id(BrokerId(1))
            .with_host(text("localhost"))
            .with_port(9092)
            .with_error_code(error)
            .with_error_message(Some(text("why")));
        return response.with_coordinators(vec![coordinator, Coordinator::default()]);
    }
    response = response.with_error_code(error).with_node_id(BrokerId(1)).with_host(text("localhost")).with_port(9092);
    if version >= 1 { response.with_error_message(Some(text("why"))) } else { response }
}

pub(super) fn join_group(version: i16, error: i16) -> JoinGroupResponse {
    let mut member = JoinGroupResponseMember::default()
        .with_member_id(text("member"))
        .with_metadata(Bytes::from_static(b"subscription"));
    if version >= 5 {
        member = member.with_group_instance_id(Some(text("static")));
    }
    let mut response = JoinGroupResponse::default()
        .with_error_code(error)
        .with_generation_id(3)
        .with_protocol_name(Some(text("range")))
        .with_leader(text("member"))
        .with_member_id(text("member"))
        .with_members(vec![member]);
    if version >= 2 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 7 {
        response = response.with_protocol_type(Some(text("consumer")));
    }
    if version >= 9 {
        response = response.with_skip_assignment(true);
    }
    response
}

pub(super) fn heartbeat(version: i16, error: i16) -> HeartbeatResponse {
    let response = HeartbeatResponse::default().with_error_code(error);
    if version >= 1 { response.with_throttle_time_ms(1) } else { response }
}

pub(super) fn leave_group(version: i16, error: i16) -> LeaveGroupResponse {
    let mut response = LeaveGroupResponse::default().with_error_code(error);
    if version >= 1 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 3 {
        let member = MemberResponse::default()
            .with_member_id(text("member"))
            .with_group_instance_id(None)
            .with_error_code(error);
        response = response.with_members(vec![member]);
    }
    response
}

pub(super) fn sync_group(version: i16, error: i16) -> SyncGroupResponse {
    let mut response =
        SyncGroupResponse::default().with_error_code(error).with_assignment(Bytes::from_static(b"assignment"));
    if version >= 1 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 5 {
        response = response.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")));
    }
    response
}

pub(super) fn describe_groups(version: i16, error: i16) -> DescribeGroupsResponse {
    let mut member = DescribedGroupMember::default()
        .with_member_id(text("member"))
        .with_client_id(text("client"))
        .with_client_host(text("/127.0.0.1"))
        .with_member_metadata(Bytes::from_static(b"m"))
        .with_member_assignment(Bytes::from_static(b"a"));
    if version >= 4 {
        member = member.with_group_instance_id(Some(text("static")));
    }
    let mut described = DescribedGroup::default()
        .with_error_code(error)
        .with_group_id(group())
        .with_group_state(text("Stable"))
        .with_protocol_type(text("consumer"))
        .with_protocol_data(text("range"))
        .with_members(vec![member]);
    if version >= 3 {
        described = described.with_authorized_operations(8);
    }
    if version >= 6 {
        described = described.with_error_message(Some(text("why")));
    }
    let response = DescribeGroupsResponse::default().with_groups(vec![described]);
    if version >= 1 { response.with_throttle_time_ms(1) } else { response }
}

pub(super) fn list_groups(version: i16, error: i16) -> ListGroupsResponse {
    let mut listed = ListedGroup::default().with_group_id(group()).with_protocol_type(text("consumer"));
    if version >= 4 {
        listed = listed.with_group_state(text("Stable"));
    }
    if version >= 5 {
        listed = listed.with_group_type(text("classic"));
    }
    let response = ListGroupsResponse::default().with_error_code(error).with_groups(vec![listed]);
    if version >= 1 { response.with_throttle_time_ms(1) } else { response }
}

pub(super) fn delete_groups(error: i16) -> DeleteGroupsResponse {
    let result = DeletableGroupResult::default().with_group_id(group()).with_error_code(error);
    DeleteGroupsResponse::default().with_throttle_time_ms(1).with_results(vec![result])
}

pub(super) fn offset_delete(error: i16) -> OffsetDeleteResponse {
    let partition = OffsetDeleteResponsePartition::default().with_partition_index(1).with_error_code(error);
    let of_topic = OffsetDeleteResponseTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
    OffsetDeleteResponse::default().with_error_code(error).with_throttle_time_ms(1).with_topics(vec![of_topic])
}
