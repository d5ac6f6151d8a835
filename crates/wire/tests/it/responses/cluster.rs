//! Responses of the APIs of topics, configuration and brokers.

use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::*;

use crate::requests::values::{TOPIC_ID, text, topic};

pub(super) fn metadata(version: i16, error: i16) -> MetadataResponse {
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

pub(super) fn api_versions(version: i16, error: i16) -> ApiVersionsResponse {
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

pub(super) fn create_topics(version: i16, error: i16) -> CreateTopicsResponse {
    let mut created = CreatableTopicResult::default()
        .with_name(topic("t"))
        .with_error_code(error)
        .with_error_message(Some(text("why")));
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

pub(super) fn delete_topics(version: i16, error: i16) -> DeleteTopicsResponse {
    let mut deleted = DeletableTopicResult::default().with_name(Some(topic("t"))).with_error_code(error);
    if version >= 5 {
        deleted = deleted.with_error_message(Some(text("why")));
    }
    if version >= 6 {
        deleted = deleted.with_topic_id(TOPIC_ID);
    }
    DeleteTopicsResponse::default().with_throttle_time_ms(1).with_responses(vec![deleted])
}

pub(super) fn describe_configs(version: i16, error: i16) -> DescribeConfigsResponse {
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
        .with_error_message(Some(text("why")))
        .with_resource_type(2)
        .with_resource_name(text("t"))
        .with_configs(vec![config]);
    DescribeConfigsResponse::default().with_throttle_time_ms(1).with_results(vec![result])
}

pub(super) fn describe_cluster(version: i16, error: i16) -> DescribeClusterResponse {
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
        .with_error_message(Some(text("why")))
        .with_cluster_id(text("cluster"))
        .with_controller_id(BrokerId(1))
        .with_brokers(vec![broker])
        .with_cluster_authorized_operations(8);
    if version >= 1 {
        response = response.with_endpoint_type(2);
    }
    response
}
