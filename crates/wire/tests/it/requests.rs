//! A request with every field set, for every API and version that the crate decodes.

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

pub(crate) fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic(name: &'static str) -> TopicName {
    TopicName(text(name))
}

fn group() -> GroupId {
    GroupId(text("group-ü"))
}

pub(crate) const TOPIC_ID: Uuid = Uuid::from_u128(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff01);

/// (key, version, request) of everything.
pub(crate) fn every_request() -> Vec<(i16, i16, RequestKind)> {
    type Build = fn(i16) -> RequestKind;
    let builders: [(i16, std::ops::RangeInclusive<i16>, Build); 22] = [
        (0, 3..=13, |v| RequestKind::Produce(produce(v))),
        (1, 4..=18, |v| RequestKind::Fetch(fetch(v))),
        (2, 1..=10, |v| RequestKind::ListOffsets(list_offsets(v))),
        (3, 0..=13, |v| RequestKind::Metadata(metadata(v))),
        (8, 2..=9, |v| RequestKind::OffsetCommit(offset_commit(v))),
        (9, 1..=9, |v| RequestKind::OffsetFetch(offset_fetch(v))),
        (10, 0..=6, |v| RequestKind::FindCoordinator(find_coordinator(v))),
        (11, 0..=9, |v| RequestKind::JoinGroup(join_group(v))),
        (12, 0..=4, |v| RequestKind::Heartbeat(heartbeat(v))),
        (13, 0..=5, |v| RequestKind::LeaveGroup(leave_group(v))),
        (14, 0..=5, |v| RequestKind::SyncGroup(sync_group(v))),
        (15, 0..=6, |v| RequestKind::DescribeGroups(describe_groups(v))),
        (16, 0..=5, |v| RequestKind::ListGroups(list_groups(v))),
        (18, 0..=4, |v| RequestKind::ApiVersions(api_versions(v))),
        (19, 2..=7, |_| RequestKind::CreateTopics(create_topics())),
        (20, 1..=6, |v| RequestKind::DeleteTopics(delete_topics(v))),
        (22, 0..=5, |v| RequestKind::InitProducerId(init_producer_id(v))),
        (23, 2..=4, |v| RequestKind::OffsetForLeaderEpoch(offset_for_leader_epoch(v))),
        (32, 1..=4, |v| RequestKind::DescribeConfigs(describe_configs(v))),
        (42, 0..=2, |_| RequestKind::DeleteGroups(DeleteGroupsRequest::default().with_groups_names(vec![group()]))),
        (47, 0..=0, |_| RequestKind::OffsetDelete(offset_delete())),
        (60, 0..=2, |v| RequestKind::DescribeCluster(describe_cluster(v))),
    ];
    builders
        .into_iter()
        .flat_map(|(key, versions, build)| versions.map(move |version| (key, version, build(version))))
        .collect()
}

fn produce(version: i16) -> ProduceRequest {
    let mut data = TopicProduceData::default().with_partition_data(vec![
        PartitionProduceData::default().with_index(7).with_records(Some(Bytes::from_static(b"not a batch"))),
        PartitionProduceData::default().with_index(8).with_records(None),
    ]);
    if version <= 12 {
        data = data.with_name(topic("orders"));
    } else {
        data = data.with_topic_id(TOPIC_ID);
    }
    ProduceRequest::default()
        .with_transactional_id(Some(TransactionalId(text("tx"))))
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![data])
}

fn fetch(version: i16) -> FetchRequest {
    let mut partition =
        FetchPartition::default().with_partition(3).with_fetch_offset(1 << 40).with_partition_max_bytes(1 << 20);
    if version >= 5 {
        partition = partition.with_log_start_offset(17);
    }
    if version >= 9 {
        partition = partition.with_current_leader_epoch(5);
    }
    if version >= 12 {
        partition = partition.with_last_fetched_epoch(4);
    }
    if version >= 17 {
        partition = partition.with_replica_directory_id(TOPIC_ID);
    }
    if version >= 18 {
        partition = partition.with_high_watermark(99);
    }
    let mut fetched = FetchTopic::default().with_partitions(vec![partition]);
    let mut forgotten = ForgottenTopic::default().with_partitions(vec![1, 2]);
    if version <= 12 {
        (fetched, forgotten) = (fetched.with_topic(topic("orders")), forgotten.with_topic(topic("old")));
    } else {
        (fetched, forgotten) = (fetched.with_topic_id(TOPIC_ID), forgotten.with_topic_id(TOPIC_ID));
    }
    let mut request = FetchRequest::default()
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_isolation_level(1)
        .with_topics(vec![fetched]);
    if version <= 14 {
        request = request.with_replica_id(BrokerId(-1));
    } else {
        request =
            request.with_replica_state(ReplicaState::default().with_replica_id(BrokerId(2)).with_replica_epoch(3));
    }
    if version >= 7 {
        request = request.with_session_id(11).with_session_epoch(12).with_forgotten_topics_data(vec![forgotten]);
    }
    if version >= 11 {
        request = request.with_rack_id(text("rack"));
    }
    if version >= 12 {
        request = request.with_cluster_id(Some(text("cluster")));
    }
    request
}

