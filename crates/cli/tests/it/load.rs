//! Idempotent producers that write numbered records, and what SQL shows of them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rdkafka::{
    ClientConfig,
    producer::{FutureProducer, FutureRecord, Producer},
};
use sqlx::{Connection, PgConnection, Row};
use tokio::task::JoinHandle;

/// How often something is killed: `CHAOS_ROUNDS`, or a number that fits into every test run.
pub fn rounds(usual: u32) -> u32 {
    std::env::var("CHAOS_ROUNDS").map_or(usual, |text| text.parse().expect("CHAOS_ROUNDS is a number"))
}

/// A record that was acknowledged, read or stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record {
    pub partition: i32,
    /// Negative: acknowledged without an offset. librdkafka does that when a batch failed, later ones
    /// were acknowledged meanwhile, and its repeat is refused as older than the last five: it must be
    /// stored then.
    pub offset: i64,
    pub value: String,
}

/// Producers that write until [`Load::finish`].
pub struct Load {
    running: Arc<AtomicBool>,
    producers: Vec<JoinHandle<Vec<Record>>>,
}

impl Load {
    /// Each of `producers` writes to one partition, a record after every `pause`.
    pub fn start(bootstrap: &str, topic: &'static str, partitions: i32, producers: usize, pause: Duration) -> Self {
        let running = Arc::new(AtomicBool::new(true));
        let producer = |id: usize| {
            let partition = id as i32 % partitions;
            tokio::spawn(produce(id, bootstrap.to_owned(), topic, partition, pause, running.clone()))
        };
        let producers = (0..producers).map(producer).collect();
        Self { running, producers }
    }

    /// What was acknowledged: everything that was sent.
    pub async fn finish(&mut self) -> Vec<Record> {
        self.running.store(false, Ordering::Relaxed);
        let mut acked = Vec::new();
        for producer in self.producers.drain(..) {
            acked.extend(producer.await.unwrap());
        }
        acked
    }
}

/// Sends numbered records until told to stop; every one of them must be acknowledged in the end.
async fn produce(
    id: usize,
    bootstrap: String,
    topic: &str,
    partition: i32,
    pause: Duration,
    running: Arc<AtomicBool>,
) -> Vec<Record> {
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", "300000")
        .set("linger.ms", "2")
        .set("reconnect.backoff.max.ms", "500")
        // So long a gateway that is cut off from Postgres holds a request up.
        .set("socket.timeout.ms", "10000")
        .create()
        .unwrap();
    let mut deliveries = Vec::new();
    for number in 0.. {
        if !running.load(Ordering::Relaxed) {
            break;
        }
        let value = format!("{id}:{number}");
        let record = FutureRecord::<str, str>::to(topic).partition(partition).payload(&value);
        match producer.send_result(record) {
            Ok(delivery) => deliveries.push((value.clone(), delivery)),
            Err((error, _)) => panic!("record {value} could not be queued: {error}"),
        }
        tokio::time::sleep(pause).await;
    }
    let flushing = tokio::task::spawn_blocking(move || producer.flush(Duration::from_secs(60)));
    let mut acked = Vec::new();
    for (value, delivery) in deliveries {
        let delivered = delivery.await.unwrap().unwrap_or_else(|(error, _)| panic!("record {value}: {error}"));
        acked.push(Record { partition: delivered.partition, offset: delivered.offset, value });
    }
    flushing.await.unwrap().unwrap();
    acked
}

/// All records of a topic, by partition and offset.
pub async fn stored(url: &str, topic: &str) -> Vec<Record> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(
        "SELECT m.partition_id, m.enqueue_seq - 1, convert_from(m.payload, 'UTF8') \
         FROM queue.metadata_queue_message m JOIN queue.metadata_queue_topic t ON t.id = m.topic_id \
         WHERE t.topic_name = $1 ORDER BY 1, 2",
    )
    .bind(topic)
    .fetch_all(&mut connection)
    .await
    .unwrap()
    .into_iter()
    .map(|row| Record { partition: row.get(0), offset: row.get(1), value: row.get(2) })
    .collect()
}

/// Nothing acknowledged is lost, nothing stands twice, order and offsets are whole.
pub fn check_stored(rows: &[Record], acked: &[Record]) {
    let stored: HashSet<&Record> = HashSet::from_iter(rows);
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
