//! One member of a consumer group, until standard input ends.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

use crate::Outcome;
use crate::record::to_hex;

const POLL: Duration = Duration::from_millis(200);
const POLL_RECORDS: usize = 50;

static INPUT_ENDED: AtomicBool = AtomicBool::new(false);

pub fn run(bootstrap: &str, topic: &str, group: &str, assignor: &str, instance_id: Option<&str>) -> Outcome {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("partition.assignment.strategy", assignor)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_uncommitted")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "500")
        .set("max.poll.interval.ms", "15000");
    if let Some(instance_id) = instance_id {
        config.set("group.instance.id", instance_id);
    }
    let consumer: BaseConsumer<Member> =
        config.create_with_context(Member { topic: topic.to_owned(), processed: Mutex::default() })?;
    std::thread::spawn(|| {
        // An input that cannot be read has ended, too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        INPUT_ENDED.store(true, Ordering::Relaxed);
    });
    consumer.subscribe(&[topic])?;
    while !INPUT_ENDED.load(Ordering::Relaxed) {
        poll(&consumer)?;
        consumer.context().commit(&consumer);
    }
    consumer.context().commit(&consumer);
    drop(consumer); // leaves the group, after the last revocation
    tell(&json!({"event": "closed"}));
    Ok(())
}

/// Some records, each printed before the next is asked for: rebalances happen inside the client's poll.
fn poll(consumer: &BaseConsumer<Member>) -> Outcome {
    for polled in 0..POLL_RECORDS {
        let wait = if polled == 0 { POLL } else { Duration::ZERO };
        match consumer.poll(wait) {
            None => break,
            Some(Ok(message)) => {
                tell(&json!({
                    "event": "record",
                    "partition": message.partition(),
                    "offset": message.offset(),
                    "value": to_hex(&message.payload().map(<[u8]>::to_vec)),
                }));
                consumer.context().processed().insert(message.partition(), message.offset() + 1);
            }
            Some(Err(KafkaError::MessageConsumptionFatal(error))) => return Err(error.into()),
            // The others go away by themselves, says librdkafka.
            Some(Err(error)) => eprintln!("{error}"),
        }
    }
    Ok(())
}

struct Member {
    topic: String,
    /// The next offset of each partition whose records were printed and not committed yet.
    processed: Mutex<BTreeMap<i32, i64>>,
}

impl Member {
    fn processed(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, i64>> {
        match self.processed.lock() {
            Ok(processed) => processed,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn commit(&self, consumer: &BaseConsumer<Self>) {
        let offsets = self.processed().clone();
        if offsets.is_empty() {
            return;
        }
        match self.try_commit(consumer, &offsets) {
            Ok(()) => {
                for (partition, offset) in offsets {
                    tell(&json!({"event": "committed", "partition": partition, "offset": offset}));
                }
                self.processed().clear();
            }
            // Whoever owns the partitions now reads them again; what stays ours is committed later.
            Err(error) => tell(&json!({"event": "commit_failed", "error": error.to_string()})),
        }
    }

    fn try_commit(&self, consumer: &BaseConsumer<Self>, offsets: &BTreeMap<i32, i64>) -> KafkaResult<()> {
        let mut list = TopicPartitionList::new();
        for (&partition, &offset) in offsets {
            list.add_partition_offset(&self.topic, partition, Offset::Offset(offset))?;
        }
        consumer.commit(&list, CommitMode::Sync)
    }
}

impl ClientContext for Member {}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                tell(&json!({"event": "assigned", "partitions": partitions(list)}));
            }
            Rebalance::Revoke(list) => {
                let lost = consumer.assignment_lost();
                if !lost {
                    self.commit(consumer);
                }
                let partitions = partitions(list);
                self.processed().retain(|partition, _| !partitions.contains(partition));
                let event = if lost { "lost" } else { "revoked" };
                tell(&json!({"event": event, "partitions": partitions}));
            }
            Rebalance::Error(error) => eprintln!("{error}"),
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<i32> {
    list.elements().iter().map(|element| element.partition()).collect()
}

/// Nobody reads a line that cannot be written: the input ends then, too.
fn tell(event: &Value) {
    let _ = writeln!(std::io::stdout(), "{event}");
}
