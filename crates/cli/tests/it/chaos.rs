//! kill −9 of the gateway and immediate stops of Postgres, in turn, while idempotent producers
//! write: nothing acknowledged is lost, nothing stands twice, order and offsets are whole
//! (storage.md section 3, points 1, 2 and 6).

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use local_postgres::{LocalPostgres, Settings, StopMode};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    producer::{FutureProducer, FutureRecord, Producer},
};
use sqlx::{Connection, PgConnection, Row};

use crate::process::GatewayProcess;

const TOPIC: &str = "chaos";
const PARTITIONS: i32 = 2;
const PRODUCERS: usize = 4;

/// How often something is killed: `CHAOS_ROUNDS`, or a number that fits into every test run.
fn rounds() -> u32 {
    std::env::var("CHAOS_ROUNDS").map_or(20, |text| text.parse().expect("CHAOS_ROUNDS is a number"))
}

/// A record that was acknowledged or read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Acked {
    partition: i32,
    /// Negative: acknowledged without an offset. librdkafka does that when a batch failed, later ones
    /// were acknowledged meanwhile, and its repeat is refused as older than the last five: it must be
    /// stored then.
    offset: i64,
    value: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled() {
    let dir = std::env::temp_dir().join(format!("pgqueue-chaos-{}", std::process::id()));
    let postgres = LocalPostgres::start(&dir, Settings { ephemeral: true, ..Settings::default() }).unwrap();
    let mut gateway = GatewayProcess::start(&postgres.url());

    let running = Arc::new(AtomicBool::new(true));
    let producers: Vec<_> =
        (0..PRODUCERS).map(|id| tokio::spawn(produce(id, gateway.bootstrap(), Arc::clone(&running)))).collect();
    let seed = rand::random();
    println!("chaos seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..rounds() {
        tokio::time::sleep(Duration::from_millis(random.random_range(200..900))).await;
        if round % 2 == 0 {
            gateway.kill_and_restart();
        } else {
            postgres.stop(StopMode::Immediate).unwrap();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..600))).await;
            postgres.restart().unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.store(false, Ordering::Relaxed);
    let mut acked = Vec::new();
    for producer in producers {
        acked.extend(producer.await.unwrap());
    }
    assert!(acked.len() > 100 * rounds() as usize / 20, "only {} records were acknowledged", acked.len());

    let rows = rows(&postgres.url()).await;
    check_rows(&rows, &acked);
    let read = tokio::task::spawn_blocking({
        let (bootstrap, count) = (gateway.bootstrap(), rows.len());
        move || consume(&bootstrap, count)
    });
    assert_eq!(read.await.unwrap(), rows, "a Kafka consumer reads what SQL shows");
    println!("{} acknowledged, {} stored, {} rounds", acked.len(), rows.len(), rounds());
}

/// Sends numbered records until told to stop; every one of them must be acknowledged in the end.
async fn produce(id: usize, bootstrap: String, running: Arc<AtomicBool>) -> Vec<Acked> {
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", "300000")
        .set("linger.ms", "2")
        .set("reconnect.backoff.max.ms", "500")
        .create()
        .unwrap();
    let partition = id as i32 % PARTITIONS;
    let mut deliveries = Vec::new();
    for number in 0.. {
        if !running.load(Ordering::Relaxed) {
            break;
        }
        let value = format!("{id}:{number}");
        let record = FutureRecord::<str, str>::to(TOPIC).partition(partition).payload(&value);
        match producer.send_result(record) {
            Ok(delivery) => deliveries.push((value.clone(), delivery)),
            Err((error, _)) => panic!("record {value} could not be queued: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let flushing = tokio::task::spawn_blocking(move || producer.flush(Duration::from_secs(60)));
    let mut acked = Vec::new();
    for (value, delivery) in deliveries {
        let delivered = delivery.await.unwrap().unwrap_or_else(|(error, _)| panic!("record {value}: {error}"));
        acked.push(Acked { partition: delivered.partition, offset: delivered.offset, value });
    }
    flushing.await.unwrap().unwrap();
    acked
}

async fn rows(url: &str) -> Vec<Acked> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(
        "SELECT m.partition_id, m.enqueue_seq - 1, convert_from(m.payload, 'UTF8') \
         FROM queue.metadata_queue_message m JOIN queue.metadata_queue_topic t ON t.id = m.topic_id \
         WHERE t.topic_name = $1 ORDER BY 1, 2",
    )
    .bind(TOPIC)
    .fetch_all(&mut connection)
    .await
    .unwrap()
    .into_iter()
    .map(|row| Acked { partition: row.get(0), offset: row.get(1), value: row.get(2) })
    .collect()
}

fn check_rows(rows: &[Acked], acked: &[Acked]) {
    let stored: HashSet<&Acked> = HashSet::from_iter(rows);
    let values: HashSet<(i32, &str)> = rows.iter().map(|row| (row.partition, row.value.as_str())).collect();
    for record in acked {
        let is_there = match record.offset {
            0.. => stored.contains(record),
            _ => values.contains(&(record.partition, record.value.as_str())),
        };
        assert!(is_there, "{record:?} was acknowledged and is not there");
    }
    let without_offset = acked.iter().filter(|record| record.offset < 0).count();
    assert!(without_offset * 10 < acked.len(), "{without_offset} records were acknowledged without an offset");
    let values: HashSet<&str> = rows.iter().map(|row| row.value.as_str()).collect();
    assert_eq!(values.len(), rows.len(), "a record stands twice");

    let mut next_offset: BTreeMap<i32, i64> = BTreeMap::new();
    let mut next_number: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        let expected = next_offset.entry(row.partition).or_insert(0);
        assert_eq!(row.offset, *expected, "a hole in partition {}", row.partition);
        *expected += 1;
        let (producer, number) = row.value.split_once(':').unwrap();
        let expected = next_number.entry(producer.to_owned()).or_insert(0);
        assert_eq!(number.parse::<u64>().unwrap(), *expected, "producer {producer} is out of order");
        *expected += 1;
    }
}

fn consume(bootstrap: &str, count: usize) -> Vec<Acked> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "unused: partitions are assigned by hand")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        assignment.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let mut read = Vec::with_capacity(count);
    while read.len() < count {
        let message = consumer.poll(Duration::from_secs(30)).expect("a record within 30 s").unwrap();
        read.push(Acked {
            partition: message.partition(),
            offset: message.offset(),
            value: String::from_utf8(message.payload().unwrap().to_vec()).unwrap(),
        });
    }
    read.sort();
    read
}
