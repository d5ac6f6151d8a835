//! Requests of the APIs of groups and their committed offsets.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;

use super::values::{group, text, topic};

pub(super) fn offset_commit(version: i16) -> OffsetCommitRequest {
    let mut partition = OffsetCommitRequestPartition::default()
        .with_partition_index(4)
        .with_committed_offset(1 << 33)
        .with_committed_metadata(Some(text("meta")));
    if version >= 6 {
        partition = partition.with_committed_leader_epoch(3);
    }
    let committed = OffsetCommitRequestTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
    let mut request = OffsetCommitRequest::default()
        .with_group_id(group())
        .with_generation_id_or_member_epoch(5)
        .with_member_id(text("member"))
        .with_topics(vec![committed]);
    if version <= 4 {
        request = request.with_retention_time_ms(60_000);
    }
    if version >= 7 {
        request = request.with_group_instance_id(Some(text("static")));
    }
    request
}

pub(super) fn offset_fetch(version: i16) -> OffsetFetchRequest {
    let mut request = OffsetFetchRequest::default();
    if version <= 7 {
        let topics = OffsetFetchRequestTopic::default().with_name(topic("t")).with_partition_indexes(vec![0, 9]);
        request = request.with_group_id(group()).with_topics(Some(vec![topics]));
    } else {
        let topics = OffsetFetchRequestTopics::default().with_name(topic("t")).with_partition_indexes(vec![0, 9]);
        let mut asked = OffsetFetchRequestGroup::default().with_group_id(group()).with_topics(Some(vec![topics]));
        if version >= 9 {
            asked = asked.with_member_id(Some(text("member"))).with_member_epoch(3);
        }
        request = request.with_groups(vec![asked]);
    }
    if version >= 7 {
        request = request.with_require_stable(true);
    }
    request
}

pub(super) fn find_coordinator(version: i16) -> FindCoordinatorRequest {
    let mut request = FindCoordinatorRequest::default();
    if version <= 3 {
        request = request.with_key(text("group"));
    } else {
        request = request.with_coordinator_keys(vec![text("a"), text("b")]);
    }
    if version >= 1 {
        request = request.with_key_type(1);
    }
    request
}

pub(super) fn join_group(version: i16) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"\0\x01subscription"));
    let mut request = JoinGroupRequest::default()
        .with_group_id(group())
        .with_session_timeout_ms(45_000)
        .with_member_id(text("member"))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    if version >= 1 {
        request = request.with_rebalance_timeout_ms(300_000);
    }
    if version >= 5 {
        request = request.with_group_instance_id(Some(text("static")));
    }
    if version >= 8 {
        request = request.with_reason(Some(text("why not")));
    }
    request
}

pub(super) fn heartbeat(version: i16) -> HeartbeatRequest {
    let mut request =
        HeartbeatRequest::default().with_group_id(group()).with_generation_id(8).with_member_id(text("member"));
    if version >= 3 {
        request = request.with_group_instance_id(Some(text("static")));
    }
    request
}

pub(super) fn leave_group(version: i16) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group());
    if version <= 2 {
        return request.with_member_id(text("member"));
    }
    let mut member =
        MemberIdentity::default().with_member_id(text("member")).with_group_instance_id(Some(text("static")));
    if version >= 5 {
        member = member.with_reason(Some(text("bye")));
    }
    request.with_members(vec![member])
}

pub(super) fn sync_group(version: i16) -> SyncGroupRequest {
    let assignment = SyncGroupRequestAssignment::default()
        .with_member_id(text("member"))
        .with_assignment(Bytes::from_static(b"assignment"));
    let mut request = SyncGroupRequest::default()
        .with_group_id(group())
        .with_generation_id(8)
        .with_member_id(text("member"))
        .with_assignments(vec![assignment]);
    if version >= 3 {
        request = request.with_group_instance_id(Some(text("static")));
    }
    if version >= 5 {
        request = request.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")));
    }
    request
}

pub(super) fn describe_groups(version: i16) -> DescribeGroupsRequest {
    DescribeGroupsRequest::default()
        .with_groups(vec![group(), GroupId(text(""))])
        .with_include_authorized_operations(version >= 3)
}

pub(super) fn list_groups(version: i16) -> ListGroupsRequest {
    let mut request = ListGroupsRequest::default();
    if version >= 4 {
        request = request.with_states_filter(vec![text("Stable"), text("Empty")]);
    }
    if version >= 5 {
        request = request.with_types_filter(vec![text("classic")]);
    }
    request
}

pub(super) fn offset_delete() -> OffsetDeleteRequest {
    let partition = OffsetDeleteRequestPartition::default().with_partition_index(6);
    OffsetDeleteRequest::default()
        .with_group_id(group())
        .with_topics(vec![OffsetDeleteRequestTopic::default().with_name(topic("t")).with_partitions(vec![partition])])
}

pub(super) fn delete_groups() -> DeleteGroupsRequest {
    DeleteGroupsRequest::default().with_groups_names(vec![group()])
}
