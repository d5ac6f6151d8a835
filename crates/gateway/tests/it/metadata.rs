//! Metadata, and what must agree with it.

use std::time::Duration;

use kafka_protocol::messages::{
    DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest, metadata_request::MetadataRequestTopic,
};
use sqlx::Executor;
use testkit::TestGateway;
use uuid::Uuid;

use crate::samples::{batch, metadata, produce, topic_name};

fn all() -> MetadataRequest {
    MetadataRequest::default().with_topics(None)
}

fn none() -> MetadataRequest {
    MetadataRequest::default().with_topics(Some(vec![]))
}

fn asked(name: &str) -> MetadataRequest {
    metadata(name).with_allow_auto_topic_creation(false)
}

fn by_id(id: Uuid) -> MetadataRequest {
    let topic = MetadataRequestTopic::default().with_name(None).with_topic_id(id);
    MetadataRequest::default().with_topics(Some(vec![topic]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_asked_for_twice_is_told_once() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let id = client.call(12, metadata("t")).await.topics[0].topic_id;
    for version in 0..=12 {
        let topics = vec![asked("t").topics.unwrap().remove(0); 3];
        let response = client.call(version, MetadataRequest::default().with_topics(Some(topics))).await;
        assert_eq!(response.topics.len(), 1, "v{version}");
    }
    let topics = vec![by_id(id).topics.unwrap().remove(0); 3];
    assert_eq!(client.call(12, MetadataRequest::default().with_topics(Some(topics))).await.topics.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn null_is_all_and_empty_is_none_but_in_version_0() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("one")).await;
    client.call(12, metadata("two")).await;
    let names = |response: kafka_protocol::messages::MetadataResponse| {
        response.topics.into_iter().map(|topic| topic.name.unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(client.call(0, none()).await), ["one", "two"]);
    assert_eq!(names(client.call(1, none()).await), [""; 0]);
    for version in 1..=12 {
        assert_eq!(names(client.call(version, all()).await), ["one", "two"], "v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_created_only_with_consent() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    for version in 4..=12 {
        let response = client.call(version, asked("missing")).await;
        assert_eq!(response.topics[0].error_code, 3, "v{version}");
        assert_eq!(response.topics[0].name, Some(topic_name("missing")));
    }
    assert!(client.call(12, all()).await.topics.is_empty());
    let response = client.call(4, metadata("wanted")).await;
    assert_eq!((response.topics[0].error_code, response.topics[0].partitions.len()), (0, 2));
    // No flag yet, so it means yes.
    let response = client.call(1, metadata("implied")).await;
    assert_eq!((response.topics[0].error_code, response.topics[0].partitions.len()), (0, 2));
    // Usable at once (B040).
    let stored = client.call(9, produce("implied", -1, batch(b"x"))).await;
    assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_brokers_option_can_forbid_creation() {
    let gateway = TestGateway::start_with(|config| config.server.topics.auto_create_topics = false).await;
    let mut client = gateway.client().await;
    assert_eq!(client.call(12, metadata("missing")).await.topics[0].error_code, 3);
    assert!(client.call(12, all()).await.topics.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_no_topic_may_have() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("a.b")).await;
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a b", "ä", long.as_str(), "a_b", "__consumer_offsets"] {
        assert_eq!(client.call(9, metadata(name)).await.topics[0].error_code, 17, "{name:?}");
    }
    assert_eq!(client.call(12, all()).await.topics.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn topic_ids_are_stable_and_asked_for_from_version_12() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let id = client.call(10, metadata("t")).await.topics[0].topic_id;
    assert!(!id.is_nil());
    assert_eq!(client.call(12, asked("t")).await.topics[0].topic_id, id);
    let found = client.call(12, by_id(id)).await;
    assert_eq!((found.topics[0].error_code, &found.topics[0].name), (0, &Some(topic_name("t"))));
    let unknown = client.call(12, by_id(Uuid::from_u128(7))).await;
    assert_eq!((unknown.topics[0].error_code, &unknown.topics[0].name), (100, &None));
    for version in [10, 11] {
        let refused = client.call(version, by_id(id)).await;
        assert_eq!(refused.topics[0].error_code, 42, "v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_apis_name_the_same_broker_and_cluster() {
    let gateway = TestGateway::start_with(|config| {
        config.server.node_id = 7;
        config.server.advertise = Some("kafka.example:9093".parse().unwrap());
    })
    .await;
    let mut client = gateway.client().await;
    let response = client.call(9, metadata("t")).await;
    let broker = &response.brokers[0];
    assert_eq!((broker.node_id.0, broker.host.as_str(), broker.port), (7, "kafka.example", 9093));
    assert_eq!(response.controller_id.0, 7);
    let partition = &response.topics[0].partitions[0];
    assert_eq!((partition.leader_id.0, partition.leader_epoch), (7, 0));
    assert_eq!((&partition.replica_nodes, &partition.isr_nodes), (&vec![7.into()], &vec![7.into()]));

    let cluster = client.call(2, DescribeClusterRequest::default()).await;
    assert_eq!(Some(&cluster.cluster_id), response.cluster_id.as_ref());
    assert_eq!((cluster.controller_id.0, cluster.brokers[0].broker_id.0), (7, 7));
    assert_eq!(cluster.brokers[0].host.as_str(), "kafka.example");

    let old = client.call(0, FindCoordinatorRequest::default().with_key("g".into())).await;
    assert_eq!((old.node_id.0, old.host.as_str(), old.port), (7, "kafka.example", 9093));
    for key_type in [0, 1] {
        let request = FindCoordinatorRequest::default().with_key_type(key_type).with_coordinator_keys(vec!["g".into()]);
        let found = client.call(4, request).await;
        assert_eq!((found.coordinators[0].node_id.0, found.coordinators[0].error_code), (7, 0));
    }
    let request = FindCoordinatorRequest::default().with_key_type(2).with_coordinator_keys(vec!["g:id:0".into()]);
    assert_eq!(client.call(5, request.clone()).await.coordinators[0].error_code, 42);
    assert_eq!(client.call(6, request).await.coordinators[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_id_outlives_a_gateway() {
    let gateway = TestGateway::start().await;
    let before = gateway.client().await.call(12, all()).await.cluster_id.expect("never null (B092)");
    let (database, _) = gateway.stop().await;
    let gateway = TestGateway::start_on(database, |_| {}).await;
    assert_eq!(gateway.client().await.call(12, all()).await.cluster_id, Some(before));
}

#[tokio::test(flavor = "multi_thread")]
async fn authorized_operations_only_when_asked() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let plain = client.call(8, metadata("t")).await;
    assert_eq!(
        (plain.cluster_authorized_operations, plain.topics[0].topic_authorized_operations),
        (i32::MIN, i32::MIN)
    );
    let request =
        metadata("t").with_include_cluster_authorized_operations(true).with_include_topic_authorized_operations(true);
    let asked = client.call(8, request).await;
    assert!(asked.cluster_authorized_operations > 0 && asked.topics[0].topic_authorized_operations > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_by_sql_appears_and_disappears_without_a_restart() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    assert_eq!(client.call(9, asked("by-sql")).await.topics[0].error_code, 3);
    let mut database = gateway.database().connection().await;
    let insert = "INSERT INTO queue.metadata_queue_topic (topic_name, partition_count, retention_max_age_seconds, \
                  max_rows_per_topic, max_total_payload_bytes) VALUES ('by-sql', 5, 0, 0, 0)";
    database.execute(insert).await.unwrap();
    let response = client.call(10, asked("by-sql")).await;
    assert_eq!((response.topics[0].error_code, response.topics[0].partitions.len()), (0, 5));
    assert!(!response.topics[0].topic_id.is_nil());

    database.execute("UPDATE queue.metadata_queue_topic SET partition_count = 6").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(client.call(10, asked("by-sql")).await.topics[0].partitions.len(), 6);
    database.execute("DELETE FROM queue.metadata_queue_topic").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(client.call(10, asked("by-sql")).await.topics[0].error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_create_the_same_topic_at_once() {
    let gateway = TestGateway::start().await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(gateway.client().await);
    }
    let calls = clients.iter_mut().map(|client| client.call(12, metadata("same")));
    let responses = futures::future::join_all(calls).await;
    let first = responses[0].topics[0].topic_id;
    for response in &responses {
        assert_eq!((response.topics[0].error_code, response.topics[0].topic_id), (0, first));
    }
}
