//! One member of a consumer group, until standard input ends.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, mpsc};
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
    // The answer to a commit comes on the connection on which a rebalance is waited for, so waiting for it here
    // would keep a cooperative member from reading. (CommitMode::Async has no answer: librdkafka gives it to a
    // callback that rdkafka does not set.)
    std::thread::scope(|scope| {
        let (commits, to_commit) = mpsc::channel();
        let committing = &consumer;
        scope.spawn(move || {
            for offsets in to_commit {
                committing.context().commit(committing, &offsets);
            }
        });
        while !INPUT_ENDED.load(Ordering::Relaxed) {
            poll(&consumer)?;
            if let Some(offsets) = consumer.context().processed().begin_commit() {
                commits.send(offsets)?;
            }
        }
        // Ends a commit that still waits, too. What was processed is committed in the last revocation.
        consumer.close_queue()?;
        while !consumer.closed() {
            poll(&consumer)?;
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
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
                consumer.context().processed().next.insert(message.partition(), message.offset() + 1);
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
    processed: Mutex<Processed>,
}

/// Both by partition: the next offset.
#[derive(Default)]
struct Processed {
    /// What was printed and not committed yet.
    next: BTreeMap<i32, i64>,
    /// The commit whose answer is awaited.
    asked: Option<BTreeMap<i32, i64>>,
}

impl Processed {
    /// `None` as long as an answer is awaited.
    fn begin_commit(&mut self) -> Option<BTreeMap<i32, i64>> {
        if self.asked.is_some() { None } else { self.begin_last_commit() }
    }

    /// The answer to a commit before this one counts no more.
    fn begin_last_commit(&mut self) -> Option<BTreeMap<i32, i64>> {
        self.asked = (!self.next.is_empty()).then(|| self.next.clone());
        self.asked.clone()
    }
}

impl Member {
    fn processed(&self) -> MutexGuard<'_, Processed> {
        match self.processed.lock() {
            Ok(processed) => processed,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn commit(&self, consumer: &BaseConsumer<Self>, offsets: &BTreeMap<i32, i64>) {
        let outcome = self.list(offsets).and_then(|list| consumer.commit(&list, CommitMode::Sync));
        self.answered(offsets, outcome);
    }

    fn list(&self, offsets: &BTreeMap<i32, i64>) -> KafkaResult<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        for (&partition, &offset) in offsets {
            list.add_partition_offset(&self.topic, partition, Offset::Offset(offset))?;
        }
        Ok(list)
    }

    fn answered(&self, offsets: &BTreeMap<i32, i64>, outcome: KafkaResult<()>) {
        let mut processed = self.processed();
        if processed.asked.as_ref() != Some(offsets) {
            return; // a later commit has taken its place
        }
        processed.asked = None;
        match outcome {
            Ok(()) => {
                for (partition, offset) in offsets {
                    tell(&json!({"event": "committed", "partition": partition, "offset": offset}));
                }
                // What came in meanwhile stays.
                processed.next.retain(|partition, next| offsets.get(partition) != Some(next));
            }
            // Whoever owns the partitions now reads them again; what stays ours is committed later.
            Err(error) => tell(&json!({"event": "commit_failed", "error": error.to_string()})),
        }
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
                let offsets = self.processed().begin_last_commit();
                if let Some(offsets) = offsets.filter(|_| !lost) {
                    self.commit(consumer, &offsets);
                }
                let partitions = partitions(list);
                let mut processed = self.processed();
                processed.asked = None;
                processed.next.retain(|partition, _| !partitions.contains(partition));
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
