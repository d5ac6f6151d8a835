use crate::offset::Offset;

/// Where a partition's log starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Of the first record that may be read (Kafka: log start offset).
    pub start: Offset,
    /// Before the first record of an open transaction (Kafka: last stable offset). There are no transactions
    /// yet, so it equals `high`.
    pub stable: Offset,
    /// That the next record gets (Kafka: high watermark).
    pub high: Offset,
}

impl LogEnd {
    /// Of a log without open transactions.
    #[must_use]
    pub const fn new(start: Offset, high: Offset) -> LogEnd {
        LogEnd { start, stable: high, high }
    }

    /// What is further in either: neither end nor start ever goes back.
    pub(super) fn furthest(self, other: LogEnd) -> LogEnd {
        LogEnd {
            start: self.start.max(other.start),
            stable: self.stable.max(other.stable),
            high: self.high.max(other.high),
        }
    }

    /// Whether a reader of either isolation level has more to read than at `before`.
    pub(super) fn is_past(self, before: LogEnd) -> bool {
        self.high > before.high || self.stable > before.stable
    }

    #[must_use]
    pub fn contains(self, offset: Offset) -> bool {
        (self.start..=self.high).contains(&offset)
    }
}
