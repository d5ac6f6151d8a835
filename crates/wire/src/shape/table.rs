//! The requests this crate decodes, field by field, after the schemas in Kafka's
//! `clients/src/main/resources/common/message/*Request.json`.
//!
//! To add an API: its line in [`REQUESTS`] and its fields below; the tests do the rest.

use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, FetchRequest, FindCoordinatorRequest,
    HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    ListOffsetsRequest, MetadataRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    OffsetForLeaderEpochRequest, ProduceRequest, SyncGroupRequest, create_topics_request, delete_topics_request,
    describe_configs_request, fetch_request, join_group_request, leave_group_request, list_offsets_request,
    metadata_request, offset_commit_request, offset_delete_request, offset_fetch_request,
    offset_for_leader_epoch_request, produce_request, sync_group_request,
};
use kafka_protocol::protocol::{Request, StrBytes};

use super::{Field, Kind, RequestShape};

/// In the order of their keys.
pub(super) const REQUESTS: &[RequestShape] = &[
    request::<ProduceRequest>(9, PRODUCE),
    request::<FetchRequest>(12, FETCH),
    request::<ListOffsetsRequest>(6, LIST_OFFSETS),
    request::<MetadataRequest>(9, METADATA),
    request::<OffsetCommitRequest>(8, OFFSET_COMMIT),
    request::<OffsetFetchRequest>(6, OFFSET_FETCH),
    request::<FindCoordinatorRequest>(3, FIND_COORDINATOR),
    request::<JoinGroupRequest>(6, JOIN_GROUP),
    request::<HeartbeatRequest>(4, HEARTBEAT),
    request::<LeaveGroupRequest>(4, LEAVE_GROUP),
    request::<SyncGroupRequest>(4, SYNC_GROUP),
    request::<DescribeGroupsRequest>(5, DESCRIBE_GROUPS),
    request::<ListGroupsRequest>(3, LIST_GROUPS),
    request::<ApiVersionsRequest>(3, API_VERSIONS),
    request::<CreateTopicsRequest>(5, CREATE_TOPICS),
    request::<DeleteTopicsRequest>(4, DELETE_TOPICS),
    request::<InitProducerIdRequest>(2, INIT_PRODUCER_ID),
    request::<OffsetForLeaderEpochRequest>(4, OFFSET_FOR_LEADER_EPOCH),
    request::<DescribeConfigsRequest>(4, DESCRIBE_CONFIGS),
    request::<DeleteGroupsRequest>(2, DELETE_GROUPS),
    request::<OffsetDeleteRequest>(NEVER, OFFSET_DELETE),
    request::<DescribeClusterRequest>(0, DESCRIBE_CLUSTER),
];

const NEVER: i16 = i16::MAX;

const fn request<R: Request>(flexible_from: i16, fields: &'static [Field]) -> RequestShape {
    RequestShape { key: R::KEY, min_version: R::VERSIONS.min, max_version: R::VERSIONS.max, flexible_from, fields }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, min_version: 0, max_version: i16::MAX, tag: None }
}

const fn int8(name: &'static str) -> Field {
    field(name, Kind::Fixed(1))
}

const fn boolean(name: &'static str) -> Field {
    field(name, Kind::Fixed(1))
}

const fn int16(name: &'static str) -> Field {
    field(name, Kind::Fixed(2))
}

const fn int32(name: &'static str) -> Field {
    field(name, INT32)
}

const fn int64(name: &'static str) -> Field {
    field(name, Kind::Fixed(8))
}

const fn uuid(name: &'static str) -> Field {
    field(name, Kind::Fixed(16))
}

const fn string(name: &'static str) -> Field {
    field(name, Kind::String)
}

const fn bytes(name: &'static str) -> Field {
    field(name, Kind::Bytes)
}

/// `T` is what the message crate makes of an element.
const fn array<T>(name: &'static str, element: &'static Kind) -> Field {
    field(name, Kind::Array { element, memory: size_of::<T>() })
}

const fn int32s(name: &'static str) -> Field {
    array::<i32>(name, &INT32)
}

const fn strings(name: &'static str) -> Field {
    array::<StrBytes>(name, &Kind::String)
}

impl Field {
    const fn from(mut self, version: i16) -> Field {
        self.min_version = version;
        self
    }

    const fn until(mut self, version: i16) -> Field {
        self.max_version = version;
        self
    }

    const fn tagged(mut self, tag: u32) -> Field {
        self.tag = Some(tag);
        self
    }
}

const INT32: Kind = Kind::Fixed(4);

const PRODUCE: &[Field] = &[
    string("transactional_id"),
    int16("acks"),
    int32("timeout_ms"),
    array::<produce_request::TopicProduceData>("topic_data", &PRODUCE_TOPIC),
];
const PRODUCE_TOPIC: Kind = Kind::Struct(&[
    string("name").until(12),
    uuid("topic_id").from(13),
    array::<produce_request::PartitionProduceData>("partition_data", &PRODUCE_PARTITION),
]);
const PRODUCE_PARTITION: Kind = Kind::Struct(&[int32("index"), bytes("records")]);

