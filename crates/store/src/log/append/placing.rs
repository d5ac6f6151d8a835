//! Where the batches of a partition go: which seqs they get, which are repeats, which are refused. It only
//! decides; a transaction writes what is to be written and answers when that is committed.

use std::collections::VecDeque;

use wire::batch::ProducedBatch;

use super::{
    batcher::Pending,
    sequence::{Producers, SequenceVerdict, StoredBatch},
    types::{Append, AppendError, Appended},
};
use crate::offset::{Offset, Seq};

/// What becomes of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// It is written, from this seq on.
    Write(Seq),
    /// It is stored already.
    Repeat(StoredBatch),
    OutOfOrder,
    StaleEpoch,
    UnknownPartition,
}

/// What becomes of the batches that wait for one partition.
#[derive(Debug)]
pub(super) struct Placing {
    /// One for each batch, in order.
    batches: Vec<Placed>,
    /// Of the log when they are written.
    pub(super) next_seq: Seq,
    /// Of their records.
    pub(super) bytes: usize,
}

/// What only Postgres knows of an append.
#[derive(Debug, Clone, Copy)]
pub(super) struct AppendedAt {
    pub(super) log_start: Offset,
    /// The transaction's `now()` in milliseconds, where a topic's records get it.
    pub(super) time_ms: Option<i64>,
}

impl Placing {
    /// Places batches behind each other in a log that ends at `next_seq`. `producers` must know the
    /// producer of each and takes note of what is placed. `time_ms` is when it is appended, if known.
    pub(super) fn of<'b>(
        batches: impl Iterator<Item = &'b ProducedBatch>,
        next_seq: Seq,
        producers: &mut Producers,
        time_ms: Option<i64>,
    ) -> Placing {
        let mut placing = Placing { batches: Vec::new(), next_seq, bytes: 0 };
        for batch in batches {
            let header = &batch.header;
            let is_idempotent = header.producer_id >= 0;
            let verdict = if is_idempotent { producers.check(header) } else { SequenceVerdict::Append };
            placing.batches.push(match verdict {
                SequenceVerdict::Append => Placed::Write(placing.next_seq),
                SequenceVerdict::Duplicate(stored) => Placed::Repeat(stored),
                SequenceVerdict::OutOfOrder => Placed::OutOfOrder,
                SequenceVerdict::StaleEpoch => Placed::StaleEpoch,
            });
            if verdict == SequenceVerdict::Append {
                if is_idempotent {
                    let base_offset = placing.next_seq.offset();
                    producers.record(header, StoredBatch::of(header, base_offset, time_ms));
                }
                placing.next_seq = placing.next_seq.plus(i64::from(header.records_count));
                placing.bytes += batch.records.len();
            }
        }
        placing
    }

    /// Of a partition that does not exist, whose log ends at `next_seq` all the same.
    pub(super) fn nowhere(batches: usize, next_seq: Seq) -> Placing {
        Placing { batches: vec![Placed::UnknownPartition; batches], next_seq, bytes: 0 }
    }

    /// The batches that are to be written, with their first seqs.
    pub(super) fn writes<'p>(&self, pending: &'p VecDeque<Pending>) -> impl Iterator<Item = (&'p Append, Seq)> {
        pending.iter().zip(&self.batches).filter_map(|(pending, placed)| match placed {
            Placed::Write(first_seq) => Some((&pending.append, *first_seq)),
            _ => None,
        })
    }

    /// One for each batch, when what is to be written is committed.
    pub(super) fn answers(&self, pending: &VecDeque<Pending>, at: AppendedAt) -> Vec<Result<Appended, AppendError>> {
        let answer = |(pending, placed): (&Pending, &Placed)| {
            let appended = |base_offset, time_ms: Option<i64>| Appended {
                base_offset,
                log_append_time: time_ms.filter(|_| pending.append.log_append_time),
                log_start_offset: at.log_start,
            };
            match placed {
                Placed::Write(first_seq) => Ok(appended(first_seq.offset(), at.time_ms)),
                Placed::Repeat(stored) => Ok(appended(stored.base_offset, stored.append_time)),
                Placed::OutOfOrder => Err(AppendError::OutOfOrderSequence),
                Placed::StaleEpoch => Err(AppendError::StaleProducerEpoch),
                Placed::UnknownPartition => Err(AppendError::UnknownPartition),
            }
        };
        pending.iter().zip(&self.batches).map(answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use wire::batch::{BatchBuilder, ProduceLimits, ProducerFields, TimestampType};

    use super::*;

    fn batch(producer_id: i64, base_sequence: i32, records: i64) -> ProducedBatch {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        for delta in 0..records {
            builder.push(delta, 0, None, Some(b"x"), [].into_iter()).unwrap();
        }
        let fields = ProducerFields { producer_id, producer_epoch: 0, base_sequence, ..Default::default() };
        let limits = ProduceLimits { max_batch_bytes: 1 << 20, max_decompressed_bytes: 1 << 20 };
        ProducedBatch::validate(builder.finish_as(&fields).unwrap(), limits).unwrap()
    }

    #[test]
    fn batches_follow_each_other_and_repeats_take_no_room() {
        let mut producers = Producers::default();
        producers.learn(7, None);
        let batches = [batch(7, 0, 3), batch(-1, -1, 2), batch(7, 0, 3), batch(7, 4, 1), batch(7, 3, 1)];
        let placing = Placing::of(batches.iter(), Seq::new(11), &mut producers, Some(5));
        let stored =
            StoredBatch { base_sequence: 0, record_count: 3, base_offset: Offset::new(10), append_time: Some(5) };
        let expected = [
            Placed::Write(Seq::new(11)),
            Placed::Write(Seq::new(14)),
            Placed::Repeat(stored),
            Placed::OutOfOrder,
            Placed::Write(Seq::new(16)),
        ];
        assert_eq!(placing.batches, expected);
        assert_eq!(placing.next_seq, Seq::new(17));
    }

    #[test]
    fn nothing_is_placed_where_there_is_no_partition() {
        let placing = Placing::nowhere(2, Seq::new(4));
        assert_eq!((placing.batches.as_slice(), placing.bytes), ([Placed::UnknownPartition; 2].as_slice(), 0));
    }
}
