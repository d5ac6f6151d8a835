//! kill −9 of the gateway and immediate stops of Postgres, in turn, while idempotent producers
//! write: nothing acknowledged is lost, nothing stands twice, order and offsets are whole
//! (storage.md Invariants 1, 2 and 6).

use std::time::Duration;

use local_postgres::{LocalPostgres, Settings, StopMode};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
};

use crate::{
    load::{Load, Record, check_stored, rounds, stored},
    process::GatewayProcess,
};

const TOPIC: &str = "chaos";
const PARTITIONS: i32 = 2;
const PRODUCERS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled() {
    let _alone = crate::ALONE.lock().await;
    let dir = std::env::temp_dir().join(format!("pgqueue-chaos-{}", std::process::id()));
    let postgres = LocalPostgres::start(&dir, Settings { ephemeral: true, ..Settings::default() }).unwrap();
    let mut gateway = GatewayProcess::start(&postgres.url(), &[]);

    let mut load = Load::start(&gateway.bootstrap(), TOPIC, PARTITIONS, PRODUCERS, Duration::from_millis(1));
    let seed = rand::random();
    println!("chaos seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = rounds(20);
    for round in 0..rounds {
        tokio::time::sleep(Duration::from_millis(random.random_range(200..900))).await;
        if round % 2 == 0 {
            gateway.kill();
            gateway.restart();
        } else {
            postgres.stop(StopMode::Immediate).unwrap();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..600))).await;
            postgres.restart().unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let acked = load.finish().await;
    assert!(acked.len() > 100 * rounds as usize / 20, "only {} records were acknowledged", acked.len());

    let rows = stored(&postgres.url(), TOPIC).await;
    check_stored(&rows, &acked);
    let read = tokio::task::spawn_blocking({
        let (bootstrap, count) = (gateway.bootstrap(), rows.len());
        move || consume(&bootstrap, count)
    });
    assert_eq!(read.await.unwrap(), rows, "a Kafka consumer reads what SQL shows");
    println!("{} acknowledged, {} stored, {rounds} rounds", acked.len(), rows.len());
}

fn consume(bootstrap: &str, count: usize) -> Vec<Record> {
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
        read.push(Record {
            partition: message.partition(),
            offset: message.offset(),
            value: String::from_utf8(message.payload().unwrap().to_vec()).unwrap(),
        });
    }
    read.sort();
    read
}
