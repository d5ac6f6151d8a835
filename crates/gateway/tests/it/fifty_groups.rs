//! Many groups at the tail of one topic.

use std::time::{Duration, Instant};

use futures::future::join_all;
use gateway::config::Config;
use rdkafka::{
    ClientConfig, Message, Offset,
    consumer::{CommitMode, Consumer, StreamConsumer},
    producer::{FutureProducer, FutureRecord},
};
use sqlx::PgConnection;
use testkit::{TestDatabase, TestGateway};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(120);
const PARTITIONS: usize = 2;
/// Of each partition.
const RECORDS: i64 = 30;

/// What Postgres did, from its statistics.
#[derive(Debug, Clone, Copy)]
struct Work {
    transactions: i64,
    /// Rows of messages that index scans fetched.
    rows: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_group_gets_every_record_once_and_postgres_gives_it_once() {
    let (database, one) = groups_at_the_tail(TestDatabase::new().await, 1).await;
    let (_database, fifty) = groups_at_the_tail(database, 50).await;
    let ratio = |one: i64, fifty: i64| fifty as f64 / one as f64;
    let (transactions, rows) = (ratio(one.transactions, fifty.transactions), ratio(one.rows, fifty.rows));
    println!("50 groups to 1: {transactions:.1} times the transactions, {rows:.1} times the rows ({one:?}, {fifty:?})");
    // One more group joins, commits, and reads what came before it; the tail is read for all (storage.md D13). It
    // would be at least a row a record if each group read for itself, and as many statements.
    let records = RECORDS * PARTITIONS as i64;
    let (transactions, rows) = ((fifty.transactions - one.transactions) / 49, (fifty.rows - one.rows) / 49);
    assert!(transactions < records / 2 && rows < records / 2, "{transactions}, {rows} for each group more");
}

/// Groups with a consumer each read records as they come, commit and leave.
async fn groups_at_the_tail(database: TestDatabase, groups: usize) -> (TestDatabase, Work) {
    let mut connection = database.connection().await;
    let before = work(&mut connection).await;
    let topic = format!("tail-of-{groups}");
    let gateway = TestGateway::start_on(database, |config: &mut Config| {
        config.server.groups.group_initial_rebalance_delay_ms = 0;
        config.server.topics.num_partitions = PARTITIONS as i32;
    })
    .await;
    let producer: FutureProducer = config(&gateway).create().unwrap();
    // The first record of each partition is the one that all have read before the others come.
    send(&producer, &topic).await;
    let consumers: Vec<StreamConsumer> = (0..groups).map(|number| consumer(&gateway, &topic, number)).collect();
    join_all(consumers.iter().map(|consumer| read(consumer, 0..1))).await;
    let sending = async {
        for _ in 1..RECORDS {
            send(&producer, &topic).await;
        }
    };
    tokio::join!(sending, join_all(consumers.iter().map(|consumer| read(consumer, 1..RECORDS))));
    let commits = consumers.into_iter().map(|consumer| tokio::task::spawn_blocking(move || commit(&consumer)));
    for committed in join_all(commits).await {
        committed.unwrap();
    }
    drop(producer);
    let (database, in_time) = gateway.stop().await;
    assert!(in_time);
    let after = work(&mut connection).await;
    let work = Work { transactions: after.transactions - before.transactions, rows: after.rows - before.rows };
    (database, work)
}

fn config(gateway: &TestGateway) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", gateway.bootstrap());
    config
}

fn consumer(gateway: &TestGateway, topic: &str, number: usize) -> StreamConsumer {
    let consumer: StreamConsumer = config(gateway)
        .set("group.id", format!("{topic}-{number}"))
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        // Longer than a busy machine may take.
        .set("session.timeout.ms", "120000")
        .create()
        .unwrap();
    consumer.subscribe(&[topic]).unwrap();
    consumer
}

/// One record into each partition, acknowledged.
async fn send(producer: &FutureProducer, topic: &str) {
    for partition in 0..PARTITIONS as i32 {
        let record = FutureRecord::<(), _>::to(topic).partition(partition).payload("value");
        producer.send(record, PATIENCE).await.map_err(|(error, _)| error).unwrap();
    }
}

/// Reads exactly these offsets of each partition, in order.
async fn read(consumer: &StreamConsumer, offsets: std::ops::Range<i64>) {
    let mut next = [offsets.start; PARTITIONS];
    while next.iter().any(|next| *next < offsets.end) {
        let message = timeout(PATIENCE, consumer.recv()).await.expect("a record").unwrap();
        let next = &mut next[message.partition() as usize];
        assert_eq!(message.offset(), *next, "partition {}", message.partition());
        *next += 1;
    }
}

/// Commits what was read; then the committed offset is the end of the log.
fn commit(consumer: &StreamConsumer) {
    consumer.commit_consumer_state(CommitMode::Sync).unwrap();
    let committed = consumer.committed(PATIENCE).unwrap();
    let offsets: Vec<Offset> = committed.elements().iter().map(|element| element.offset()).collect();
    assert_eq!(offsets, [Offset::Offset(RECORDS); PARTITIONS]);
}

/// Once all other sessions are gone: each hands its numbers in when it ends.
async fn work(connection: &mut PgConnection) -> Work {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let deadline = Instant::now() + PATIENCE;
    while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut *connection).await.unwrap() > 0 {
        assert!(Instant::now() < deadline, "sessions stay");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sql = "SELECT xact_commit + xact_rollback, (SELECT sum(idx_tup_fetch)::bigint FROM pg_stat_user_tables \
          JOIN pg_inherits ON inhrelid = relid WHERE inhparent = 'queue.metadata_queue_message'::regclass) \
        FROM pg_stat_database WHERE datname = current_database()";
    let (transactions, rows) = sqlx::query_as(sql).fetch_one(connection).await.unwrap();
    Work { transactions, rows }
}
