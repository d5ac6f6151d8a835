//! A valid request of every API at every version, and the errors of any answer.

use bytes::Bytes;
use gateway::api::Api;
use kafka_protocol::{
    messages::{
        ApiKey, ApiVersionsRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest,
        DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, FetchRequest, FindCoordinatorRequest,
        GroupId, HeartbeatRequest, InitProducerIdRequest, LeaveGroupRequest, ListGroupsRequest, ListOffsetsRequest,
        MetadataRequest, OffsetDeleteRequest, OffsetForLeaderEpochRequest, ProduceRequest, RequestKind, ResponseKind,
        SyncGroupRequest, TopicName,
        create_topics_request::CreatableTopic,
        delete_topics_request::DeleteTopicState,
        describe_configs_request::DescribeConfigsResource,
        fetch_request::{FetchPartition, FetchTopic},
        leave_group_request::MemberIdentity,
        list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
        metadata_request::MetadataRequestTopic,
        offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
        produce_request::{PartitionProduceData, TopicProduceData},
    },
    protocol::StrBytes,
};
use wire::batch::{BatchBuilder, TimestampType};

use crate::group_requests;

/// What requests are about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// A topic that exists.
    pub(crate) topic: &'a str,
    /// One that CreateTopics may make.
    pub(crate) new_topic: &'a str,
}

pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// A batch of one record.
pub(crate) fn batch(value: &[u8]) -> Bytes {
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    builder.push(0, 1_700_000_000_000, Some(b"key"), Some(value), std::iter::empty()).unwrap();
    builder.finish()
}

pub(crate) fn produce(topic: &str, acks: i16, records: Bytes) -> ProduceRequest {
    let partition = PartitionProduceData::default().with_index(0).with_records(Some(records));
    let data = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(5_000).with_topic_data(vec![data])
}

/// Waits at most `max_wait_ms` for a byte after `offset`.
pub(crate) fn fetch(topic: &str, offset: i64, max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(0)
        .with_current_leader_epoch(-1)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_replica_id((-1).into())
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

pub(crate) fn metadata(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
    MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true)
}

pub(crate) fn creatable(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default().with_name(topic_name(name)).with_num_partitions(partitions).with_replication_factor(1)
}

/// A valid request.
pub(crate) fn request(api: &Api, version: i16, subject: Subject) -> RequestKind {
    let key = ApiKey::try_from(api.key).unwrap();
    let name = topic_name(subject.topic);
    match key {
        ApiKey::Produce => produce(subject.topic, -1, batch(b"value")).into(),
        ApiKey::Fetch => fetch(subject.topic, 0, 0).into(),
        ApiKey::ListOffsets => {
            let partition = ListOffsetsPartition::default().with_current_leader_epoch(-1).with_timestamp(-1);
            let topic = ListOffsetsTopic::default().with_name(name).with_partitions(vec![partition]);
            ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]).into()
        }
        ApiKey::Metadata => metadata(subject.topic).into(),
        ApiKey::FindCoordinator if version < 4 => FindCoordinatorRequest::default().with_key("group".into()).into(),
        ApiKey::FindCoordinator => {
            FindCoordinatorRequest::default().with_coordinator_keys(vec!["a".into(), "b".into()]).into()
        }
        ApiKey::ApiVersions if version < 3 => ApiVersionsRequest::default().into(),
        ApiKey::ApiVersions => ApiVersionsRequest::default()
            .with_client_software_name("testkit".into())
            .with_client_software_version("1.0".into())
            .into(),
        ApiKey::CreateTopics => {
            let topic = creatable(&format!("{}-{version}", subject.new_topic), 3);
            CreateTopicsRequest::default().with_topics(vec![topic]).into()
        }
        ApiKey::DeleteTopics => {
            let name = topic_name(&format!("{}-{}", subject.new_topic, version + 1));
            match version {
                6.. => {
                    let state = DeleteTopicState::default().with_name(Some(name));
                    DeleteTopicsRequest::default().with_topics(vec![state]).into()
                }
                _ => DeleteTopicsRequest::default().with_topic_names(vec![name]).into(),
            }
        }
        ApiKey::InitProducerId => InitProducerIdRequest::default().with_transactional_id(None).into(),
        ApiKey::OffsetForLeaderEpoch => {
            let partition = OffsetForLeaderPartition::default().with_leader_epoch(0);
            let topic = OffsetForLeaderTopic::default().with_topic(name).with_partitions(vec![partition]);
            OffsetForLeaderEpochRequest::default().with_topics(vec![topic]).into()
        }
        ApiKey::DescribeConfigs => {
            let resource = DescribeConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(name.0)
                .with_configuration_keys(None);
            let request = DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
            request.with_include_documentation(version >= 3).into()
        }
        ApiKey::DescribeCluster => DescribeClusterRequest::default().into(),
        ApiKey::OffsetCommit => group_requests::commit("group", subject.topic, 1).into(),
        ApiKey::OffsetFetch => group_requests::offset_fetch(version, "group", subject.topic).into(),
        ApiKey::JoinGroup => group_requests::join(&format!("group-{version}"), "").into(),
        ApiKey::Heartbeat => HeartbeatRequest::default().with_group_id(GroupId("none".into())).into(),
        ApiKey::LeaveGroup if version < 3 => LeaveGroupRequest::default().with_group_id(GroupId("none".into())).into(),
        ApiKey::LeaveGroup => LeaveGroupRequest::default()
            .with_group_id(GroupId("none".into()))
            .with_members(vec![MemberIdentity::default().with_member_id("m".into())])
            .into(),
        ApiKey::SyncGroup => SyncGroupRequest::default().with_group_id(GroupId("none".into())).into(),
        ApiKey::DescribeGroups => DescribeGroupsRequest::default().with_groups(vec![GroupId("group".into())]).into(),
        ApiKey::ListGroups => ListGroupsRequest::default().into(),
        ApiKey::DeleteGroups => DeleteGroupsRequest::default().with_groups_names(vec![GroupId("none".into())]).into(),
        ApiKey::OffsetDelete => OffsetDeleteRequest::default().with_group_id(GroupId("group".into())).into(),
        other => panic!("{other:?} is served but has no sample request here"),
    }
}