fn list_offsets(version: i16) -> ListOffsetsRequest {
    let mut partition = ListOffsetsPartition::default().with_partition_index(2).with_timestamp(-1);
    if version >= 4 {
        partition = partition.with_current_leader_epoch(6);
    }
    let mut request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![ListOffsetsTopic::default().with_name(topic("t")).with_partitions(vec![partition])]);
    if version >= 2 {
        request = request.with_isolation_level(1);
    }
    if version >= 10 {
        request = request.with_timeout_ms(9);
    }
    request
}

fn metadata(version: i16) -> MetadataRequest {
    let mut wanted = MetadataRequestTopic::default().with_name(Some(topic("orders")));
    if version >= 10 {
        wanted = wanted.with_topic_id(TOPIC_ID);
    }
    let mut request = MetadataRequest::default().with_topics(Some(vec![wanted]));
    if version >= 4 {
        request = request.with_allow_auto_topic_creation(false);
    }
    if version >= 8 {
        request = request.with_include_topic_authorized_operations(true);
    }
    if (8..=10).contains(&version) {
        request = request.with_include_cluster_authorized_operations(true);
    }
    request
}

fn offset_commit(version: i16) -> OffsetCommitRequest {
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

fn offset_fetch(version: i16) -> OffsetFetchRequest {
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

fn find_coordinator(version: i16) -> FindCoordinatorRequest {
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

fn join_group(version: i16) -> JoinGroupRequest {
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

fn heartbeat(version: i16) -> HeartbeatRequest {
    let mut request =
        HeartbeatRequest::default().with_group_id(group()).with_generation_id(8).with_member_id(text("member"));
    if version >= 3 {
        request = request.with_group_instance_id(Some(text("static")));
    }
    request
}

fn leave_group(version: i16) -> LeaveGroupRequest {
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

fn sync_group(version: i16) -> SyncGroupRequest {
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

fn describe_groups(version: i16) -> DescribeGroupsRequest {
    DescribeGroupsRequest::default()
        .with_groups(vec![group(), GroupId(text(""))])
        .with_include_authorized_operations(version >= 3)
}

fn list_groups(version: i16) -> ListGroupsRequest {
    let mut request = ListGroupsRequest::default();
    if version >= 4 {
        request = request.with_states_filter(vec![text("Stable"), text("Empty")]);
    }
    if version >= 5 {
        request = request.with_types_filter(vec![text("classic")]);
    }
    request
}

fn api_versions(version: i16) -> ApiVersionsRequest {
    if version < 3 {
        return ApiVersionsRequest::default();
    }
    ApiVersionsRequest::default().with_client_software_name(text("tests")).with_client_software_version(text("1.0"))
}

fn create_topics() -> CreateTopicsRequest {
    let assignment =
        CreatableReplicaAssignment::default().with_partition_index(0).with_broker_ids(vec![BrokerId(1), BrokerId(2)]);
    let config = CreatableTopicConfig::default().with_name(text("cleanup.policy")).with_value(Some(text("delete")));
    let wanted = CreatableTopic::default()
        .with_name(topic("new"))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assignment])
        .with_configs(vec![config, CreatableTopicConfig::default().with_name(text("x")).with_value(None)]);
    CreateTopicsRequest::default().with_topics(vec![wanted]).with_timeout_ms(5_000).with_validate_only(true)
}

fn delete_topics(version: i16) -> DeleteTopicsRequest {
    let request = DeleteTopicsRequest::default().with_timeout_ms(5_000);
    if version <= 5 {
        return request.with_topic_names(vec![topic("a"), topic("b")]);
    }
    request.with_topics(vec![
        DeleteTopicState::default().with_name(Some(topic("a"))),
        DeleteTopicState::default().with_name(None).with_topic_id(TOPIC_ID),
    ])
}

fn init_producer_id(version: i16) -> InitProducerIdRequest {
    let mut request = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("tx"))))
        .with_transaction_timeout_ms(60_000);
    if version >= 3 {
        request = request.with_producer_id(ProducerId(1000)).with_producer_epoch(2);
    }
    request
}

fn offset_for_leader_epoch(version: i16) -> OffsetForLeaderEpochRequest {
    let partition =
        OffsetForLeaderPartition::default().with_partition(1).with_current_leader_epoch(3).with_leader_epoch(2);
    let asked = OffsetForLeaderTopic::default().with_topic(topic("t")).with_partitions(vec![partition]);
    let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![asked]);
    if version >= 3 {
        request = request.with_replica_id(BrokerId(-1));
    }
    request
}

fn describe_configs(version: i16) -> DescribeConfigsRequest {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("orders"))
        .with_configuration_keys(Some(vec![text("retention.ms")]));
    let all = DescribeConfigsResource::default().with_resource_type(4).with_configuration_keys(None);
    DescribeConfigsRequest::default()
        .with_resources(vec![resource, all])
        .with_include_synonyms(true)
        .with_include_documentation(version >= 3)
}

fn offset_delete() -> OffsetDeleteRequest {
    let partition = OffsetDeleteRequestPartition::default().with_partition_index(6);
    OffsetDeleteRequest::default()
        .with_group_id(group())
        .with_topics(vec![OffsetDeleteRequestTopic::default().with_name(topic("t")).with_partitions(vec![partition])])
}

fn describe_cluster(version: i16) -> DescribeClusterRequest {
    let mut request = DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
    if version >= 1 {
        request = request.with_endpoint_type(2);
    }
    if version >= 2 {
        request = request.with_include_fenced_brokers(true);
    }
    request
}
