//! Packing rows into record batches.

use bytes::{Bytes, BytesMut};
use wire::batch::{BatchBuilder, HEADER_LEN, TimestampType};

use crate::{offset::Offset, record::RecordRow};

/// How much one read may return.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimit {
    /// Bytes of the record batches.
    pub max_bytes: usize,
    /// The first record comes even if it is larger (KIP-74: a consumer must get past it).
    pub at_least_one: bool,
}

/// Records that follow each other, in whole batches.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) records: Bytes,
    /// `None`: there are none.
    pub(super) first_offset: Option<Offset>,
    /// After the last record; 0 if there is none.
    pub(super) next_offset: Offset,
}

/// Packs records into as few batches as their timestamp types allow.
pub(super) struct RangeBuilder {
    leader_epoch: i32,
    limit: ReadLimit,
    finished: BytesMut,
    open: Option<(TimestampType, BatchBuilder)>,
    pub(super) rows: usize,
    first_offset: Option<Offset>,
    pub(super) next_offset: Offset,
}

impl RangeBuilder {
    pub(super) fn new(leader_epoch: i32, limit: ReadLimit) -> Self {
        Self {
            leader_epoch,
            limit,
            finished: BytesMut::new(),
            open: None,
            rows: 0,
            first_offset: None,
            next_offset: Offset::ZERO,
        }
    }

    /// `false`: there is no room for it, and it is left out.
    pub(super) fn push(&mut self, record: RecordRow<'_>) -> bool {
        let offset = record.seq.offset();
        self.first_offset.get_or_insert(offset);
        let timestamp_type =
            if record.log_append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        if self.open.as_ref().is_some_and(|(open_type, _)| *open_type != timestamp_type) {
            self.close();
        }
        if !self.has_room(&record, timestamp_type) {
            return false;
        }
        if self.try_push(&record, timestamp_type).is_err() {
            // Full, or a LogAppendTime batch whose one timestamp is another. A new batch takes it.
            self.close();
            let _ = self.try_push(&record, timestamp_type);
        }
        self.next_offset = offset.next();
        self.rows += 1;
        true
    }

    pub(super) fn size(&self) -> usize {
        self.finished.len() + self.open.as_ref().map_or(0, |(_, batch)| batch.encoded_size())
    }

    /// Bytes of a record on average.
    pub(super) fn row_bytes(&self) -> Option<usize> {
        self.size().checked_div(self.rows).map(|bytes| bytes.max(1))
    }

    /// The batch that is open, or a new one that starts at `offset`.
    fn open(&mut self, offset: Offset, timestamp_type: TimestampType) -> &mut BatchBuilder {
        let leader_epoch = self.leader_epoch;
        let new = || (timestamp_type, BatchBuilder::new(offset.get(), leader_epoch, timestamp_type));
        &mut self.open.get_or_insert_with(new).1
    }

    fn has_room(&mut self, record: &RecordRow<'_>, timestamp_type: TimestampType) -> bool {
        let offset = record.seq.offset();
        let limit = self.limit;
        let finished = self.finished.len();
        let batch = self.open(offset, timestamp_type);
        if limit.at_least_one && finished == 0 && batch.is_empty() {
            return true;
        }
        // A record with an append time of its own needs a batch of its own.
        let own_batch = timestamp_type == TimestampType::LogAppendTime && !batch.is_empty();
        let value = record.value.as_ref().map(|value| value.as_slice());
        let size = batch.encoded_size_with(offset.get(), record.timestamp, record.key, value, header_pairs(record));
        finished + size + if own_batch { HEADER_LEN } else { 0 } <= limit.max_bytes
    }

    fn try_push(
        &mut self,
        record: &RecordRow<'_>,
        timestamp_type: TimestampType,
    ) -> Result<(), wire::batch::BatchFull> {
        let offset = record.seq.offset();
        let value = record.value.as_ref().map(|value| value.as_slice());
        let batch = self.open(offset, timestamp_type);
        batch.push(offset.get(), record.timestamp, record.key, value, header_pairs(record))
    }

    fn close(&mut self) {
        if let Some((_, batch)) = self.open.take() {
            self.finished.extend_from_slice(&batch.finish());
        }
    }

    pub(super) fn finish(mut self) -> Range {
        let records = match self.open.take() {
            Some((_, batch)) if self.finished.is_empty() => batch.finish(),
            Some((_, batch)) => {
                self.finished.extend_from_slice(&batch.finish());
                self.finished.freeze()
            }
            None => self.finished.freeze(),
        };
        Range { records, first_offset: self.first_offset, next_offset: self.next_offset }
    }
}

fn header_pairs<'r>(record: &'r RecordRow<'_>) -> impl ExactSizeIterator<Item = (&'r [u8], Option<&'r [u8]>)> + Clone {
    record.headers.iter().map(|header| (header.key.as_slice(), header.value.as_deref()))
}
