//! What the gateway remembers of a partition between two transactions; all of it can be lost.

use super::sequence::Producers;
use crate::offset::Seq;

/// The end of a partition and its producers, as the last append of this gateway left them.
#[derive(Default)]
pub(super) struct PartitionMemory {
    /// The seq that follows the last append of this gateway, if it made one. Another value
    /// under the lock means that others appended.
    pub(super) next_seq: Option<Seq>,
    /// Others appended or removed rows lately: the end is looked up before the next append.
    pub(super) is_suspect: bool,
    /// Running maximum of the record timestamps.
    pub(super) max_timestamp: i64,
    pub(super) producers: Producers,
}

impl PartitionMemory {
    /// All but the end, which the gateway never gives out twice; that is looked up before the next append.
    pub(super) fn forget(&mut self) {
        self.producers.forget_all();
        self.max_timestamp = -1;
        self.is_suspect = true;
    }

    /// Brings it in line with what the holder of the partition's lock sees; returns the seq of the next row.
    /// One that is beyond `next_seq` must be noted in the ledger: its rows are gone, but their offsets were
    /// seen, so they are not given out again.
    pub(super) fn compare(&mut self, next_seq: Seq, max_timestamp: i64) -> Seq {
        self.producers.trim();
        // A gateway that shares the partition with another writer does not guess its end.
        self.is_suspect = self.next_seq.is_some_and(|remembered| remembered != next_seq);
        self.max_timestamp = self.max_timestamp.max(max_timestamp);
        if self.is_suspect {
            self.producers.forget_all();
        }
        self.next_seq.map_or(next_seq, |remembered| remembered.max(next_seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_never_before_the_one_that_is_remembered() {
        let mut memory = PartitionMemory::default();
        assert_eq!(memory.compare(Seq::new(5), 7), Seq::new(5));
        assert!(!memory.is_suspect);
        memory.next_seq = Some(Seq::new(9));
        memory.producers.learn(1, None);
        assert_eq!(memory.compare(Seq::new(8), 3), Seq::new(9), "rows are gone");
        assert!(memory.is_suspect && !memory.producers.knows(1) && memory.max_timestamp == 7);
        assert_eq!(memory.compare(Seq::new(12), 3), Seq::new(12), "others appended");
    }
}