/// Every error code of an answer, at whatever depth, 0 included.
pub(crate) fn errors(response: &ResponseKind) -> Vec<i16> {
    match response {
        ResponseKind::Produce(response) => {
            response.responses.iter().flat_map(|t| &t.partition_responses).map(|p| p.error_code).collect()
        }
        ResponseKind::Fetch(response) => {
            let partitions = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
            std::iter::once(response.error_code).chain(partitions).collect()
        }
        ResponseKind::ListOffsets(response) => {
            response.topics.iter().flat_map(|t| &t.partitions).map(|p| p.error_code).collect()
        }
        ResponseKind::Metadata(response) => {
            let partitions = response.topics.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
            response.topics.iter().map(|t| t.error_code).chain(partitions).collect()
        }
        ResponseKind::FindCoordinator(response) => {
            std::iter::once(response.error_code).chain(response.coordinators.iter().map(|c| c.error_code)).collect()
        }
        ResponseKind::ApiVersions(response) => vec![response.error_code],
        ResponseKind::CreateTopics(response) => response.topics.iter().map(|t| t.error_code).collect(),
        ResponseKind::DeleteTopics(response) => response.responses.iter().map(|t| t.error_code).collect(),
        ResponseKind::InitProducerId(response) => vec![response.error_code],
        ResponseKind::OffsetForLeaderEpoch(response) => {
            response.topics.iter().flat_map(|t| &t.partitions).map(|p| p.error_code).collect()
        }
        ResponseKind::DescribeConfigs(response) => response.results.iter().map(|r| r.error_code).collect(),
        ResponseKind::DescribeCluster(response) => vec![response.error_code],
        ResponseKind::OffsetCommit(response) => {
            response.topics.iter().flat_map(|t| &t.partitions).map(|p| p.error_code).collect()
        }
        ResponseKind::OffsetFetch(response) => {
            let partitions = response.topics.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
            let groups = response.groups.iter().map(|g| g.error_code);
            let of_groups = response.groups.iter().flat_map(|g| &g.topics).flat_map(|t| &t.partitions);
            let all = partitions.chain(groups).chain(of_groups.map(|p| p.error_code));
            std::iter::once(response.error_code).chain(all).collect()
        }
        ResponseKind::JoinGroup(response) => vec![response.error_code],
        ResponseKind::Heartbeat(response) => vec![response.error_code],
        ResponseKind::LeaveGroup(response) => {
            std::iter::once(response.error_code).chain(response.members.iter().map(|m| m.error_code)).collect()
        }
        ResponseKind::SyncGroup(response) => vec![response.error_code],
        ResponseKind::DescribeGroups(response) => response.groups.iter().map(|g| g.error_code).collect(),
        ResponseKind::ListGroups(response) => vec![response.error_code],
        ResponseKind::DeleteGroups(response) => response.results.iter().map(|r| r.error_code).collect(),
        ResponseKind::OffsetDelete(response) => vec![response.error_code],
        other => panic!("{other:?} has no collector of errors here"),
    }
}
