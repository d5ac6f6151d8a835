//! What this gateway knows of the end of each partition, and who waits for it to move.
//!
//! The knowledge is never ahead of what is committed, only behind: other gateways and pgQueue's
//! clients append too. [`crate::log::watch`] and [`crate::log::hints`] bring it up to date for partitions that
//! somebody waits for; where the exact end matters, [`Store::partition_bounds`](crate::Store::partition_bounds)
//! asks Postgres.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use dashmap::DashMap;
use tokio::sync::Notify;

use crate::{log::watch, partition::PartitionKey};

/// Start and end of a partition's log, as Kafka offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub log_start_offset: i64,
    /// Offset that the next record gets.
    pub high_watermark: i64,
}

#[derive(Default)]
struct Tail {
    bounds: Option<Bounds>,
    waiters: Vec<Arc<Waiter>>,
    last_wait: Option<Instant>,
    /// When somebody last had read everything.
    last_at_end: Option<Instant>,
    /// What a record weighed on average when it was last read; 0 before that.
    row_bytes: usize,
}

impl Tail {
    fn is_watched(&self) -> bool {
        !self.waiters.is_empty() || self.last_wait.is_some_and(|at| at.elapsed() < watch::LINGER)
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
pub(crate) struct Waiters {
    tails: DashMap<PartitionKey, Mutex<Tail>>,
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiters {
    /// An append of this gateway was committed; `high_watermark` is the new end.
    pub(crate) fn appended(&self, partition: PartitionKey, high_watermark: i64, bytes: usize) {
        let Some(tail) = self.tails.get(&partition) else { return };
        let mut tail = lock(&tail);
        if let Some(bounds) = &mut tail.bounds {
            bounds.high_watermark = bounds.high_watermark.max(high_watermark);
        }
        for waiter in &tail.waiters {
            waiter.appended(bytes as i64);
        }
    }

    /// Takes what Postgres says. Rows that somebody else appended wake every waiter, since their
    /// size is not known here.
    pub(crate) fn observed(&self, partition: PartitionKey, seen: Bounds) {
        let tail = self.tails.entry(partition).or_default();
        let mut tail = lock(&tail);
        let moved = tail.bounds.is_none_or(|known| seen.high_watermark > known.high_watermark);
        let known = tail.bounds.get_or_insert(seen);
        *known = Bounds {
            log_start_offset: known.log_start_offset.max(seen.log_start_offset),
            high_watermark: known.high_watermark.max(seen.high_watermark),
        };
        if moved {
            for waiter in &tail.waiters {
                waiter.appended(i64::from(i32::MAX));
            }
        }
    }

    pub(crate) fn bounds(&self, partition: PartitionKey) -> Option<Bounds> {
        self.tails.get(&partition).and_then(|tail| lock(&tail).bounds)
    }

    /// Partitions that somebody waits for or has just waited for: consumers come back at once.
    pub(crate) fn watched(&self) -> Vec<PartitionKey> {
        self.tails.iter().filter(|tail| lock(tail).is_watched()).map(|tail| *tail.key()).collect()
    }

    pub(crate) fn is_watched(&self, partition: PartitionKey) -> bool {
        self.tails.get(&partition).is_some_and(|tail| lock(&tail).is_watched())
    }

    /// Somebody has read everything; the next append is what he reads next.
    pub(crate) fn note_reader_at_end(&self, partition: PartitionKey) {
        if let Some(tail) = self.tails.get(&partition) {
            lock(&tail).last_at_end = Some(Instant::now());
        }
    }

    pub(crate) fn has_reader_at_end(&self, partition: PartitionKey) -> bool {
        let is_recent = |at: Instant| at.elapsed() < watch::LINGER;
        self.tails.get(&partition).is_some_and(|tail| lock(&tail).last_at_end.is_some_and(is_recent))
    }

    /// Bytes of a record of this partition, from the last read or as a guess.
    pub(crate) fn row_bytes(&self, partition: PartitionKey) -> usize {
        const UNKNOWN: usize = 1024;
        let known = self.tails.get(&partition).map_or(0, |tail| lock(&tail).row_bytes);
        if known == 0 { UNKNOWN } else { known }
    }

    pub(crate) fn note_row_bytes(&self, partition: PartitionKey, row_bytes: usize) {
        if let Some(tail) = self.tails.get(&partition) {
            lock(&tail).row_bytes = row_bytes;
        }
    }

    /// Drops what is known of a deleted topic and wakes who waits for it.
    pub(crate) fn forget_topic(&self, topic_id: i64) {
        self.tails.retain(|partition, tail| {
            let gone = partition.topic_id == topic_id;
            if gone {
                lock(tail).waiters.iter().for_each(|waiter| waiter.notify.notify_one());
            }
            !gone
        });
    }

    fn subscribe(&self, partition: PartitionKey, waiter: &Arc<Waiter>) {
        lock(&self.tails.entry(partition).or_default()).waiters.push(Arc::clone(waiter));
    }

    fn unsubscribe(&self, partition: PartitionKey, waiter: &Arc<Waiter>) {
        if let Some(tail) = self.tails.get(&partition) {
            let mut tail = lock(&tail);
            tail.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            tail.last_wait = Some(Instant::now());
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
    pub(crate) fn new(waiters: Arc<Waiters>, partitions: Vec<PartitionKey>) -> Self {
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

    /// Resolves when the wanted bytes are there, or somebody else moved the end of a partition.
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
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const PARTITION: PartitionKey = PartitionKey { topic_id: 1, partition_id: 0 };

    fn bounds(high_watermark: i64) -> Bounds {
        Bounds { log_start_offset: 0, high_watermark }
    }

    async fn is_woken(subscription: &Subscription) -> bool {
        timeout(Duration::from_millis(20), subscription.moved()).await.is_ok()
    }

    #[tokio::test]
    async fn wakes_when_the_wanted_bytes_are_there() {
        let waiters = Arc::new(Waiters::default());
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        subscription.want(100);
        waiters.appended(PARTITION, 1, 60);
        assert!(!is_woken(&subscription).await);
        waiters.appended(PARTITION, 2, 40);
        assert!(is_woken(&subscription).await);
    }

    #[tokio::test]
    async fn rows_of_others_wake_at_once_and_only_when_new() {
        let waiters = Arc::new(Waiters::default());
        waiters.observed(PARTITION, bounds(5));
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        subscription.want(1_000_000);
        waiters.observed(PARTITION, bounds(5));
        assert!(!is_woken(&subscription).await);
        waiters.observed(PARTITION, bounds(6));
        assert!(is_woken(&subscription).await);
        assert_eq!(waiters.bounds(PARTITION), Some(bounds(6)));
    }

    #[tokio::test]
    async fn the_end_never_goes_back_and_a_dropped_subscription_leaves_no_waiter() {
        let waiters = Arc::new(Waiters::default());
        waiters.observed(PARTITION, bounds(5));
        waiters.appended(PARTITION, 9, 1);
        waiters.observed(PARTITION, bounds(7));
        assert_eq!(waiters.bounds(PARTITION), Some(bounds(9)));
        let subscription = Subscription::new(Arc::clone(&waiters), vec![PARTITION]);
        assert_eq!(waiters.watched(), vec![PARTITION]);
        drop(subscription);
        assert!(lock(&waiters.tails.get(&PARTITION).unwrap()).waiters.is_empty());
    }
}
