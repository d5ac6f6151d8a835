//! librdkafka as applications use it. Other clients are in `compat-tests`.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer, StreamConsumer},
    error::KafkaError,
    message::{Header, Headers, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer},
    types::RDKafkaErrorCode,
};
use testkit::TestGateway;

const PATIENCE: Duration = Duration::from_secs(20);

fn config(gateway: &TestGateway) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", gateway.bootstrap()).set("group.id", "unused");
    config
}

struct Record {
    offset: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: usize,
}

/// The records of partition 0 up to its present end.
fn read_all(gateway: &TestGateway, topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = config(gateway).set("enable.auto.commit", "false").create().unwrap();
    let (_, end) = consumer.fetch_watermarks(topic, 0, PATIENCE).unwrap();
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
    consumer.assign(&assignment).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while (records.len() as i64) < end {
        assert!(Instant::now() < deadline, "{} of {end} records", records.len());
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            let message = message.unwrap();
            let headers = message.headers().map_or(0, Headers::count);
            let bytes = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
            let (key, value) = (bytes(message.key()), bytes(message.payload()));
            records.push(Record { offset: message.offset(), key, value, headers });
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn every_codec_and_an_idempotent_producer() {
    let gateway = TestGateway::start().await;
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let producer: FutureProducer = config(&gateway)
            .set("compression.codec", codec)
            .set("enable.idempotence", "true")
            .set("linger.ms", "20")
            .create()
            .unwrap();
        let topic = format!("codec-{codec}");
        let values: Vec<Vec<u8>> = (0..300_usize).map(|n| vec![b'a' + (n % 26) as u8; n * 97]).collect();
        let sends: Vec<_> = values
            .iter()
            .map(|value| {
                let headers = OwnedHeaders::new().insert(Header { key: "h", value: Some("v") });
                let record = FutureRecord::<(), _>::to(&topic).partition(0).payload(value);
                let record = record.headers(headers.insert(Header { key: "h", value: Some("w") }));
                producer.send_result(record).map_err(|(error, _)| error).unwrap()
            })
            .collect();
        for (number, send) in sends.into_iter().enumerate() {
            let delivered = send.await.unwrap().map_err(|(error, _)| error).unwrap();
            assert_eq!((delivered.partition, delivered.offset), (0, number as i64), "{codec}");
        }
        let read = read_all(&gateway, &topic);
        assert_eq!(read.len(), values.len(), "{codec}");
        for (number, record) in read.into_iter().enumerate() {
            let same = record.value.as_ref() == Some(&values[number]);
            let plain = record.offset == number as i64 && record.key.is_none() && record.headers == 2;
            assert!(same && plain, "{codec} {number}");
        }
    }
}

/// New topics are usable at once, in whatever order (B040).
#[tokio::test(flavor = "multi_thread")]
async fn twenty_topics_that_do_not_exist() {
    let gateway = TestGateway::start().await;
    let producer: FutureProducer = config(&gateway).set("message.timeout.ms", "10000").create().unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("new-{n}")).collect();
    let sends = names.iter().rev().map(|name| {
        let record = FutureRecord::to(name).key("k").payload("v");
        producer.send(record, PATIENCE)
    });
    for sent in futures::future::join_all(sends).await {
        sent.map_err(|(error, _)| error).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_administrated() {
    let gateway = TestGateway::start().await;
    let admin: AdminClient<DefaultClientContext> = config(&gateway).create().unwrap();
    let options = AdminOptions::new();
    let topic = NewTopic::new("made", 3, TopicReplication::Fixed(3)).set("retention.ms", "1000");
    assert_eq!(admin.create_topics([&topic], &options).await.unwrap(), [Ok("made".to_owned())]);
    let again = admin.create_topics([&topic], &options).await.unwrap();
    assert_eq!(again, [Err(("made".to_owned(), RDKafkaErrorCode::TopicAlreadyExists))]);

    let configs = admin.describe_configs(&[ResourceSpecifier::Topic("made")], &options).await.unwrap();
    let retention = configs[0].as_ref().unwrap().entry_map()["retention.ms"].value.clone();
    assert_eq!(retention.as_deref(), Some("1000"));

    assert_eq!(admin.delete_topics(&["made"], &options).await.unwrap(), [Ok("made".to_owned())]);
    let consumer: BaseConsumer = config(&gateway).create().unwrap();
    let metadata = consumer.fetch_metadata(None, PATIENCE).unwrap();
    assert!(metadata.topics().is_empty());
    assert_eq!((metadata.orig_broker_id(), metadata.brokers().len()), (1, 1));
}

/// Reads until `done` or the patience ends; (partition, offset) of every record.
async fn consume(consumer: &StreamConsumer, seen: &Mutex<Vec<(i32, i64)>>) {
    loop {
        let message = consumer.recv().await.unwrap();
        seen.lock().unwrap().push((message.partition(), message.offset()));
        consumer.store_offset_from_message(&message).unwrap();
    }
}

fn partitions_of(consumer: &StreamConsumer) -> usize {
    consumer.assignment().unwrap().count()
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + 2 * PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A consumer of "shared" whose group has the name of its strategy.
fn member(gateway: &TestGateway, strategy: &str) -> StreamConsumer {
    let consumer: StreamConsumer = config(gateway)
        .set("group.id", strategy)
        .set("partition.assignment.strategy", strategy)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.offset.store", "false")
        .set("auto.commit.interval.ms", "200")
        .set("heartbeat.interval.ms", "500")
        .set("session.timeout.ms", "6000")
        .create()
        .unwrap();
    consumer.subscribe(&["shared"]).unwrap();
    consumer
}

/// Two members share the partitions, one leaves, the other gets all; then a third goes on where
/// they were. For eager and for cooperative assignment.
#[tokio::test(flavor = "multi_thread")]
async fn groups_balance_and_rebalance() {
    let gateway = TestGateway::start_with(|config| config.server.groups.group_initial_rebalance_delay_ms = 200).await;
    let producer: FutureProducer = config(&gateway).create().unwrap();
    let admin: AdminClient<DefaultClientContext> = config(&gateway).create().unwrap();
    let topic = NewTopic::new("shared", 4, TopicReplication::Fixed(1));
    admin.create_topics([&topic], &AdminOptions::new()).await.unwrap()[0].as_ref().unwrap();
    let send = async |number: i32| {
        for partition in 0..4 {
            for n in 0..number {
                let value = n.to_string();
                let record = FutureRecord::<(), _>::to("shared").partition(partition).payload(&value);
                producer.send(record, PATIENCE).await.map_err(|(error, _)| error).unwrap();
            }
        }
    };
    for strategy in ["range", "cooperative-sticky"] {
        let member = || member(&gateway, strategy);
        let seen = Mutex::new(Vec::new());
        let (one, two) = (member(), member());
        {
            let reading = async { tokio::join!(consume(&one, &seen), consume(&two, &seen)) };
            let watching = async {
                until("two each", || partitions_of(&one) == 2 && partitions_of(&two) == 2).await;
                send(5).await;
                let total = if strategy == "range" { 20 } else { 40 };
                until("all records", || seen.lock().unwrap().len() >= total).await;
            };
            tokio::select! { _ = reading => {}, () = watching => {} }
        }
        two.commit_consumer_state(rdkafka::consumer::CommitMode::Sync).ok();
        drop(two);
        {
            let reading = consume(&one, &seen);
            tokio::select! { () = reading => {}, () = until("all four", || partitions_of(&one) == 4) => {} }
        }
        one.commit_consumer_state(rdkafka::consumer::CommitMode::Sync).ok();
        drop(one);
        let before = seen.lock().unwrap().len();
        let three = member();
        {
            let reading = consume(&three, &seen);
            let watching = async {
                until("all four again", || partitions_of(&three) == 4).await;
                tokio::time::sleep(Duration::from_millis(500)).await;
            };
            tokio::select! { () = reading => {}, () = watching => {} }
        }
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), before, "{strategy}: nothing is read twice");
        let unique: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "{strategy}");
    }
}

/// Fails at once with the reason, not after a time-out.
#[tokio::test(flavor = "multi_thread")]
async fn a_transactional_producer_fails_fast() {
    let gateway = TestGateway::start().await;
    let producer: FutureProducer = config(&gateway).set("transactional.id", "tx").create().unwrap();
    let start = Instant::now();
    let error = tokio::task::spawn_blocking(move || producer.init_transactions(Duration::from_secs(30))).await.unwrap();
    let Err(KafkaError::Transaction(error)) = error else { panic!("{error:?}") };
    assert_eq!(error.code(), RDKafkaErrorCode::TransactionalIdAuthorizationFailed);
    assert!(error.is_fatal() && start.elapsed() < Duration::from_secs(10), "{error} after {:?}", start.elapsed());
}
