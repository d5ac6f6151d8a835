//! CreateTopics, DeleteTopics, InitProducerId, OffsetForLeaderEpoch.

use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    InitProducerIdRequest, OffsetForLeaderEpochRequest,
    create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig},
    delete_topics_request::DeleteTopicState,
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
};
use kafka_protocol::protocol::StrBytes;
use testkit::{Client, TestGateway};
use uuid::Uuid;

use crate::samples::{batch, creatable, fetch, metadata, produce, topic_name};

async fn create(client: &mut Client, topics: Vec<CreatableTopic>) -> CreateTopicsResponse {
    client.call(7, CreateTopicsRequest::default().with_topics(topics)).await
}

fn with_config(topic: CreatableTopic, name: &str, value: &str) -> CreatableTopic {
    let config =
        CreatableTopicConfig::default().with_name(name.to_owned().into()).with_value(Some(value.to_owned().into()));
    topic.with_configs(vec![config])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_topic_is_described_and_works_at_once() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let topic = with_config(creatable("t", 3), "retention.ms", "60000");
    let response = create(&mut client, vec![topic]).await;
    let created = &response.topics[0];
    assert_eq!((created.error_code, &created.error_message), (0, &None));
    assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
    let configs = created.configs.as_ref().unwrap();
    let find = |name: &str| configs.iter().find(|config| config.name.as_str() == name).unwrap();
    assert_eq!(find("retention.ms").value.as_deref(), Some("60000"));
    assert_eq!((find("retention.ms").config_source, find("cleanup.policy").config_source), (1, 5));
    assert_eq!(client.call(12, metadata("t")).await.topics[0].topic_id, created.topic_id);
    let stored = client.call(9, produce("t", -1, batch(b"x"))).await;
    assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
}