const FETCH: &[Field] = &[
    int32("replica_id").until(14),
    int32("max_wait_ms"),
    int32("min_bytes"),
    int32("max_bytes"),
    int8("isolation_level"),
    int32("session_id").from(7),
    int32("session_epoch").from(7),
    array::<fetch_request::FetchTopic>("topics", &FETCH_TOPIC),
    array::<fetch_request::ForgottenTopic>("forgotten_topics_data", &FORGOTTEN_TOPIC).from(7),
    string("rack_id").from(11),
    string("cluster_id").from(12).tagged(0),
    field("replica_state", Kind::Struct(&[int32("replica_id"), int64("replica_epoch")])).from(15).tagged(1),
];
const FETCH_TOPIC: Kind = Kind::Struct(&[
    string("topic").until(12),
    uuid("topic_id").from(13),
    array::<fetch_request::FetchPartition>("partitions", &FETCH_PARTITION),
]);
const FETCH_PARTITION: Kind = Kind::Struct(&[
    int32("partition"),
    int32("current_leader_epoch").from(9),
    int64("fetch_offset"),
    int32("last_fetched_epoch").from(12),
    int64("log_start_offset").from(5),
    int32("partition_max_bytes"),
    uuid("replica_directory_id").from(17).tagged(0),
    int64("high_watermark").from(18).tagged(1),
]);
const FORGOTTEN_TOPIC: Kind =
    Kind::Struct(&[string("topic").until(12), uuid("topic_id").from(13), int32s("partitions")]);

const LIST_OFFSETS: &[Field] = &[
    int32("replica_id"),
    int8("isolation_level").from(2),
    array::<list_offsets_request::ListOffsetsTopic>("topics", &LIST_OFFSETS_TOPIC),
    int32("timeout_ms").from(10),
];
const LIST_OFFSETS_TOPIC: Kind = Kind::Struct(&[
    string("name"),
    array::<list_offsets_request::ListOffsetsPartition>("partitions", &LIST_OFFSETS_PARTITION),
]);
const LIST_OFFSETS_PARTITION: Kind =
    Kind::Struct(&[int32("partition_index"), int32("current_leader_epoch").from(4), int64("timestamp")]);

const METADATA: &[Field] = &[
    array::<metadata_request::MetadataRequestTopic>("topics", &METADATA_TOPIC),
    boolean("allow_auto_topic_creation").from(4),
    boolean("include_cluster_authorized_operations").from(8).until(10),
    boolean("include_topic_authorized_operations").from(8),
];
const METADATA_TOPIC: Kind = Kind::Struct(&[uuid("topic_id").from(10), string("name")]);

const OFFSET_COMMIT: &[Field] = &[
    string("group_id"),
    int32("generation_id_or_member_epoch"),
    string("member_id"),
    string("group_instance_id").from(7),
    int64("retention_time_ms").until(4),
    array::<offset_commit_request::OffsetCommitRequestTopic>("topics", &OFFSET_COMMIT_TOPIC),
];
const OFFSET_COMMIT_TOPIC: Kind = Kind::Struct(&[
    string("name"),
    array::<offset_commit_request::OffsetCommitRequestPartition>("partitions", &OFFSET_COMMIT_PARTITION),
]);
const OFFSET_COMMIT_PARTITION: Kind = Kind::Struct(&[
    int32("partition_index"),
    int64("committed_offset"),
    int32("committed_leader_epoch").from(6),
    string("committed_metadata"),
]);

const OFFSET_FETCH: &[Field] = &[
    string("group_id").until(7),
    array::<offset_fetch_request::OffsetFetchRequestTopic>("topics", &OFFSET_FETCH_TOPIC).until(7),
    array::<offset_fetch_request::OffsetFetchRequestGroup>("groups", &OFFSET_FETCH_GROUP).from(8),
    boolean("require_stable").from(7),
];
const OFFSET_FETCH_GROUP: Kind = Kind::Struct(&[
    string("group_id"),
    string("member_id").from(9),
    int32("member_epoch").from(9),
    array::<offset_fetch_request::OffsetFetchRequestTopics>("topics", &OFFSET_FETCH_TOPIC),
]);
const OFFSET_FETCH_TOPIC: Kind = Kind::Struct(&[string("name"), int32s("partition_indexes")]);

const FIND_COORDINATOR: &[Field] =
    &[string("key").until(3), int8("key_type").from(1), strings("coordinator_keys").from(4)];

const JOIN_GROUP: &[Field] = &[
    string("group_id"),
    int32("session_timeout_ms"),
    int32("rebalance_timeout_ms").from(1),
    string("member_id"),
    string("group_instance_id").from(5),
    string("protocol_type"),
    array::<join_group_request::JoinGroupRequestProtocol>("protocols", &JOIN_GROUP_PROTOCOL),
    string("reason").from(8),
];
const JOIN_GROUP_PROTOCOL: Kind = Kind::Struct(&[string("name"), bytes("metadata")]);

