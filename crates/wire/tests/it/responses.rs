//! A response with every field set, and one that only carries an error, for every API and version.

use bytes::Bytes;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use wire::ErrorCode;

use crate::requests::{TOPIC_ID, text};

fn topic(name: &'static str) -> TopicName {
    TopicName(text(name))
}

fn group() -> GroupId {
    GroupId(text("group"))
}

fn message() -> Option<StrBytes> {
    Some(text("why"))
}

/// (key, version, response); the `i16` that the builders take is the error code to put in.
pub(crate) fn every_response() -> Vec<(i16, i16, ResponseKind)> {
    type Build = fn(i16, i16) -> ResponseKind;
    let builders: [(i16, std::ops::RangeInclusive<i16>, Build); 22] = [
        (0, 3..=13, |v, e| ResponseKind::Produce(produce(v, e))),
        (1, 4..=18, |v, e| ResponseKind::Fetch(fetch(v, e))),
        (2, 1..=10, |v, e| ResponseKind::ListOffsets(list_offsets(v, e))),
        (3, 0..=13, |v, e| ResponseKind::Metadata(metadata(v, e))),
        (8, 2..=9, |v, e| ResponseKind::OffsetCommit(offset_commit(v, e))),
        (9, 1..=9, |v, e| ResponseKind::OffsetFetch(offset_fetch(v, e))),
        (10, 0..=6, |v, e| ResponseKind::FindCoordinator(find_coordinator(v, e))),
        (11, 0..=9, |v, e| ResponseKind::JoinGroup(join_group(v, e))),
        (12, 0..=4, |v, e| ResponseKind::Heartbeat(heartbeat(v, e))),
        (13, 0..=5, |v, e| ResponseKind::LeaveGroup(leave_group(v, e))),
        (14, 0..=5, |v, e| ResponseKind::SyncGroup(sync_group(v, e))),
        (15, 0..=6, |v, e| ResponseKind::DescribeGroups(describe_groups(v, e))),
        (16, 0..=5, |v, e| ResponseKind::ListGroups(list_groups(v, e))),
        (18, 0..=4, |v, e| ResponseKind::ApiVersions(api_versions(v, e))),
        (19, 2..=7, |v, e| ResponseKind::CreateTopics(create_topics(v, e))),
        (20, 1..=6, |v, e| ResponseKind::DeleteTopics(delete_topics(v, e))),
        (22, 0..=5, |_, e| ResponseKind::InitProducerId(init_producer_id(e))),
        (23, 2..=4, |_, e| ResponseKind::OffsetForLeaderEpoch(offset_for_leader_epoch(e))),
        (32, 1..=4, |v, e| ResponseKind::DescribeConfigs(describe_configs(v, e))),
        (42, 0..=2, |_, e| ResponseKind::DeleteGroups(delete_groups(e))),
        (47, 0..=0, |_, e| ResponseKind::OffsetDelete(offset_delete(e))),
        (60, 0..=2, |v, e| ResponseKind::DescribeCluster(describe_cluster(v, e))),
    ];
    let mut all = Vec::new();
    for (key, versions, build) in builders {
        for version in versions {
            for error in [ErrorCode::None, ErrorCode::UnknownServerError, ErrorCode::NotEnoughReplicas] {
                all.push((key, version, build(version, error.code())));
            }
        }
    }
    all
}

fn produce(version: i16, error: i16) -> ProduceResponse {
    let mut partition = PartitionProduceResponse::default()
        .with_index(1)
        .with_error_code(error)
        .with_base_offset(1 << 40)
        .with_log_append_time_ms(5);
    if version >= 5 {
        partition = partition.with_log_start_offset(9);
    }
    if version >= 8 {
        let record = BatchIndexAndErrorMessage::default().with_batch_index(3).with_batch_index_error_message(message());
        partition = partition.with_record_errors(vec![record]).with_error_message(message());
    }
    let mut of_topic = TopicProduceResponse::default().with_partition_responses(vec![partition]);
    if version <= 12 {
        of_topic = of_topic.with_name(topic("t"));
    } else {
        of_topic = of_topic.with_topic_id(TOPIC_ID);
    }
    ProduceResponse::default().with_responses(vec![of_topic]).with_throttle_time_ms(1)
}

