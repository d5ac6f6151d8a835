//! Idempotent producers: which batch follows, which repeats, which is refused (KIP-98; the rules
//! are those of Kafka's `ProducerAppendInfo.java` and `ProducerStateEntry.java`).

use std::collections::{HashMap, VecDeque};

use wire::batch::BatchHeader;

use crate::offset::Offset;

/// Kafka remembers this many batches of a producer (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
pub(super) const BATCHES_TO_RETAIN: usize = 5;

/// Producers remembered per partition. One that falls out is read from the index again when it
/// comes back, so this only bounds memory.
const PRODUCERS_TO_RETAIN: usize = 4096;

/// What a producer's batch left behind: enough to recognise a repeat and to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredBatch {
    pub(super) base_sequence: i32,
    pub(super) record_count: i32,
    pub(super) base_offset: Offset,
    /// Milliseconds, if known: what a LogAppendTime topic answers again for a repeat.
    pub(super) append_time: Option<i64>,
}

impl StoredBatch {
    pub(super) fn of(batch: &BatchHeader, base_offset: Offset, append_time: Option<i64>) -> Self {
        Self { base_sequence: batch.base_sequence, record_count: batch.records_count, base_offset, append_time }
    }

    fn last_sequence(&self) -> i32 {
        advance(self.base_sequence, self.record_count - 1)
    }
}

/// The newest epoch of a producer on one partition and its last batches, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProducerEntry {
    pub(super) epoch: i16,
    next_sequence: i32,
    batches: VecDeque<StoredBatch>,
}

impl ProducerEntry {
    pub(super) fn new(epoch: i16, newest: StoredBatch) -> Self {
        Self { epoch, next_sequence: advance(newest.last_sequence(), 1), batches: VecDeque::from([newest]) }
    }

    pub(super) fn push_older(&mut self, stored: StoredBatch) {
        self.batches.push_front(stored);
    }

