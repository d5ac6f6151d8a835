//! librdkafka as applications use it. Other clients are in `compat-tests`.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
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