fn fetch(version: i16, error: i16) -> FetchResponse {
    let aborted = AbortedTransaction::default().with_producer_id(ProducerId(7)).with_first_offset(3);
    let mut partition = PartitionData::default()
        .with_partition_index(1)
        .with_error_code(error)
        .with_high_watermark(100)
        .with_last_stable_offset(99)
        .with_aborted_transactions(Some(vec![aborted]))
        .with_records(Some(Bytes::from(vec![b'r'; 100_000])));
    if version >= 5 {
        partition = partition.with_log_start_offset(4);
    }
    if version >= 11 {
        partition = partition.with_preferred_read_replica(BrokerId(-1));
    }
    // An empty set of records has to be empty, not null: librdkafka refuses null.
    let empty = PartitionData::default().with_partition_index(2).with_records(Some(Bytes::new()));
    let mut of_topic = FetchableTopicResponse::default().with_partitions(vec![partition, empty]);
    if version <= 12 {
        of_topic = of_topic.with_topic(topic("t"));
    } else {
        of_topic = of_topic.with_topic_id(TOPIC_ID);
    }
    let mut response = FetchResponse::default().with_throttle_time_ms(1).with_responses(vec![of_topic]);
    if version >= 7 {
        response = response.with_error_code(error).with_session_id(5);
    }
    response
}

fn list_offsets(version: i16, error: i16) -> ListOffsetsResponse {
    let mut partition = ListOffsetsPartitionResponse::default()
        .with_partition_index(1)
        .with_error_code(error)
        .with_timestamp(5)
        .with_offset(1 << 40);
    if version >= 4 {
        partition = partition.with_leader_epoch(2);
    }
    let of_topic = ListOffsetsTopicResponse::default().with_name(topic("t")).with_partitions(vec![partition]);
    let response = ListOffsetsResponse::default().with_topics(vec![of_topic]);
    if version >= 2 { response.with_throttle_time_ms(1) } else { response }
}

fn metadata(version: i16, error: i16) -> MetadataResponse {
    let mut partition = MetadataResponsePartition::default()
        .with_error_code(error)
        .with_partition_index(3)
        .with_leader_id(BrokerId(1))
        .with_replica_nodes(vec![BrokerId(1)])
        .with_isr_nodes(vec![BrokerId(1)]);
    if version >= 5 {
        partition = partition.with_offline_replicas(vec![BrokerId(2)]);
    }
    if version >= 7 {
        partition = partition.with_leader_epoch(4);
    }
    let mut of_topic = MetadataResponseTopic::default()
        .with_error_code(error)
        .with_name(Some(topic("t")))
        .with_partitions(vec![partition]);
    let mut broker =
        MetadataResponseBroker::default().with_node_id(BrokerId(1)).with_host(text("localhost")).with_port(9092);
    let mut response = MetadataResponse::default();
    if version >= 1 {
        broker = broker.with_rack(Some(text("rack")));
        of_topic = of_topic.with_is_internal(true);
        response = response.with_controller_id(BrokerId(1));
    }
    if version >= 2 {
        response = response.with_cluster_id(Some(text("cluster")));
    }
    if version >= 3 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 8 {
        of_topic = of_topic.with_topic_authorized_operations(8);
    }
    if (8..=10).contains(&version) {
        response = response.with_cluster_authorized_operations(8);
    }
    if version >= 10 {
        of_topic = of_topic.with_topic_id(TOPIC_ID);
    }
    if version >= 13 {
        response = response.with_error_code(error);
    }
    response.with_brokers(vec![broker]).with_topics(vec![of_topic])
}

fn offset_commit(version: i16, error: i16) -> OffsetCommitResponse {
    let partition = OffsetCommitResponsePartition::default().with_partition_index(1).with_error_code(error);
    let of_topic = OffsetCommitResponseTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
    let response = OffsetCommitResponse::default().with_topics(vec![of_topic]);
    if version >= 3 { response.with_throttle_time_ms(1) } else { response }
}

fn offset_fetch(version: i16, error: i16) -> OffsetFetchResponse {
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

fn find_coordinator(version: i16, error: i16) -> FindCoordinatorResponse {
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
            .with_error_message(message());
        return response.with_coordinators(vec![coordinator, Coordinator::default()]);
    }
    response = response.with_error_code(error).with_node_id(BrokerId(1)).with_host(text("localhost")).with_port(9092);
    if version >= 1 { response.with_error_message(message()) } else { response }
}

