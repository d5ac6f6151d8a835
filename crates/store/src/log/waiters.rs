//! The end of each partition as this gateway saw it last, and the fetches that wait for it to move.
//!
//! It is never ahead of what is committed, only behind: other gateways and pgQueue's clients append
//! too. `watch.rs` and `hints.rs` bring it up to date for partitions that a fetch waits for; where the
//! exact end matters, [`Log::ends`](crate::Log::ends) asks Postgres.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use tokio::sync::Notify;

use super::log_end::LogEnd;
use crate::partition::PartitionKey;

/// How long a partition stays watched after the last wait for it: longer than a client takes
/// between two fetches.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Partition {
    end: Option<LogEnd>,
    waiters: Vec<Arc<Waiter>>,
    last_wait: Option<Instant>,
    /// When a reader last had read everything.
    last_at_end: Option<Instant>,
    /// What a record weighed on average when it was last read; 0 before that.
    row_bytes: usize,
}

impl Partition {
    fn is_watched(&self) -> bool {
        !self.waiters.is_empty() || self.last_wait.is_some_and(|at| at.elapsed() < LINGER)
    }
}

/// One parked fetch: woken when enough bytes have been appended to the partitions it watches.
struct Waiter {
    wanted_bytes: AtomicI64,
    notify: Notify,
}

impl Waiter {
    fn appended(&self, bytes: i64) {
        if self.wanted_bytes.fetch_sub(bytes, Ordering::AcqRel) <= bytes {
            self.notify.notify_one();
        }
    }
}

#[derive(Default)]
pub(super) struct Waiters {
    partitions: DashMap<PartitionKey, Mutex<Partition>>,
}

fn lock(partition: &Mutex<Partition>) -> MutexGuard<'_, Partition> {
    partition.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiters {
    /// An append of this gateway was committed; `end` is the new one.
    pub(super) fn appended(&self, partition: PartitionKey, end: LogEnd, bytes: usize) {
        let Some(state) = self.partitions.get(&partition) else { return };
        let mut state = lock(&state);
        if let Some(last) = &mut state.end {
            *last = last.furthest(end);
        }
        for waiter in &state.waiters {
            waiter.appended(bytes as i64);
        }
    }

    /// Takes what Postgres says. Rows that others appended wake every waiter, since their size is not
    /// known here.
    pub(super) fn observed(&self, partition: PartitionKey, seen: LogEnd) {
        let state = self.partitions.entry(partition).or_default();
        let mut state = lock(&state);
        let is_news = state.end.is_none_or(|last| seen.is_past(last));
        state.end = Some(state.end.map_or(seen, |last| last.furthest(seen)));
        if is_news {
            for waiter in &state.waiters {
                waiter.appended(i64::from(i32::MAX));
            }
        }
    }

    pub(super) fn end(&self, partition: PartitionKey) -> Option<LogEnd> {
        self.partitions.get(&partition).and_then(|state| lock(&state).end)
    }

    /// Partitions that a fetch waits for or has just waited for: consumers come back at once.
    pub(super) fn watched(&self) -> Vec<PartitionKey> {
        self.partitions.iter().filter(|state| lock(state).is_watched()).map(|state| *state.key()).collect()
    }

    pub(super) fn is_watched(&self, partition: PartitionKey) -> bool {
        self.partitions.get(&partition).is_some_and(|state| lock(&state).is_watched())
    }

    /// A reader has read everything; the next append is what it reads next.
    pub(super) fn note_reader_at_end(&self, partition: PartitionKey) {
        if let Some(state) = self.partitions.get(&partition) {
            lock(&state).last_at_end = Some(Instant::now());
        }
    }

    pub(super) fn has_reader_at_end(&self, partition: PartitionKey) -> bool {
        let is_recent = |at: Instant| at.elapsed() < LINGER;
        self.partitions.get(&partition).is_some_and(|state| lock(&state).last_at_end.is_some_and(is_recent))
    }

    /// Bytes of a record of this partition, from the last read or as a guess.
    pub(super) fn row_bytes(&self, partition: PartitionKey) -> usize {
        const UNKNOWN: usize = 1024;
        let last = self.partitions.get(&partition).map_or(0, |state| lock(&state).row_bytes);
        if last == 0 { UNKNOWN } else { last }
    }

    pub(super) fn note_row_bytes(&self, partition: PartitionKey, row_bytes: usize) {
        if let Some(state) = self.partitions.get(&partition) {
            lock(&state).row_bytes = row_bytes;
        }
    }

    /// Drops what is remembered of a deleted topic and wakes its waiters.
    pub(super) fn forget_topic(&self, topic_id: i64) {
        self.partitions.retain(|partition, state| {
            let gone = partition.topic_id == topic_id;
            if gone {
                lock(state).waiters.iter().for_each(|waiter| waiter.notify.notify_one());
            }
            !gone
        });
    }

    fn subscribe(&self, partition: PartitionKey, waiter: &Arc<Waiter>) {
        lock(&self.partitions.entry(partition).or_default()).waiters.push(Arc::clone(waiter));
    }

    fn unsubscribe(&self, partition: PartitionKey, waiter: &Arc<Waiter>) {
        if let Some(state) = self.partitions.get(&partition) {
            let mut state = lock(&state);
            state.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            state.last_wait = Some(Instant::now());
        }
    }
}

