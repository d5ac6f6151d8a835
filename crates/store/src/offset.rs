//! Positions in a partition, as Kafka and pgQueue count them (storage.md D1).

/// A Kafka offset. The first record of a partition has 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i64);

/// pgQueue's `enqueue_seq`. The first row of a partition has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(i64);

/// The record of offset n is the row of seq n + 1.
const FIRST_SEQ: i64 = 1;

impl Offset {
    pub const ZERO: Offset = Offset(0);

    /// Any number that a client may send; Kafka's answers use −1 for "unknown".
    #[must_use]
    pub const fn new(offset: i64) -> Offset {
        Offset(offset)
    }

    /// As on the wire.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The row of the record with this offset.
    #[must_use]
    pub const fn seq(self) -> Seq {
        Seq(self.0.saturating_add(FIRST_SEQ))
    }

    /// So many records further.
    #[must_use]
    pub const fn plus(self, records: i64) -> Offset {
        Offset(self.0.saturating_add(records))
    }

    /// The offset after this one.
    #[must_use]
    pub const fn next(self) -> Offset {
        self.plus(1)
    }
}

impl Seq {
    /// As in the column `enqueue_seq`.
    #[must_use]
    pub const fn new(seq: i64) -> Seq {
        Seq(seq)
    }

    /// As in the column `enqueue_seq`.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The offset of this row's record.
    #[must_use]
    pub const fn offset(self) -> Offset {
        Offset(self.0.saturating_sub(FIRST_SEQ))
    }

    /// So many rows further; a negative number goes back.
    #[must_use]
    pub const fn plus(self, rows: i64) -> Seq {
        Seq(self.0.saturating_add(rows))
    }

    /// The seq after this one.
    #[must_use]
    pub const fn next(self) -> Seq {
        self.plus(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_and_its_row_are_one_apart() {
        assert_eq!(Offset::new(0).seq(), Seq::new(1));
        assert_eq!(Seq::new(7).offset(), Offset::new(6));
        assert_eq!(Offset::new(5).seq().offset(), Offset::new(5));
        assert_eq!(Offset::new(i64::MAX).seq(), Seq::new(i64::MAX), "no client's offset overflows");
    }
}