fn join_group(version: i16, error: i16) -> JoinGroupResponse {
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

fn heartbeat(version: i16, error: i16) -> HeartbeatResponse {
    let response = HeartbeatResponse::default().with_error_code(error);
    if version >= 1 { response.with_throttle_time_ms(1) } else { response }
}

fn leave_group(version: i16, error: i16) -> LeaveGroupResponse {
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

fn sync_group(version: i16, error: i16) -> SyncGroupResponse {
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

fn describe_groups(version: i16, error: i16) -> DescribeGroupsResponse {
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
        described = described.with_error_message(message());
    }
    let response = DescribeGroupsResponse::default().with_groups(vec![described]);
    if version >= 1 { response.with_throttle_time_ms(1) } else { response }
}

fn list_groups(version: i16, error: i16) -> ListGroupsResponse {
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

fn api_versions(version: i16, error: i16) -> ApiVersionsResponse {
    let api = ApiVersion::default().with_api_key(18).with_min_version(0).with_max_version(4);
    let mut response = ApiVersionsResponse::default().with_error_code(error).with_api_keys(vec![api]);
    if version >= 1 {
        response = response.with_throttle_time_ms(1);
    }
    if version >= 3 {
        let supported = SupportedFeatureKey::default().with_name(text("f")).with_min_version(1).with_max_version(2);
        let finalized =
            FinalizedFeatureKey::default().with_name(text("f")).with_min_version_level(1).with_max_version_level(2);
        response = response
            .with_supported_features(vec![supported])
            .with_finalized_features_epoch(3)
            .with_finalized_features(vec![finalized])
            .with_zk_migration_ready(true);
    }
    response
}

fn create_topics(version: i16, error: i16) -> CreateTopicsResponse {
    let mut created =
        CreatableTopicResult::default().with_name(topic("t")).with_error_code(error).with_error_message(message());
    if version >= 5 {
        let config = CreatableTopicConfigs::default()
            .with_name(text("retention.ms"))
            .with_value(Some(text("1")))
            .with_read_only(true)
            .with_config_source(1)
            .with_is_sensitive(true);
        created = created
            .with_topic_config_error_code(error)
            .with_num_partitions(3)
            .with_replication_factor(1)
            .with_configs(Some(vec![config]));
    }
    if version >= 7 {
        created = created.with_topic_id(TOPIC_ID);
    }
    CreateTopicsResponse::default().with_throttle_time_ms(1).with_topics(vec![created])
}

fn delete_topics(version: i16, error: i16) -> DeleteTopicsResponse {
    let mut deleted = DeletableTopicResult::default().with_name(Some(topic("t"))).with_error_code(error);
    if version >= 5 {
        deleted = deleted.with_error_message(message());
    }
    if version >= 6 {
        deleted = deleted.with_topic_id(TOPIC_ID);
    }
    DeleteTopicsResponse::default().with_throttle_time_ms(1).with_responses(vec![deleted])
}

fn init_producer_id(error: i16) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_throttle_time_ms(1)
        .with_error_code(error)
        .with_producer_id(ProducerId(1000))
        .with_producer_epoch(2)
}

fn offset_for_leader_epoch(error: i16) -> OffsetForLeaderEpochResponse {
    let partition = EpochEndOffset::default()
        .with_error_code(error)
        .with_partition(1)
        .with_leader_epoch(2)
        .with_end_offset(1 << 40);
    let of_topic = OffsetForLeaderTopicResult::default().with_topic(topic("t")).with_partitions(vec![partition]);
    OffsetForLeaderEpochResponse::default().with_throttle_time_ms(1).with_topics(vec![of_topic])
}

fn describe_configs(version: i16, error: i16) -> DescribeConfigsResponse {
    let synonym = DescribeConfigsSynonym::default().with_name(text("log.retention.ms")).with_value(None).with_source(4);
    let mut config = DescribeConfigsResourceResult::default()
        .with_name(text("retention.ms"))
        .with_value(Some(text("1")))
        .with_read_only(true)
        .with_config_source(5)
        .with_is_sensitive(true)
        .with_synonyms(vec![synonym]);
    if version >= 3 {
        config = config.with_config_type(5).with_documentation(Some(text("how long")));
    }
    let result = DescribeConfigsResult::default()
        .with_error_code(error)
        .with_error_message(message())
        .with_resource_type(2)
        .with_resource_name(text("t"))
        .with_configs(vec![config]);
    DescribeConfigsResponse::default().with_throttle_time_ms(1).with_results(vec![result])
}

fn delete_groups(error: i16) -> DeleteGroupsResponse {
    let result = DeletableGroupResult::default().with_group_id(group()).with_error_code(error);
    DeleteGroupsResponse::default().with_throttle_time_ms(1).with_results(vec![result])
}

fn offset_delete(error: i16) -> OffsetDeleteResponse {
    let partition = OffsetDeleteResponsePartition::default().with_partition_index(1).with_error_code(error);
    let of_topic = OffsetDeleteResponseTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
    OffsetDeleteResponse::default().with_error_code(error).with_throttle_time_ms(1).with_topics(vec![of_topic])
}

fn describe_cluster(version: i16, error: i16) -> DescribeClusterResponse {
    let mut broker = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(1))
        .with_host(text("localhost"))
        .with_port(9092)
        .with_rack(None);
    if version >= 2 {
        broker = broker.with_is_fenced(true);
    }
    let mut response = DescribeClusterResponse::default()
        .with_throttle_time_ms(1)
        .with_error_code(error)
        .with_error_message(message())
        .with_cluster_id(text("cluster"))
        .with_controller_id(BrokerId(1))
        .with_brokers(vec![broker])
        .with_cluster_authorized_operations(8);
    if version >= 1 {
        response = response.with_endpoint_type(2);
    }
    response
}