/// A standing interest in a set of partitions. Subscribe first, then read: what is appended in
/// between is then not missed.
pub struct Subscription {
    waiters: Arc<Waiters>,
    partitions: Vec<PartitionKey>,
    waiter: Arc<Waiter>,
}

impl Subscription {
    pub(super) fn new(waiters: Arc<Waiters>, partitions: Vec<PartitionKey>) -> Self {
        // Until `want` says otherwise, any byte is a reason to look again.
        let waiter = Arc::new(Waiter { wanted_bytes: AtomicI64::new(1), notify: Notify::new() });
        for partition in &partitions {
            waiters.subscribe(*partition, &waiter);
        }
        Self { waiters, partitions, waiter }
    }

    /// Ask for `bytes`, counted from now; call it before the read whose result decides whether to
    /// wait.
    pub fn want(&self, bytes: i64) {
        self.waiter.wanted_bytes.store(bytes.max(1), Ordering::Release);
    }

    /// Tells how many of the wanted bytes that read has found. What was appended between the two
    /// calls counts twice, so this can wake too early but never too late.
    pub fn have(&self, bytes: i64) {
        self.waiter.appended(bytes);
    }

    /// Resolves when the wanted bytes are there, or the end of a partition was moved by others.
    /// May wake without a reason.
    pub async fn moved(&self) {
        self.waiter.notify.notified().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for partition in &self.partitions {
            self.waiters.unsubscribe(*partition, &self.waiter);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;
    use crate::offset::Offset;

    const PARTITION: PartitionKey = PartitionKey { topic_id: 1, partition_id: 0 };

    fn end(high: i64) -> LogEnd {
        LogEnd::new(Offset::ZERO, Offset::new(high))
    }

    async fn is_woken(subscription: &Subscription) -> bool {
        timeout(Duration::from_millis(20), subscription.moved()).await.is_ok()
    }

    #[tokio::test]
    async fn wakes_when_the_wanted_bytes_are_there() {
        let waiters = Arc::new(Waiters::default());
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        subscription.want(100);
        waiters.appended(PARTITION, end(1), 60);
        assert!(!is_woken(&subscription).await);
        waiters.appended(PARTITION, end(2), 40);
        assert!(is_woken(&subscription).await);
    }

    #[tokio::test]
    async fn rows_of_others_wake_at_once_and_only_when_new() {
        let waiters = Arc::new(Waiters::default());
        waiters.observed(PARTITION, end(5));
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        subscription.want(1_000_000);
        waiters.observed(PARTITION, end(5));
        assert!(!is_woken(&subscription).await);
        waiters.observed(PARTITION, end(6));
        assert!(is_woken(&subscription).await);
        assert_eq!(waiters.end(PARTITION), Some(end(6)));
    }

    #[tokio::test]
    async fn a_stable_offset_that_moves_alone_wakes_too() {
        let waiters = Arc::new(Waiters::default());
        waiters.observed(PARTITION, LogEnd { stable: Offset::new(2), ..end(5) });
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        waiters.observed(PARTITION, LogEnd { stable: Offset::new(3), ..end(5) });
        assert!(is_woken(&subscription).await);
    }

    #[tokio::test]
    async fn the_end_never_goes_back_and_a_dropped_subscription_leaves_no_waiter() {
        let waiters = Arc::new(Waiters::default());
        waiters.observed(PARTITION, end(5));
        waiters.appended(PARTITION, end(9), 1);
        waiters.observed(PARTITION, end(7));
        assert_eq!(waiters.end(PARTITION), Some(end(9)));
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        assert_eq!(waiters.watched(), vec![PARTITION]);
        drop(subscription);
        assert!(lock(&waiters.partitions.get(&PARTITION).unwrap()).waiters.is_empty());
    }
}
