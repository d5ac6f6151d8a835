//! DescribeConfigs, as UIs and tools ask on start (B093).

use kafka_protocol::{
    messages::{
        CreateTopicsRequest, DescribeConfigsRequest,
        create_topics_request::CreatableTopicConfig,
        describe_configs_request::DescribeConfigsResource,
        describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult},
    },
    protocol::StrBytes,
};
use testkit::{Client, TestGateway};

use crate::samples::creatable;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

fn request(kind: i8, name: &str, keys: Option<&[&'static str]>) -> DescribeConfigsRequest {
    let keys = keys.map(|keys| keys.iter().map(|key| StrBytes::from_static_str(key)).collect());
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(name.to_owned().into())
        .with_configuration_keys(keys);
    DescribeConfigsRequest::default().with_resources(vec![resource])
}

async fn describe(client: &mut Client, version: i16, request: DescribeConfigsRequest) -> DescribeConfigsResult {
    client.call(version, request).await.results.remove(0)
}

fn find<'a>(result: &'a DescribeConfigsResult, name: &str) -> &'a DescribeConfigsResourceResult {
    result.configs.iter().find(|config| config.name.as_str() == name).unwrap_or_else(|| panic!("{name}"))
}

async fn gateway_with_topic() -> (TestGateway, Client) {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let config = CreatableTopicConfig::default().with_name("cleanup.policy".into()).with_value(Some("compact".into()));
    let topic = creatable("t", 1).with_configs(vec![config]);
    let response = client.call(7, CreateTopicsRequest::default().with_topics(vec![topic])).await;
    assert_eq!(response.topics[0].error_code, 0);
    (gateway, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topics_configurations_with_sources_types_and_synonyms() {
    let (_gateway, mut client) = gateway_with_topic().await;
    for version in 1..=4 {
        let all = describe(&mut client, version, request(TOPIC, "t", None).with_include_synonyms(true)).await;
        assert_eq!((all.error_code, &all.error_message), (0, &None), "v{version}");
        for name in [
            "retention.ms",
            "cleanup.policy",
            "min.insync.replicas",
            "max.message.bytes",
            "segment.bytes",
            "message.timestamp.type",
        ] {
            let config = find(&all, name);
            assert!(config.value.is_some() && !config.is_sensitive && !config.read_only, "{name}");
        }
        let policy = find(&all, "cleanup.policy");
        assert_eq!((policy.value.as_deref(), policy.config_source), (Some("compact"), 1));
        let synonyms: Vec<_> =
            policy.synonyms.iter().map(|s| (s.name.as_str(), s.value.as_deref(), s.source)).collect();
        assert_eq!(
            synonyms,
            [("cleanup.policy", Some("compact"), 1), ("log.cleanup.policy", Some("delete"), 5)],
            "v{version}"
        );
        let retention = find(&all, "retention.ms");
        assert_eq!((retention.value.as_deref(), retention.config_source), (Some("604800000"), 5));
        assert_eq!(retention.config_type, if version >= 3 { 5 } else { 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_asked_for() {
    let (_gateway, mut client) = gateway_with_topic().await;
    let some = describe(&mut client, 4, request(TOPIC, "t", Some(&["retention.ms", "no.such"]))).await;
    assert_eq!(some.configs.len(), 1);
    assert!(some.configs[0].synonyms.is_empty());
    assert_eq!(some.configs[0].documentation, None);
    let documented = request(TOPIC, "t", Some(&["retention.ms"])).with_include_documentation(true);
    let documented = describe(&mut client, 4, documented).await;
    assert!(documented.configs[0].documentation.as_ref().is_some_and(|text| !text.is_empty()));
    // As in Kafka, no keys are all keys.
    for version in 1..=4 {
        let all = describe(&mut client, version, request(TOPIC, "t", None)).await;
        let none_named = describe(&mut client, version, request(TOPIC, "t", Some(&[]))).await;
        assert_eq!(none_named.configs.len(), all.configs.len(), "v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_brokers_configurations() {
    let gateway = TestGateway::start_with(|config| config.server.topics.num_partitions = 9).await;
    let mut client = gateway.client().await;
    let broker = describe(&mut client, 4, request(BROKER, "1", None)).await;
    assert_eq!(broker.error_code, 0);
    let partitions = find(&broker, "num.partitions");
    assert_eq!((partitions.value.as_deref(), partitions.config_source), (Some("9"), 4));
    assert!(partitions.read_only);
    assert_eq!(find(&broker, "message.max.bytes").config_source, 5);
    let listeners = find(&broker, "advertised.listeners").value.clone().unwrap();
    assert_eq!(listeners.as_str(), format!("PLAINTEXT://{}", gateway.address()));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_are_not_there() {
    let (_gateway, mut client) = gateway_with_topic().await;
    for (kind, name, code) in [
        (TOPIC, "missing", 3),
        (TOPIC, "bad name", 17),
        (BROKER, "2", 42),
        (BROKER, "one", 42),
        (8, "1", 42),
        (32, "group", 42),
        (99, "x", 42),
    ] {
        let result = describe(&mut client, 4, request(kind, name, None)).await;
        assert_eq!((result.error_code, result.resource_type, result.resource_name.as_str()), (code, kind, name));
        assert!(result.error_message.is_some() && result.configs.is_empty());
    }
    let cluster_wide = describe(&mut client, 4, request(BROKER, "", None)).await;
    assert_eq!((cluster_wide.error_code, cluster_wide.configs.len()), (0, 0));
}

/// The largest request that is accepted would else be answered with a gigabyte.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_described_once() {
    let (_gateway, mut client) = gateway_with_topic().await;
    let resource = request(TOPIC, "t", None).resources.remove(0);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource; 1_000]);
    let results = client.call(4, request).await.results;
    assert!(results[0].error_code == 0 && !results[0].configs.is_empty());
    assert!(results.len() == 1_000 && results[1..].iter().all(|result| result.error_code == 42));
}