const HEARTBEAT: &[Field] =
    &[string("group_id"), int32("generation_id"), string("member_id"), string("group_instance_id").from(3)];

const LEAVE_GROUP: &[Field] = &[
    string("group_id"),
    string("member_id").until(2),
    array::<leave_group_request::MemberIdentity>("members", &MEMBER_IDENTITY).from(3),
];
const MEMBER_IDENTITY: Kind =
    Kind::Struct(&[string("member_id"), string("group_instance_id"), string("reason").from(5)]);

const SYNC_GROUP: &[Field] = &[
    string("group_id"),
    int32("generation_id"),
    string("member_id"),
    string("group_instance_id").from(3),
    string("protocol_type").from(5),
    string("protocol_name").from(5),
    array::<sync_group_request::SyncGroupRequestAssignment>("assignments", &SYNC_GROUP_ASSIGNMENT),
];
const SYNC_GROUP_ASSIGNMENT: Kind = Kind::Struct(&[string("member_id"), bytes("assignment")]);

const DESCRIBE_GROUPS: &[Field] = &[strings("groups"), boolean("include_authorized_operations").from(3)];

const LIST_GROUPS: &[Field] = &[strings("states_filter").from(4), strings("types_filter").from(5)];

const API_VERSIONS: &[Field] = &[string("client_software_name").from(3), string("client_software_version").from(3)];

const CREATE_TOPICS: &[Field] = &[
    array::<create_topics_request::CreatableTopic>("topics", &CREATABLE_TOPIC),
    int32("timeout_ms"),
    boolean("validate_only"),
];
const CREATABLE_TOPIC: Kind = Kind::Struct(&[
    string("name"),
    int32("num_partitions"),
    int16("replication_factor"),
    array::<create_topics_request::CreatableReplicaAssignment>("assignments", &REPLICA_ASSIGNMENT),
    array::<create_topics_request::CreatableTopicConfig>("configs", &CREATABLE_CONFIG),
]);
const REPLICA_ASSIGNMENT: Kind = Kind::Struct(&[int32("partition_index"), array::<BrokerId>("broker_ids", &INT32)]);
const CREATABLE_CONFIG: Kind = Kind::Struct(&[string("name"), string("value")]);

const DELETE_TOPICS: &[Field] = &[
    array::<delete_topics_request::DeleteTopicState>("topics", &DELETE_TOPIC_STATE).from(6),
    strings("topic_names").until(5),
    int32("timeout_ms"),
];
const DELETE_TOPIC_STATE: Kind = Kind::Struct(&[string("name"), uuid("topic_id")]);

const INIT_PRODUCER_ID: &[Field] = &[
    string("transactional_id"),
    int32("transaction_timeout_ms"),
    int64("producer_id").from(3),
    int16("producer_epoch").from(3),
];

const OFFSET_FOR_LEADER_EPOCH: &[Field] = &[
    int32("replica_id").from(3),
    array::<offset_for_leader_epoch_request::OffsetForLeaderTopic>("topics", &LEADER_EPOCH_TOPIC),
];
const LEADER_EPOCH_TOPIC: Kind = Kind::Struct(&[
    string("topic"),
    array::<offset_for_leader_epoch_request::OffsetForLeaderPartition>("partitions", &LEADER_EPOCH_PARTITION),
]);
const LEADER_EPOCH_PARTITION: Kind =
    Kind::Struct(&[int32("partition"), int32("current_leader_epoch"), int32("leader_epoch")]);

const DESCRIBE_CONFIGS: &[Field] = &[
    array::<describe_configs_request::DescribeConfigsResource>("resources", &DESCRIBE_CONFIGS_RESOURCE),
    boolean("include_synonyms"),
    boolean("include_documentation").from(3),
];
const DESCRIBE_CONFIGS_RESOURCE: Kind =
    Kind::Struct(&[int8("resource_type"), string("resource_name"), strings("configuration_keys")]);

const DELETE_GROUPS: &[Field] = &[strings("groups_names")];

const OFFSET_DELETE: &[Field] =
    &[string("group_id"), array::<offset_delete_request::OffsetDeleteRequestTopic>("topics", &OFFSET_DELETE_TOPIC)];
const OFFSET_DELETE_TOPIC: Kind = Kind::Struct(&[
    string("name"),
    array::<offset_delete_request::OffsetDeleteRequestPartition>(
        "partitions",
        &Kind::Struct(&[int32("partition_index")]),
    ),
]);

const DESCRIBE_CLUSTER: &[Field] = &[
    boolean("include_cluster_authorized_operations"),
    int8("endpoint_type").from(1),
    boolean("include_fenced_brokers").from(2),
];
