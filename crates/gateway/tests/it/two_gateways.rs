//! Two gateways on one database (storage.md D11, D12): who leads, in which epoch, and what readers
//! and writers notice when one comes, leaves or dies.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gateway::{Gateway, Handle, config::Config};
use kafka_protocol::messages::{
    CreateTopicsRequest, FetchResponse, ListOffsetsRequest, OffsetForLeaderEpochRequest,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
};
use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{Consumer, ConsumerContext, StreamConsumer},
    error::KafkaError,
    producer::{FutureProducer, FutureRecord},
    types::RDKafkaErrorCode,
};
use testkit::{Client, TestDatabase, TestGateway};
use tokio::runtime::Runtime;
use wire::batch::{BatchView, Records};

use crate::samples::{batch, creatable, fetch, metadata, produce, topic_name};

/// For what takes a moment, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Until a record of another gateway is found without a hint, at the most, while records arrive.
const TICK: Duration = Duration::from_millis(125);

/// A gateway that can be killed: all its tasks and sockets end at once, and nothing is given back.
struct Second {
    runtime: Runtime,
    handle: Handle,
}

impl Second {
    /// Node 2 beside `first`. Port 0 takes a free one.
    async fn start(first: &TestGateway, listen: SocketAddr, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::defaults();
        config.store.postgres.database_url = Some(first.database().url().to_owned());
        config.server.listen = listen;
        config.server.http_listen = ([127, 0, 0, 1], 0).into();
        config.server.node_id = 2;
        change(&mut config);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let runtime = Runtime::new().unwrap();
            match runtime.spawn(Gateway::start(config.clone())).await.unwrap() {
                Ok(handle) => return Self { runtime, handle },
                // The port of the killed one may be free a moment later.
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            runtime.shutdown_background();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn address(&self) -> SocketAddr {
        self.handle.kafka_addr()
    }

    fn kill(self) {
        self.runtime.shutdown_background();
    }

    async fn stop(self) {
        let Self { runtime, handle } = self;
        assert!(runtime.spawn(handle.shutdown()).await.unwrap());
        runtime.shutdown_background();
    }
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn create(client: &mut Client, topic: &str, partitions: i32) {
    let request = CreateTopicsRequest::default().with_topics(vec![creatable(topic, partitions)]);
    assert_eq!(client.call(7, request).await.topics[0].error_code, 0);
}

/// What one gateway says of a topic: the brokers, the epoch, the leader of each partition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    brokers: Vec<i32>,
    epoch: i32,
    leaders: Vec<i32>,
}

async fn told(client: &mut Client, topic: &str) -> Told {
    let answer = client.call(12, metadata(topic)).await;
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    let partitions = &answer.topics[0].partitions;
    let mut epochs: Vec<i32> = partitions.iter().map(|partition| partition.leader_epoch).collect();
    epochs.dedup();
    assert_eq!(epochs.len(), 1, "{answer:?}");
    let told = Told {
        brokers: answer.brokers.iter().map(|broker| broker.node_id.0).collect(),
        epoch: epochs[0],
        leaders: partitions.iter().map(|partition| partition.leader_id.0).collect(),
    };
    assert!(told.leaders.iter().all(|leader| told.brokers.contains(leader)), "{told:?}");
    told
}

/// Waits until a gateway tells of these brokers.
async fn tells_of(client: &mut Client, topic: &str, brokers: &[i32]) -> Told {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let told = told(client, topic).await;
        if told.brokers == brokers {
            return told;
        }
        assert!(Instant::now() < deadline, "{told:?}, not {brokers:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sessions that listen for hints in this database.
async fn sessions_that_listen(database: &TestDatabase, expected: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'pgqueue-gateway listening'";
    let mut connection = database.connection().await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{found} sessions, not {expected}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Offset and value of each record of partition 0.
fn records(answer: &FetchResponse) -> Vec<(i64, String)> {
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0, "{partition:?}");
    let mut found = Vec::new();
    let mut rest = partition.records.as_deref().unwrap();
    while !rest.is_empty() {
        let (batch, after) = BatchView::parse(rest).unwrap();
        for record in Records::new(batch.payload()) {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            found.push((batch.header().base_offset + i64::from(record.offset_delta), value));
        }
        rest = after;
    }
    found
}

/// Pipelines 20 batches of one record; where each one is.
async fn write(client: &mut Client, name: &str) -> Vec<(i64, String)> {
    let (mut sent, mut written) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let value = format!("{name} {number}");
        sent.push((client.send(9, produce("t", -1, batch(value.as_bytes()))).await, value));
    }
    for (sent, value) in sent {
        let answer = client.receive(sent).await;
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, 0, "{answer:?}");
        written.push((partition.base_offset, value));
    }
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn records_go_in_and_out_through_either_in_one_order() {
    let first = TestGateway::start().await;
    let mut one = first.client().await;
    create(&mut one, "t", 1).await;
    let second = Second::start(&first, any_port(), |_| {}).await;
    let mut two = Client::connect(second.address()).await;
    let mut expected = Vec::new();
    for _ in 0..10 {
        let (by_one, by_two) = tokio::join!(write(&mut one, "one"), write(&mut two, "two"));
        for written in [by_one, by_two] {
            assert!(written.is_sorted_by_key(|(offset, _)| *offset));
            expected.extend(written);
        }
    }
    expected.sort();
    assert!(expected.iter().map(|(offset, _)| *offset).eq(0..400), "gapless");
    for client in [&mut one, &mut two] {
        let mut read = Vec::new();
        while read.len() < expected.len() {
            let found = records(&client.call(11, fetch("t", read.len() as i64, 10_000)).await);
            assert!(!found.is_empty(), "nothing after {}", read.len());
            read.extend(found);
        }
        assert_eq!(read, expected);
    }
    second.stop().await;
}

async fn fetch_with_epoch(client: &mut Client, epoch: i32) -> i16 {
    let mut request = fetch("t", 0, 0);
    request.topics[0].partitions[0].current_leader_epoch = epoch;
    client.call(11, request).await.responses[0].partitions[0].error_code
}

async fn list_with_epoch(client: &mut Client, epoch: i32) -> (i16, i32) {
    let partition = ListOffsetsPartition::default().with_current_leader_epoch(epoch).with_timestamp(-1);
    let topic = ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
    let answer = client.call(8, ListOffsetsRequest::default().with_topics(vec![topic])).await;
    let partition = &answer.topics[0].partitions[0];
    (partition.error_code, partition.leader_epoch)
}

async fn end_of_epoch(client: &mut Client, present: i32, epoch: i32) -> (i16, i32, i64) {
    let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(present).with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default().with_topic(topic_name("t")).with_partitions(vec![partition]);
    let answer = client.call(4, OffsetForLeaderEpochRequest::default().with_topics(vec![topic])).await;
    let end = &answer.topics[0].partitions[0];
    (end.error_code, end.leader_epoch, end.end_offset)
}

/// No heartbeat comes in this test: what a gateway learns, it learns from clients and hints.
#[tokio::test(flavor = "multi_thread")]
async fn gateways_agree_on_leaders_and_epoch_without_waiting_for_a_heartbeat() {
    let rarely = |config: &mut Config| config.server.groups.coordinator_lease_ms = 600_000;
    let first = TestGateway::start_with(rarely).await;
    let mut one = first.client().await;
    create(&mut one, "t", 32).await;
    write(&mut one, "one").await;
    let alone = told(&mut one, "t").await;
    assert_eq!(alone, Told { brokers: vec![1], epoch: 0, leaders: vec![1; 32] });
    sessions_that_listen(first.database(), 0).await;

    // Its start waits for the first to look who is there: here it seems to, and has not seen it.
    let mut sql = first.database().connection().await;
    let looks = async {
        loop {
            sqlx::query("UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = clock_timestamp()")
                .execute(&mut sql)
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let second = tokio::select! {
        second = Second::start(&first, any_port(), rarely) => second,
        () = looks => unreachable!(),
    };
    let mut two = Client::connect(second.address()).await;
    let both = told(&mut two, "t").await;
    assert_eq!((&both.brokers, both.epoch), (&vec![1, 2], 1));
    assert!((8..24).contains(&both.leaders.iter().filter(|leader| **leader == 1).count()), "{both:?}");
    assert_eq!(told(&mut one, "t").await, alone, "the first does not know yet");
    assert_eq!(end_of_epoch(&mut one, -1, 1).await, (0, 1, 20), "a client tells it of the new epoch");
    assert_eq!(told(&mut one, "t").await, both);

    for client in [&mut one, &mut two] {
        for (epoch, code) in [(-1, 0), (0, 74), (1, 0), (2, 75)] {
            assert_eq!(fetch_with_epoch(client, epoch).await, code, "epoch {epoch}");
            let listed = if code == 0 { (0, 1) } else { (code, -1) };
            assert_eq!(list_with_epoch(client, epoch).await, listed, "epoch {epoch}");
        }
        assert_eq!(end_of_epoch(client, 1, 0).await, (0, 0, 20));
        assert_eq!(end_of_epoch(client, 0, 0).await, (74, -1, -1));
        assert_eq!(end_of_epoch(client, 1, 2).await, (0, -1, -1));
    }

    sessions_that_listen(first.database(), 2).await;
    second.stop().await;
    let left = tells_of(&mut one, "t", &[1]).await;
    assert_eq!(left, Told { epoch: 2, ..alone });
    sessions_that_listen(first.database(), 0).await;
}

/// librdkafka gives a broker up that one gateway lists and the other does not, and what it has asked
/// there is not asked again for five minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_is_in_the_metadata_of_all_before_it_serves() {
    let first = TestGateway::start().await;
    let mut one = first.client().await;
    create(&mut one, "t", 1).await;
    for _ in 0..3 {
        let second = Second::start(&first, any_port(), |_| {}).await;
        assert_eq!(told(&mut one, "t").await.brokers, [1, 2]);
        second.stop().await;
        tells_of(&mut one, "t", &[1]).await;
    }
}

/// Killed and started again within its lease, it is a broker all the time: the new process takes the
/// place of the old one when that ends, before the others miss it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_killed_and_is_back_at_once_stays_in_the_metadata() {
    let short = |config: &mut Config| config.server.groups.coordinator_lease_ms = 4_000;
    let first = TestGateway::start_with(short).await;
    let mut one = first.client().await;
    create(&mut one, "t", 1).await;
    let mut second = Second::start(&first, any_port(), short).await;
    let mut sql = first.database().connection().await;
    let instance = "SELECT instance::text FROM queue.metadata_queue_kafka_node WHERE node_id = 2";
    for _ in 0..3 {
        let killed: String = sqlx::query_scalar(instance).fetch_one(&mut sql).await.unwrap();
        let address = second.address();
        second.kill();
        second = Second::start(&first, address, short).await;
        let mut replaced = None;
        // For a second more, in which the first looks who is there.
        while replaced.is_none_or(|at: Instant| at.elapsed() < Duration::from_secs(1)) {
            assert_eq!(told(&mut one, "t").await.brokers, [1, 2]);
            if replaced.is_none()
                && sqlx::query_scalar::<_, String>(instance).fetch_one(&mut sql).await.unwrap() != killed
            {
                replaced = Some(Instant::now());
            }
        }
    }
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_reaches_a_reader_at_the_other_gateway_well_before_the_tick() {
    let first = TestGateway::start().await;
    let mut one = first.client().await;
    create(&mut one, "t", 1).await;
    let second = Second::start(&first, any_port(), |_| {}).await;
    let mut two = Client::connect(second.address()).await;
    tells_of(&mut one, "t", &[1, 2]).await;
    sessions_that_listen(first.database(), 2).await;
    let mut times = Vec::new();
    for offset in 0..61 {
        let parked = two.send(11, fetch("t", offset, 30_000)).await;
        // Long enough for the request to be parked, and not in step with the tick.
        tokio::time::sleep(Duration::from_millis(17)).await;
        let start = Instant::now();
        one.call(9, produce("t", -1, batch(b"x"))).await;
        let found = records(&two.receive(parked).await);
        times.push(start.elapsed());
        assert_eq!(found, [(offset, "x".to_owned())]);
    }
    times.sort();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("from the request to the other gateway's reader: median {median:?}, slowest {slowest:?}");
    assert!(median < TICK / 2, "{times:?}");
    second.stop().await;
}

/// As behind a pooler in transaction mode, where LISTEN is no error and hears nothing: here it
/// listens in another database.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_hears_no_hints_finds_records_at_its_tick() {
    let elsewhere = TestDatabase::new().await;
    let url = elsewhere.url().to_owned();
    let first = TestGateway::start().await;
    let mut one = first.client().await;
    create(&mut one, "t", 1).await;
    let second = Second::start(&first, any_port(), |config| config.store.direct_database_url = Some(url)).await;
    let mut two = Client::connect(second.address()).await;
    sessions_that_listen(&elsewhere, 1).await;
    sessions_that_listen(&elsewhere, 0).await;
    let parked = two.send(11, fetch("t", 0, 30_000)).await;
    one.call(9, produce("t", -1, batch(b"x"))).await;
    assert_eq!(records(&two.receive(parked).await), [(0, "x".to_owned())]);
    second.stop().await;
}

/// Keeps what librdkafka says of positions.
#[derive(Default)]
struct Log {
    validated: AtomicBool,
    resets: Mutex<Vec<String>>,
}

#[derive(Clone, Default)]
struct Context(Arc<Log>);

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, _: &str, message: &str) {
        if message.contains("epoch validation succeeded") {
            self.0.validated.store(true, Ordering::Relaxed);
        }
        let bad = ["offset reset", "out of range", "OFFSET_OUT_OF_RANGE", "runcat"];
        if bad.iter().any(|bad| message.contains(bad)) {
            self.0.resets.lock().unwrap().push(message.to_owned());
        }
    }
}

impl ConsumerContext for Context {}

const PARTITIONS: i32 = 8;

/// Partition to offset and value of its records, in the order of their acknowledgement or reading.
type Logs = Mutex<BTreeMap<i32, Vec<(i64, String)>>>;

fn shortest(logs: &Logs) -> usize {
    let logs = logs.lock().unwrap();
    (0..PARTITIONS).map(|partition| logs.get(&partition).map_or(0, Vec::len)).min().unwrap()
}

async fn write_until(stop: &AtomicBool, producer: &FutureProducer, written: &Logs) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let value = number.to_string();
        let sends = (0..PARTITIONS).map(|partition| {
            let record = FutureRecord::<(), _>::to("t").partition(partition).payload(&value);
            producer.send(record, PATIENCE)
        });
        for sent in futures::future::join_all(sends).await {
            let at = sent.map_err(|(error, _)| error).unwrap();
            written.lock().unwrap().entry(at.partition).or_default().push((at.offset, value.clone()));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn read(consumer: &StreamConsumer<Context>, seen: &Logs) {
    loop {
        match consumer.recv().await {
            Ok(message) => {
                let value = String::from_utf8(message.payload().unwrap().to_vec()).unwrap();
                let mut seen = seen.lock().unwrap();
                seen.entry(message.partition()).or_default().push((message.offset(), value));
            }
            // A gateway is away, as it should be.
            Err(KafkaError::MessageConsumption(
                RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown,
            )) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// What is written from now on is read, in every partition.
async fn goes_on(what: &str, written: &Logs, seen: &Logs) {
    let (mut deadline, mut last) = (Instant::now() + PATIENCE, 0);
    let wanted = written.lock().unwrap().values().map(Vec::len).max().unwrap_or(0) + 10;
    while shortest(seen) < wanted {
        // Slow is not stuck.
        if shortest(seen) > last {
            (deadline, last) = (Instant::now() + PATIENCE, shortest(seen));
        }
        assert!(Instant::now() < deadline, "{what}: {} of {wanted} records", shortest(seen));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An idempotent producer and a consumer without a reset policy, both librdkafka.
#[tokio::test(flavor = "multi_thread")]
async fn librdkafka_goes_on_when_a_gateway_dies_comes_back_and_leaves() {
    let lease = |config: &mut Config| config.server.groups.coordinator_lease_ms = 3_000;
    let first = TestGateway::start_with(lease).await;
    let mut one = first.client().await;
    create(&mut one, "t", PARTITIONS).await;
    let second = Second::start(&first, any_port(), lease).await;
    let address = second.address();
    let both = tells_of(&mut one, "t", &[1, 2]).await;
    assert!(both.leaders.contains(&1) && both.leaders.contains(&2), "{both:?}");

    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", format!("{},{address}", first.bootstrap()));
    let producer: FutureProducer =
        config.clone().set("enable.idempotence", "true").set("message.timeout.ms", "120000").create().unwrap();
    let context = Context::default();
    config.set("group.id", "none").set("enable.auto.commit", "false").set("auto.offset.reset", "error");
    config.set("debug", "fetch,topic,consumer").set_log_level(RDKafkaLogLevel::Debug);
    let consumer: StreamConsumer<Context> = config.create_with_context(context.clone()).unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        assignment.add_partition_offset("t", partition, Offset::Offset(0)).unwrap();
    }
    consumer.assign(&assignment).unwrap();

    let (stop, written, seen) = (AtomicBool::new(false), Logs::default(), Logs::default());
    let changes = async {
        goes_on("with both", &written, &seen).await;
        second.kill();
        let alone = tells_of(&mut one, "t", &[1]).await;
        assert!(alone.epoch > both.epoch && alone.leaders.iter().all(|leader| *leader == 1), "{alone:?}");
        goes_on("without the killed one", &written, &seen).await;
        let second = Second::start(&first, address, lease).await;
        let again = tells_of(&mut one, "t", &[1, 2]).await;
        assert!(again.epoch > alone.epoch, "{again:?}");
        assert_eq!(again.leaders, both.leaders);
        goes_on("with both again", &written, &seen).await;
        second.stop().await;
        let alone = tells_of(&mut one, "t", &[1]).await;
        assert!(alone.epoch > again.epoch, "{alone:?}");
        goes_on("without the one that left", &written, &seen).await;
        stop.store(true, Ordering::Relaxed);
    };
    let reading = async {
        let all = async {
            tokio::join!(write_until(&stop, &producer, &written), changes);
            let total: usize = written.lock().unwrap().values().map(Vec::len).sum();
            let deadline = Instant::now() + PATIENCE;
            while seen.lock().unwrap().values().map(Vec::len).sum::<usize>() < total {
                assert!(Instant::now() < deadline, "not all of {total} records");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! { () = all => {}, () = read(&consumer, &seen) => {} }
    };
    reading.await;

    let (written, seen) = (written.into_inner().unwrap(), seen.into_inner().unwrap());
    for (partition, read) in &seen {
        assert!(read.iter().map(|(offset, _)| *offset).eq(0..read.len() as i64), "{partition}: {read:?}");
    }
    assert_eq!(seen, written);
    assert!(context.0.validated.load(Ordering::Relaxed), "the consumer never validated a position");
    let resets = context.0.resets.lock().unwrap();
    assert!(resets.is_empty(), "{resets:?}");
}
