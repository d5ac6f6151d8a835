//! Requests of the APIs of topics, configuration and brokers.

use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::*;

use super::values::{TOPIC_ID, text, topic};

pub(super) fn metadata(version: i16) -> MetadataRequest {
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

pub(super) fn api_versions(version: i16) -> ApiVersionsRequest {
    if version < 3 {
        return ApiVersionsRequest::default();
    }
    ApiVersionsRequest::default().with_client_software_name(text("tests")).with_client_software_version(text("1.0"))
}

pub(super) fn create_topics() -> CreateTopicsRequest {
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

pub(super) fn delete_topics(version: i16) -> DeleteTopicsRequest {
    let request = DeleteTopicsRequest::default().with_timeout_ms(5_000);
    if version <= 5 {
        return request.with_topic_names(vec![topic("a"), topic("b")]);
    }
    request.with_topics(vec![
        DeleteTopicState::default().with_name(Some(topic("a"))),
        DeleteTopicState::default().with_name(None).with_topic_id(TOPIC_ID),
    ])
}

pub(super) fn describe_configs(version: i16) -> DescribeConfigsRequest {
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

pub(super) fn describe_cluster(version: i16) -> DescribeClusterRequest {
    let mut request = DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
    if version >= 1 {
        request = request.with_endpoint_type(2);
    }
    if version >= 2 {
        request = request.with_include_fenced_brokers(true);
    }
    request
}
