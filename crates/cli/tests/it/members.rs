//! Members of consumer groups that commit what they have processed, and write down what they see.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance},
    error::KafkaError,
};

use crate::load::Record;

/// What the members of a group have in common.
#[derive(Debug, Clone, Copy)]
pub struct GroupConfig {
    pub id: &'static str,
    pub topic: &'static str,
    pub assignment_strategy: &'static str,
    pub session_timeout: Duration,
}

/// A running member: a librdkafka consumer on a thread of its own.
pub struct Member {
    client_id: String,
    journal: Arc<Journal>,
    leaving: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// All that a member has seen.
#[derive(Debug)]
pub struct History {
    pub client_id: String,
    pub entries: Vec<Entry>,
}

/// Times are microseconds since 1970, Postgres's clock being the same.
#[derive(Debug, Clone)]
pub struct Entry {
    pub at: i64,
    pub event: Event,
}

#[derive(Debug, Clone)]
pub enum Event {
    /// Written before librdkafka asks for the committed offsets.
    Assigned(Vec<i32>),
    /// Written when nothing more is processed.
    Revoked(Vec<i32>),
    Processed(Record),
    /// A commit was acknowledged.
    Committed {
        started: i64,
        offsets: BTreeMap<i32, i64>,
    },
}

#[derive(Debug, Default)]
struct Journal {
    topic: &'static str,
    entries: Mutex<Vec<Entry>>,
    /// The next offset of each partition with records that were processed since the last commit.
    uncommitted: Mutex<BTreeMap<i32, i64>>,
}

impl Member {
    pub fn start(bootstrap: &str, group: &GroupConfig, client_id: String, seed: u64) -> Self {
        let journal = Arc::new(Journal { topic: group.topic, ..Journal::default() });
        let leaving = Arc::new(AtomicBool::new(false));
        let consumer: BaseConsumer<Context> = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", group.id)
            .set("client.id", &client_id)
            .set("partition.assignment.strategy", group.assignment_strategy)
            .set("session.timeout.ms", group.session_timeout.as_millis().to_string())
            .set("heartbeat.interval.ms", "500")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("reconnect.backoff.max.ms", "500")
            // A connection that breaks is noticed, a server that is silent so late.
            .set("socket.timeout.ms", "10000")
            // librdkafka 2.12 drops its bootstrap connections when it knows the brokers, and with them
            // the metadata request that a join waits for; that is asked again after this time only.
            .set("topic.metadata.refresh.interval.ms", "5000")
            .create_with_context(Context(journal.clone()))
            .unwrap();
        consumer.subscribe(&[group.topic]).unwrap();
        let thread = std::thread::spawn({
            let (journal, leaving) = (journal.clone(), leaving.clone());
            move || journal.consume(&consumer, &leaving, StdRng::seed_from_u64(seed))
        });
        Self { client_id, journal, leaving, thread }
    }

    /// Commits, and leaves the group; [`Member::history`] waits for that.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Of a member that was told to leave.
    pub fn history(self) -> History {
        self.thread.join().unwrap();
        let entries = std::mem::take(&mut *self.journal.entries.lock().unwrap());
        History { client_id: self.client_id, entries }
    }

    /// How often partitions were assigned or revoked.
    pub fn rebalances(&self) -> usize {
        let entries = self.journal.entries.lock().unwrap();
        entries.iter().filter(|entry| matches!(entry.event, Event::Assigned(_) | Event::Revoked(_))).count()
    }

    /// When the commit was sent that was acknowledged last; 0 without one.
    pub fn last_commit(&self) -> i64 {
        let entries = self.journal.entries.lock().unwrap();
        let started = |entry: &Entry| match entry.event {
            Event::Committed { started, .. } => Some(started),
            _ => None,
        };
        entries.iter().rev().find_map(started).unwrap_or(0)
    }
}

impl Journal {
    fn write(&self, event: Event) {
        self.entries.lock().unwrap().push(Entry { at: now(), event });
    }

    /// Commits after a few records, and when there is none.
    fn consume(&self, consumer: &BaseConsumer<Context>, leaving: &AtomicBool, mut random: StdRng) {
        let mut left = 0_u32;
        while !leaving.load(Ordering::Relaxed) {
            match consumer.poll(Duration::from_millis(50)) {
                Some(Ok(message)) => {
                    let (partition, offset) = (message.partition(), message.offset());
                    let value = String::from_utf8(message.payload().unwrap().to_vec()).unwrap();
                    self.write(Event::Processed(Record { partition, offset, value }));
                    self.uncommitted.lock().unwrap().insert(partition, offset + 1);
                    if left > 0 {
                        left -= 1;
                        continue;
                    }
                }
                Some(Err(KafkaError::MessageConsumptionFatal(error))) => panic!("{error}"),
                // Of broken connections, which librdkafka makes anew.
                Some(Err(_)) => continue,
                None => {}
            }
            left = random.random_range(0..20);
            self.commit(consumer);
        }
    }

    /// What is refused is tried again with the next commit.
    fn commit(&self, consumer: &BaseConsumer<Context>) {
        let offsets = self.uncommitted.lock().unwrap().clone();
        if offsets.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (partition, offset) in &offsets {
            list.add_partition_offset(self.topic, *partition, Offset::Offset(*offset)).unwrap();
        }
        let started = now();
        if consumer.commit(&list, CommitMode::Sync).is_ok() {
            self.uncommitted.lock().unwrap().clear();
            self.write(Event::Committed { started, offsets });
        }
    }
}

struct Context(Arc<Journal>);

impl ClientContext for Context {}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => self.0.write(Event::Assigned(partitions(list))),
            Rebalance::Revoke(_) => self.0.commit(consumer),
            Rebalance::Error(error) => panic!("{error}"),
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance {
            let revoked = partitions(list);
            self.0.uncommitted.lock().unwrap().retain(|partition, _| !revoked.contains(partition));
            self.0.write(Event::Revoked(revoked));
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<i32> {
    list.elements().iter().map(|element| element.partition()).collect()
}

pub fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64
}