    fn push(&mut self, stored: StoredBatch) {
        if self.batches.len() == BATCHES_TO_RETAIN {
            self.batches.pop_front();
        }
        self.next_sequence = advance(stored.last_sequence(), 1);
        self.batches.push_back(stored);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SequenceVerdict {
    Append,
    /// A repeat of a batch that is stored: answered with its first offset, error 0.
    Duplicate(StoredBatch),
    OutOfOrder,
    StaleEpoch,
}

/// The producers of one partition. A producer that is absent is unknown, not new:
/// the caller looks it up in the message table before it asks for a verdict.
#[derive(Debug, Default)]
pub(super) struct Producers {
    entries: HashMap<i64, Option<ProducerEntry>>,
    /// Epoch and base sequence of a producer's batch that was refused. While the table has no batch of
    /// the producer, that one must come first: what was sent behind it would pass for a beginning, and
    /// a repeat of it would then be out of order.
    refused: HashMap<i64, (i16, i32)>,
}

impl Producers {
    pub(super) fn knows(&self, producer_id: i64) -> bool {
        self.entries.contains_key(&producer_id)
    }

    /// Takes what the message table says of a producer; `None` if it has no batch there.
    pub(super) fn learn(&mut self, producer_id: i64, entry: Option<ProducerEntry>) {
        let awaited = || {
            let (epoch, next_sequence) = *self.refused.get(&producer_id)?;
            Some(ProducerEntry { epoch, next_sequence, batches: VecDeque::new() })
        };
        self.entries.insert(producer_id, entry.or_else(awaited));
    }

    /// A batch is not stored. Call it for those of one producer in their order.
    pub(super) fn refused(&mut self, batch: &BatchHeader) {
        if batch.producer_id < 0 {
            return;
        }
        let first = (batch.producer_epoch, batch.base_sequence);
        let known = self.refused.entry(batch.producer_id).or_insert(first);
        if known.0 < batch.producer_epoch {
            *known = first;
        }
    }

    /// Bounds memory. Not to be called while a transaction is open: what it has not committed yet
    /// is known only here.
    pub(super) fn trim(&mut self) {
        if self.entries.len() > PRODUCERS_TO_RETAIN {
            self.entries.clear();
        }
        if self.refused.len() > PRODUCERS_TO_RETAIN {
            self.refused.clear();
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.entries.clear();
    }

    pub(super) fn check(&self, batch: &BatchHeader) -> SequenceVerdict {
        let Some(Some(entry)) = self.entries.get(&batch.producer_id) else {
            // Kafka accepts any first sequence of a producer that it knows nothing of: its earlier
            // records may have been removed by retention.
            return SequenceVerdict::Append;
        };
        if batch.producer_epoch < entry.epoch {
            return SequenceVerdict::StaleEpoch;
        }
        if batch.producer_epoch > entry.epoch {
            return if batch.base_sequence == 0 { SequenceVerdict::Append } else { SequenceVerdict::OutOfOrder };
        }
        let repeat = entry
            .batches
            .iter()
            .find(|stored| stored.base_sequence == batch.base_sequence && stored.record_count == batch.records_count);
        if let Some(stored) = repeat {
            return SequenceVerdict::Duplicate(*stored);
        }
        match batch.base_sequence == entry.next_sequence {
            true => SequenceVerdict::Append,
            false => SequenceVerdict::OutOfOrder,
        }
    }

    pub(super) fn record(&mut self, batch: &BatchHeader, stored: StoredBatch) {
        self.refused.remove(&batch.producer_id);
        let entry = self.entries.entry(batch.producer_id).or_default();
        match entry {
            Some(known) if known.epoch == batch.producer_epoch => known.push(stored),
            _ => *entry = Some(ProducerEntry::new(batch.producer_epoch, stored)),
        }
    }
}

/// Sequences run from 0 to 2147483647 and wrap to 0 (`DefaultRecordBatch.incrementSequence`).
fn advance(sequence: i32, by: i32) -> i32 {
    ((i64::from(sequence) + i64::from(by)) % (i64::from(i32::MAX) + 1)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(producer_epoch: i16, base_sequence: i32, record_count: i32) -> BatchHeader {
        BatchHeader {
            producer_id: 7,
            producer_epoch,
            base_sequence,
            records_count: record_count,
            ..BatchHeader::default()
        }
    }

    /// Producer 7 in epoch 3 with the given (base sequence, count) batches stored.
    fn with_batches(batches: &[(i32, i32)]) -> Producers {
        let mut producers = Producers::default();
        let mut offset = 100;
        for &(base_sequence, record_count) in batches {
            producers.record(
                &header(3, base_sequence, record_count),
                StoredBatch { base_sequence, record_count, base_offset: Offset::new(offset), append_time: None },
            );
            offset += i64::from(record_count);
        }
        producers
    }

    #[test]
    fn verdicts() {
        use SequenceVerdict::*;
        let stored = |base_sequence, record_count, base_offset| {
            Duplicate(StoredBatch {
                base_sequence,
                record_count,
                base_offset: Offset::new(base_offset),
                append_time: None,
            })
        };
        let cases = [
            // stored batches, (epoch, base sequence, count), verdict
            (vec![], (0, 17, 1), Append),
            (vec![(0, 10)], (3, 10, 5), Append),
            (vec![(0, 10)], (3, 0, 10), stored(0, 10, 100)),
            (vec![(0, 10)], (3, 0, 9), OutOfOrder),
            (vec![(0, 10)], (3, 11, 1), OutOfOrder),
            (vec![(0, 10)], (3, 9, 2), OutOfOrder),
            (vec![(0, 10)], (2, 10, 1), StaleEpoch),
            (vec![(0, 10)], (4, 0, 1), Append),
            (vec![(0, 10)], (4, 10, 1), OutOfOrder),
            // The fifth-last is still known, the sixth-last is not.
            (vec![(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)], (3, 0, 1), stored(0, 1, 100)),
            (vec![(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)], (3, 0, 1), OutOfOrder),
            (vec![(i32::MAX, 1)], (3, 0, 1), Append),
            (vec![(i32::MAX - 1, 3)], (3, 1, 1), Append),
            (vec![(i32::MAX - 1, 3)], (3, i32::MAX, 1), OutOfOrder),
        ];
        for (batches, (epoch, sequence, count), expected) in cases {
            let verdict = with_batches(&batches).check(&header(epoch, sequence, count));
            assert_eq!(verdict, expected, "{batches:?} then epoch {epoch} sequence {sequence} count {count}");
        }
    }

    #[test]
    fn behind_a_refused_batch_comes_that_batch_or_a_new_epoch() {
        use SequenceVerdict::*;
        let mut producers = Producers::default();
        for (epoch, sequence) in [(3, 0), (3, 10), (4, 0), (4, 5)] {
            producers.refused(&header(epoch, sequence, 5));
        }
        for (epoch, sequence, verdict) in [(4, 5, OutOfOrder), (5, 1, OutOfOrder), (4, 0, Append), (5, 0, Append)] {
            producers.forget_all();
            producers.learn(7, None);
            assert_eq!(producers.check(&header(epoch, sequence, 5)), verdict, "epoch {epoch} sequence {sequence}");
        }
        let stored = StoredBatch { base_sequence: 20, record_count: 1, base_offset: Offset::ZERO, append_time: None };
        producers.learn(7, Some(ProducerEntry::new(4, stored)));
        assert_eq!(producers.check(&header(4, 21, 5)), Append, "what the table says counts");
    }

    #[test]
    fn a_new_epoch_forgets_the_batches_of_the_old_one() {
        let mut producers = with_batches(&[(0, 10)]);
        producers.record(
            &header(4, 0, 1),
            StoredBatch { base_sequence: 0, record_count: 1, base_offset: Offset::new(110), append_time: None },
        );
        assert_eq!(producers.check(&header(4, 0, 10)), SequenceVerdict::OutOfOrder);
        assert_eq!(producers.check(&header(3, 10, 1)), SequenceVerdict::StaleEpoch);
    }
}
