//! How every API is tried: one entry for each, whose request is valid in the version it is made for.

use bytes::Bytes;
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
use wire::{
    ErrorCode,
    batch::{BatchBuilder, TimestampType},
};

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

pub(crate) fn group_id(id: &str) -> GroupId {
    GroupId(StrBytes::from_string(id.to_owned()))
}

pub(crate) fn metadata(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
    MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true)
}

pub(crate) fn creatable(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default().with_name(topic_name(name)).with_num_partitions(partitions).with_replication_factor(1)
}

pub(crate) struct Sample {
    api: ApiKey,
    /// By version.
    pub(crate) request: fn(i16, Subject) -> RequestKind,
    /// The error that it gets in the version, if nothing is wrong; mostly none.
    pub(crate) told: fn(i16) -> ErrorCode,
    pub(crate) while_away: WhileAway,
}

/// How an API answers while Postgres is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhileAway {
    /// With errors on which a client tries again.
    TryAgain,
    /// As always.
    AsAlways,
    /// When Postgres is back, or as always: it depends on the group.
    InItsTime,
}

impl Sample {
    const fn new(api: ApiKey, request: fn(i16, Subject) -> RequestKind) -> Self {
        Self { api, request, told: |_| ErrorCode::None, while_away: WhileAway::TryAgain }
    }

    const fn told(self, told: fn(i16) -> ErrorCode) -> Self {
        Self { told, ..self }
    }

    const fn while_away(self, while_away: WhileAway) -> Self {
        Self { while_away, ..self }
    }

    /// That of the API with this key.
    pub(crate) fn of(key: i16) -> &'static Self {
        let found = SAMPLES.iter().find(|sample| sample.api as i16 == key);
        found.unwrap_or_else(|| panic!("API {key} is served but has no sample"))
    }
}

const SAMPLES: &[Sample] = &[
    Sample::new(ApiKey::Produce, |_, subject| produce(subject.topic, -1, batch(b"value")).into()),
    Sample::new(ApiKey::Fetch, |_, subject| fetch(subject.topic, 0, 0).into()),
    Sample::new(ApiKey::ListOffsets, |_, subject| {
        let partition = ListOffsetsPartition::default().with_current_leader_epoch(-1).with_timestamp(-1);
        let topic = ListOffsetsTopic::default().with_name(topic_name(subject.topic)).with_partitions(vec![partition]);
        ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]).into()
    }),
    Sample::new(ApiKey::Metadata, |_, subject| metadata(subject.topic).into()),
    Sample::new(ApiKey::OffsetCommit, |_, subject| group_requests::commit("group", subject.topic, 1).into()),
    Sample::new(ApiKey::OffsetFetch, |version, subject| {
        group_requests::offset_fetch(version, "group", subject.topic).into()
    }),
    Sample::new(ApiKey::FindCoordinator, |version, _| match version {
        4.. => FindCoordinatorRequest::default().with_coordinator_keys(vec!["a".into(), "b".into()]).into(),
        _ => FindCoordinatorRequest::default().with_key("group".into()).into(),
    })
    .while_away(WhileAway::AsAlways),
    Sample::new(ApiKey::JoinGroup, |version, _| group_requests::join(&format!("group-{version}"), "").into())
        .told(|version| if version >= 4 { ErrorCode::MemberIdRequired } else { ErrorCode::None })
        .while_away(WhileAway::InItsTime),
    Sample::new(ApiKey::Heartbeat, |_, _| HeartbeatRequest::default().with_group_id(group_id("none")).into())
        .told(|_| ErrorCode::UnknownMemberId)
        .while_away(WhileAway::InItsTime),
    Sample::new(ApiKey::LeaveGroup, |version, _| {
        let members = if version >= 3 { vec![MemberIdentity::default().with_member_id("m".into())] } else { vec![] };
        LeaveGroupRequest::default().with_group_id(group_id("none")).with_members(members).into()
    })
    .told(|_| ErrorCode::UnknownMemberId)
    .while_away(WhileAway::InItsTime),
    Sample::new(ApiKey::SyncGroup, |_, _| SyncGroupRequest::default().with_group_id(group_id("none")).into())
        .told(|_| ErrorCode::UnknownMemberId)
        .while_away(WhileAway::InItsTime),
    Sample::new(ApiKey::DescribeGroups, |_, _| {
        DescribeGroupsRequest::default().with_groups(vec![group_id("group")]).into()
    }),
    Sample::new(ApiKey::ListGroups, |_, _| ListGroupsRequest::default().into()),
    Sample::new(ApiKey::ApiVersions, |version, _| match version {
        3.. => ApiVersionsRequest::default()
            .with_client_software_name("testkit".into())
            .with_client_software_version("1.0".into())
            .into(),
        _ => ApiVersionsRequest::default().into(),
    })
    .while_away(WhileAway::AsAlways),
    Sample::new(ApiKey::CreateTopics, |version, subject| {
        let topic = creatable(&format!("{}-{version}", subject.new_topic), 3);
        CreateTopicsRequest::default().with_topics(vec![topic]).into()
    }),
    Sample::new(ApiKey::DeleteTopics, |version, subject| {
        let name = topic_name(&format!("{}-{}", subject.new_topic, version + 1));
        match version {
            6.. => DeleteTopicsRequest::default()
                .with_topics(vec![DeleteTopicState::default().with_name(Some(name))])
                .into(),
            _ => DeleteTopicsRequest::default().with_topic_names(vec![name]).into(),
        }
    }),
    Sample::new(ApiKey::InitProducerId, |_, _| InitProducerIdRequest::default().with_transactional_id(None).into()),
    Sample::new(ApiKey::OffsetForLeaderEpoch, |_, subject| {
        let partition = OffsetForLeaderPartition::default().with_leader_epoch(0);
        let topic =
            OffsetForLeaderTopic::default().with_topic(topic_name(subject.topic)).with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default().with_topics(vec![topic]).into()
    }),
    Sample::new(ApiKey::DescribeConfigs, |version, subject| {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(topic_name(subject.topic).0)
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
        request.with_include_documentation(version >= 3).into()
    }),
    Sample::new(ApiKey::DeleteGroups, |_, _| {
        DeleteGroupsRequest::default().with_groups_names(vec![group_id("none")]).into()
    })
    .told(|_| ErrorCode::GroupIdNotFound),
    Sample::new(ApiKey::OffsetDelete, |_, _| OffsetDeleteRequest::default().with_group_id(group_id("group")).into()),
    // The cluster id was learnt before.
    Sample::new(ApiKey::DescribeCluster, |_, _| DescribeClusterRequest::default().into())
        .while_away(WhileAway::AsAlways),
];

/// Every error code of an answer, at whatever depth, 0 included: all fields of that name.
pub(crate) fn errors(response: &ResponseKind) -> Vec<i16> {
    let text = format!("{response:?}");
    let number = |rest: &str| rest.split([',', ' ']).next().unwrap().parse().unwrap();
    text.split("error_code: ").skip(1).map(number).collect()
}
