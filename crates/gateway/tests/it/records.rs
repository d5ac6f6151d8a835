//! Produce, Fetch and ListOffsets: what differs from Apache Kafka where clients can see it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, ListOffsetsRequest,
    create_topics_request::CreatableTopicConfig,
    fetch_request::{FetchPartition, FetchTopic},
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    produce_response::PartitionProduceResponse,
};
use testkit::{Client, TestGateway};
use wire::batch::{BatchBuilder, TimestampType};

use crate::samples::{creatable, fetch, produce, topic_name};

type Record<'a> = (i64, Option<&'a [u8]>, &'a [u8]);

fn records(records: &[Record<'_>]) -> Bytes {
    let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
    for (offset, (timestamp, key, value)) in (0..).zip(records) {
        builder.push(offset, *timestamp, *key, Some(value), std::iter::empty()).unwrap();
    }
    builder.finish()
}

async fn create(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) {
    let configs = configs.iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name((*name).to_owned().into())
            .with_value(Some((*value).to_owned().into()))
    });
    let topic = creatable(name, partitions).with_configs(configs.collect());
    let response = client.call(7, CreateTopicsRequest::default().with_topics(vec![topic])).await;
    assert_eq!(response.topics[0].error_code, 0);
}

async fn store(client: &mut Client, topic: &str, partition: i32, batch: Bytes) -> PartitionProduceResponse {
    let mut request = produce(topic, -1, batch);
    request.topic_data[0].partition_data[0].index = partition;
    client.call(9, request).await.responses[0].partition_responses.remove(0)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_at_fault_is_named() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, "t", 1, &[]).await;
    create(&mut client, "compacted", 1, &[("cleanup.policy", "compact")]).await;
    let (now, late) = (now_ms(), now_ms() + 2 * 3_600_000);
    let faults = |response: PartitionProduceResponse| {
        let indexes: Vec<i32> = response.record_errors.iter().map(|error| error.batch_index).collect();
        (response.error_code, indexes)
    };
    let times = records(&[(now, None, b"a"), (late, None, b"b"), (-1, None, b"c"), (late, None, b"d")]);
    assert_eq!(faults(store(&mut client, "t", 0, times).await), (32, vec![1, 3]));
    let keys = records(&[(now, None, b"a"), (now, Some(b"k"), b"b")]);
    assert_eq!(faults(store(&mut client, "compacted", 0, keys).await), (87, vec![0]));
    // An answer must not outgrow its request by far.
    let many: Vec<Record<'_>> = vec![(now, None, b""); 5_000];
    let (code, indexes) = faults(store(&mut client, "compacted", 0, records(&many)).await);
    assert_eq!((code, indexes.len()), (87, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_cut_short_is_not_worth_a_retry() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, "t", 1, &[]).await;
    let whole = records(&[(0, None, b"a")]);
    for length in [1, 11, 12, 40, whole.len() - 1] {
        assert_eq!(store(&mut client, "t", 0, whole.slice(..length)).await.error_code, 87, "{length} bytes");
    }
}

/// All partitions from the start on, as much of each as `partition_max_bytes` says.
fn fetch_all(topic: &str, partitions: i32, partition_max_bytes: i32) -> FetchRequest {
    let partitions = (0..partitions).map(|index| {
        FetchPartition::default()
            .with_partition(index)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes(partition_max_bytes)
    });
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(partitions.collect());
    fetch("", 0, 0).with_topics(vec![topic])
}

/// KIP-74: only the first partition with records may go beyond its limit, and only by its first record.
#[tokio::test(flavor = "multi_thread")]
async fn byte_limits_of_each_partition() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, "t", 3, &[]).await;
    let value = vec![b'x'; 1_000];
    for partition in [1, 2] {
        store(&mut client, "t", partition, records(&[(0, None, value.as_slice()); 5])).await;
    }
    let sizes = async |client: &mut Client, partition_max_bytes| {
        let response = client.call(11, fetch_all("t", 3, partition_max_bytes)).await;
        let size = |records: &Option<Bytes>| records.as_ref().unwrap().len();
        response.responses[0].partitions.iter().map(|partition| size(&partition.records)).collect::<Vec<_>>()
    };
    for max_bytes in [0, 1, 1_000] {
        let sizes = sizes(&mut client, max_bytes).await;
        assert!(sizes[0] == 0 && (1_000..2_000).contains(&sizes[1]) && sizes[2] == 0, "{max_bytes}: {sizes:?}");
    }
    let sizes = sizes(&mut client, 3_000).await;
    assert!(sizes[1..].iter().all(|size| (2_000..=3_000).contains(size)), "{sizes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_fetch_hears_that_its_topic_is_gone() {
    let gateway = TestGateway::start().await;
    let (mut waiting, mut client) = (gateway.client().await, gateway.client().await);
    create(&mut client, "t", 1, &[]).await;
    let start = Instant::now();
    let fetching = waiting.send(11, fetch("t", 0, 30_000)).await;
    // Whether the fetch is parked by then makes no difference to what it must answer.
    let deleted = client.call(5, DeleteTopicsRequest::default().with_topic_names(vec![topic_name("t")])).await;
    assert_eq!(deleted.responses[0].error_code, 0);
    assert_eq!(waiting.receive(fetching).await.responses[0].partitions[0].error_code, 3);
    assert!(start.elapsed() < Duration::from_secs(15));
}

/// An empty list where it was asked for, as in Kafka.
#[tokio::test(flavor = "multi_thread")]
async fn aborted_transactions_are_none_or_not_asked_for() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, "t", 1, &[]).await;
    for version in 4..=12 {
        for (level, expected) in [(0, None), (1, Some(0))] {
            let response = client.call(version, fetch("t", 0, 0).with_isolation_level(level)).await;
            let aborted = response.responses[0].partitions[0].aborted_transactions.as_ref();
            assert_eq!(aborted.map(Vec::len), expected, "v{version}");
        }
    }
}

fn look_up(timestamps: &[i64]) -> ListOffsetsRequest {
    let partitions = timestamps
        .iter()
        .map(|timestamp| ListOffsetsPartition::default().with_current_leader_epoch(-1).with_timestamp(*timestamp));
    let topic = ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(partitions.collect());
    ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic])
}

#[tokio::test(flavor = "multi_thread")]
async fn special_timestamps_begin_with_their_versions() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    create(&mut client, "t", 1, &[]).await;
    store(&mut client, "t", 0, records(&[(5, None, b"a")])).await;
    for version in 1..=8 {
        for (timestamp, first_version) in [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)] {
            let response = client.call(version, look_up(&[timestamp])).await;
            let code = if version >= first_version { 0 } else { 35 };
            assert_eq!(response.topics[0].partitions[0].error_code, code, "v{version} {timestamp}");
        }
        let twice = client.call(version, look_up(&[-1, -2])).await;
        assert!(twice.topics[0].partitions.iter().all(|partition| partition.error_code == 42), "v{version}");
    }
}
