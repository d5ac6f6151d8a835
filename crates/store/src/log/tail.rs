//! The newest records of partitions that somebody waits for, as record batches: what one append has
//! brought is encoded once and read by every consumer at the tail without asking Postgres
//! (storage.md D13).
//!
//! An entry is a run of committed records, exactly as a read of their rows would return it. Entries
//! need not touch each other: a reader takes the one that starts at its offset and those that follow
//! it without a gap, and asks Postgres where there is none. So rows of other gateways and of
//! pgQueue's clients leave holes and do no harm.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};

use super::range::Range;
use crate::{offset::Offset, partition::PartitionKey};

/// Bytes of the batches in one entry, about: a reader with less room left asks Postgres.
pub(super) const ENTRY_BYTES: usize = 64 * 1024;

/// What an entry costs beside its bytes.
const OVERHEAD: usize = 160;

pub(super) struct TailCache {
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By first offset.
    partitions: HashMap<PartitionKey, BTreeMap<Offset, Entry>>,
    /// All entries, the oldest first; of some the partition may be forgotten.
    order: VecDeque<(PartitionKey, Offset)>,
    bytes: usize,
}

struct Entry {
    next_offset: Offset,
    records: Bytes,
}

impl TailCache {
    /// `max_bytes` for all partitions together; 0 keeps nothing.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: Mutex::default() }
    }

    /// Keeps records that are committed; each only once, as an offset is given only once.
    pub(super) fn insert(&self, partition: PartitionKey, ranges: Vec<Range>) {
        let mut state = self.lock();
        for range in ranges {
            let Some(first_offset) = range.first_offset else { continue };
            let weight = range.records.len() + OVERHEAD;
            if weight > self.max_bytes {
                continue;
            }
            while state.bytes + weight > self.max_bytes && state.evict() {}
            let entry = Entry { next_offset: range.next_offset, records: range.records };
            state.partitions.entry(partition).or_default().insert(first_offset, entry);
            state.order.push_back((partition, first_offset));
            state.bytes += weight;
        }
    }

    /// Whole entries from `offset` on, as many as fit into `max_bytes`; `None`: not even the first.
    pub(super) fn read(&self, partition: PartitionKey, offset: Offset, max_bytes: usize) -> Option<Range> {
        let state = self.lock();
        let entries = state.partitions.get(&partition)?;
        let mut next_offset = offset;
        let mut size = 0;
        let mut found = Vec::new();
        while let Some(entry) = entries.get(&next_offset).filter(|entry| size + entry.records.len() <= max_bytes) {
            size += entry.records.len();
            next_offset = entry.next_offset;
            found.push(entry.records.clone());
        }
        drop(state);
        let records = match found.as_slice() {
            [] => return None,
            [one] => one.clone(),
            many => {
                let mut records = BytesMut::with_capacity(size);
                many.iter().for_each(|bytes| records.extend_from_slice(bytes));
                records.freeze()
            }
        };
        Some(Range { records, first_offset: Some(offset), next_offset })
    }

    pub(super) fn forget_topic(&self, topic_id: i64) {
        let mut state = self.lock();
        let gone: Vec<PartitionKey> =
            state.partitions.keys().filter(|partition| partition.topic_id == topic_id).copied().collect();
        for partition in gone {
            let entries = state.partitions.remove(&partition).unwrap_or_default();
            state.bytes -= entries.values().map(weight).sum::<usize>();
        }
        state.order.retain(|(partition, _)| partition.topic_id != topic_id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed but by a panic in the allocator.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// `false`: there is nothing left.
    fn evict(&mut self) -> bool {
        let Some((partition, first_offset)) = self.order.pop_front() else { return false };
        let Some(entries) = self.partitions.get_mut(&partition) else { return true };
        if let Some(entry) = entries.remove(&first_offset) {
            self.bytes -= weight(&entry);
        }
        if entries.is_empty() {
            self.partitions.remove(&partition);
        }
        true
    }
}

fn weight(entry: &Entry) -> usize {
    entry.records.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITION: PartitionKey = PartitionKey { topic_id: 1, partition_id: 0 };

    fn range(first_offset: i64, next_offset: i64, len: usize) -> Range {
        let records = vec![first_offset as u8; len].into();
        Range { records, first_offset: Some(Offset::new(first_offset)), next_offset: Offset::new(next_offset) }
    }

    fn read(cache: &TailCache, offset: i64, max_bytes: usize) -> Option<(usize, i64)> {
        let range = cache.read(PARTITION, Offset::new(offset), max_bytes);
        range.map(|range| (range.records.len(), range.next_offset.get()))
    }

    #[test]
    fn what_follows_without_a_gap_is_read_as_far_as_it_fits() {
        let cache = TailCache::new(10_000);
        cache.insert(PARTITION, vec![range(0, 3, 10), range(3, 5, 20)]);
        cache.insert(PARTITION, vec![range(7, 8, 30)]);
        assert_eq!(read(&cache, 0, 1000), Some((30, 5)));
        assert_eq!(read(&cache, 0, 29), Some((10, 3)));
        assert_eq!(read(&cache, 3, 20), Some((20, 5)));
        assert_eq!(read(&cache, 7, 1000), Some((30, 8)));
        for (offset, max_bytes) in [(0, 9), (1, 1000), (5, 1000), (8, 1000)] {
            assert_eq!(read(&cache, offset, max_bytes), None, "{offset}");
        }
    }

    #[test]
    fn the_oldest_goes_first_and_a_forgotten_topic_at_once() {
        let room = 3 * (100 + OVERHEAD);
        let cache = TailCache::new(room);
        let other = PartitionKey { topic_id: 2, partition_id: 0 };
        for offset in 0..5 {
            cache.insert(PARTITION, vec![range(offset, offset + 1, 100)]);
        }
        cache.insert(other, vec![range(0, 1, 100)]);
        assert_eq!([0, 1, 2].map(|offset| read(&cache, offset, 1000)), [None; 3]);
        assert_eq!(read(&cache, 3, 1000), Some((200, 5)));
        cache.insert(PARTITION, vec![range(9, 10, room)]);
        assert_eq!(read(&cache, 9, room), None, "it alone is too much");
        assert_eq!(read(&cache, 3, 1000), Some((200, 5)), "and drives nothing out");
        cache.forget_topic(1);
        assert_eq!(read(&cache, 3, 1000), None);
        assert_eq!(cache.lock().bytes, 100 + OVERHEAD);
        assert!(cache.read(other, Offset::ZERO, 1000).is_some());
        assert_eq!(cache.lock().order.len(), 1);
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let cache = TailCache::new(0);
        cache.insert(PARTITION, vec![range(0, 1, 1)]);
        assert_eq!(read(&cache, 0, 1000), None);
    }
}