/// Any replication factor is taken (B041).
#[tokio::test(flavor = "multi_thread")]
async fn defaults_and_replication_factors() {
    let gateway = TestGateway::start_with(|config| config.server.topics.num_partitions = 5).await;
    let mut client = gateway.client().await;
    let defaults = creatable("defaults", -1).with_replication_factor(-1);
    let created = create(&mut client, vec![defaults, creatable("three", 1).with_replication_factor(3)]).await;
    assert_eq!(created.topics.iter().map(|topic| topic.error_code).collect::<Vec<_>>(), [0, 0]);
    assert_eq!((created.topics[0].num_partitions, created.topics[1].replication_factor), (5, 1));
    let old = CreateTopicsRequest::default().with_topics(vec![creatable("old", -1).with_replication_factor(-1)]);
    assert_eq!(client.call(3, old).await.topics[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_their_reason() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, vec![creatable("there.is", 1)]).await;
    let assigned = |indexes: &[i32], count| {
        let assignment = |index: &i32| {
            CreatableReplicaAssignment::default().with_partition_index(*index).with_broker_ids(vec![BrokerId(1)])
        };
        creatable("assigned", count)
            .with_replication_factor(-1)
            .with_assignments(indexes.iter().map(assignment).collect())
    };
    for (topic, code) in [
        (creatable("there.is", 1), 36),
        (creatable("there_is", 1), 17),
        (creatable("bad name", 1), 17),
        (creatable("__consumer_offsets", 1), 17),
        (creatable("t", 0), 37),
        (creatable("t", 5_000), 37),
        (creatable("t", 1).with_replication_factor(0), 38),
        (with_config(creatable("t", 1), "no.such.config", "1"), 40),
        (with_config(creatable("t", 1), "retention.ms", "soon"), 40),
        (with_config(creatable("t", 1), "compression.type", "zstd"), 40),
        (assigned(&[0, 2], -1), 39),
        (assigned(&[0, 1], 2), 42),
    ] {
        let response = create(&mut client, vec![topic.clone()]).await;
        let result = &response.topics[0];
        assert_eq!(result.error_code, code, "{topic:?}");
        assert!(result.error_message.as_ref().is_some_and(|message| !message.is_empty()), "{topic:?}");
    }
    let twice = create(&mut client, vec![creatable("twice", 1), creatable("twice", 1), creatable("once", 1)]).await;
    let results: Vec<_> = twice.topics.iter().map(|topic| (topic.name.as_str(), topic.error_code)).collect();
    assert_eq!(results, [("twice", 42), ("once", 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_only_checks_and_writes_nothing() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let request = CreateTopicsRequest::default()
        .with_validate_only(true)
        .with_topics(vec![creatable("fine", 2), creatable("not fine", 2)]);
    let response = client.call(7, request).await;
    assert_eq!(response.topics.iter().map(|topic| topic.error_code).collect::<Vec<_>>(), [0, 17]);
    assert_eq!(response.topics[0].num_partitions, 2);
    let asked = client.call(9, metadata("fine").with_allow_auto_topic_creation(false)).await;
    assert_eq!(asked.topics[0].error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_topics_are_gone_with_their_records() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let before = create(&mut client, vec![creatable("t", 1)]).await.topics[0].topic_id;
    client.call(9, produce("t", -1, batch(b"old"))).await;
    let deleted = client.call(5, DeleteTopicsRequest::default().with_topic_names(vec![topic_name("t")])).await;
    assert_eq!((deleted.responses[0].error_code, &deleted.responses[0].error_message), (0, &None));
    assert_eq!(client.call(11, fetch("t", 0, 0)).await.responses[0].partitions[0].error_code, 3);
    let after = create(&mut client, vec![creatable("t", 1)]).await.topics[0].topic_id;
    assert_ne!(before, after);
    let fetched = client.call(11, fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_deleted_by_name_or_id() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let id = create(&mut client, vec![creatable("by-id", 1)]).await.topics[0].topic_id;
    let state =
        |name: Option<&str>, id: Uuid| DeleteTopicState::default().with_name(name.map(topic_name)).with_topic_id(id);
    let states = vec![
        state(None, id),
        state(None, Uuid::from_u128(9)),
        state(Some("missing"), Uuid::nil()),
        state(Some("by-id"), id),
        state(None, Uuid::nil()),
    ];
    let response = client.call(6, DeleteTopicsRequest::default().with_topics(states)).await;
    let codes: Vec<_> = response.responses.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, 100, 3, 42, 42]);
    assert_eq!(response.responses[0].name, Some(topic_name("by-id")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_named_twice_stays() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let id = create(&mut client, vec![creatable("t", 1)]).await.topics[0].topic_id;
    let names = vec![topic_name("t"), topic_name("missing"), topic_name("t")];
    let response = client.call(5, DeleteTopicsRequest::default().with_topic_names(names)).await;
    let answers = |response: DeleteTopicsResponse| {
        response.responses.into_iter().map(|result| result.error_code).collect::<Vec<_>>()
    };
    assert_eq!(answers(response), [42, 3]);
    let by_name = DeleteTopicState::default().with_name(Some(topic_name("t")));
    let by_id = DeleteTopicState::default().with_name(None).with_topic_id(id);
    for states in [vec![by_name, by_id.clone()], vec![by_id.clone(), by_id]] {
        assert_eq!(answers(client.call(6, DeleteTopicsRequest::default().with_topics(states)).await), [42]);
    }
    assert_eq!(client.call(12, metadata("t")).await.topics[0].topic_id, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_can_be_disabled() {
    let gateway = TestGateway::start_with(|config| config.server.topics.delete_topics = false).await;
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let request = DeleteTopicsRequest::default().with_topic_names(vec![topic_name("t")]);
    assert_eq!(client.call(2, request.clone()).await.responses[0].error_code, 42);
    assert_eq!(client.call(3, request).await.responses[0].error_code, 73);
}

#[tokio::test(flavor = "multi_thread")]
async fn producer_ids_and_epochs() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let new = InitProducerIdRequest::default().with_transactional_id(None);
    let first = client.call(4, new.clone()).await;
    let second = client.call(0, new.clone()).await;
    assert_eq!((first.error_code, first.producer_epoch, second.producer_epoch), (0, 0, 0));
    assert_ne!(first.producer_id, second.producer_id);

    // Epochs are raised for transactional producers only.
    let bump = |id: i64, epoch: i16| new.clone().with_producer_id(id.into()).with_producer_epoch(epoch);
    for (id, epoch) in [(first.producer_id.0, 0), (first.producer_id.0, i16::MAX - 1), (987_654_321, 0)] {
        let replaced = client.call(4, bump(id, epoch)).await;
        assert_eq!((replaced.error_code, replaced.producer_epoch), (0, 0));
        assert!(![first.producer_id.0, second.producer_id.0, id].contains(&replaced.producer_id.0));
    }
    for (id, epoch) in [(first.producer_id.0, -1), (-1, 3)] {
        assert_eq!(client.call(4, bump(id, epoch)).await.error_code, 42);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactional_producers_are_refused() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    for version in 0..=5 {
        let with_id = |id: &str| {
            InitProducerIdRequest::default().with_transactional_id(Some(StrBytes::from_string(id.to_owned()).into()))
        };
        let refused = client.call(version, with_id("tx")).await;
        assert_eq!((refused.error_code, refused.producer_id.0, refused.producer_epoch), (53, -1, -1), "v{version}");
        assert_eq!(client.call(version, with_id("")).await.error_code, 42, "v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_epoch_ends_at_the_log_end() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    client.call(9, produce("t", -1, batch(b"x"))).await;
    for version in 2..=4 {
        let ask = |topic: &str, partition, epoch| {
            let partition = OffsetForLeaderPartition::default().with_partition(partition).with_leader_epoch(epoch);
            let topic = OffsetForLeaderTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
            OffsetForLeaderEpochRequest::default().with_topics(vec![topic])
        };
        for (request, expected) in [
            (ask("t", 0, 0), (0, 0, 1)),
            (ask("t", 0, 9), (0, -1, -1)),
            (ask("t", 7, 0), (3, -1, -1)),
            (ask("missing", 0, 0), (3, -1, -1)),
        ] {
            let response = client.call(version, request).await;
            let end = &response.topics[0].partitions[0];
            assert_eq!((end.error_code, end.leader_epoch, end.end_offset), expected, "v{version}");
        }
    }
}
