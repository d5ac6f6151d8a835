//! What was appended, as a read of the rows would return it, for readers at the end of the log.

use std::collections::VecDeque;

use super::{batcher::Pending, transaction::Part};
use crate::{
    log::{
        range::{Range, RangeBuilder, ReadLimit},
        tail::ENTRY_BYTES,
    },
    record::{Header, RecordRow, Value},
};

impl Part {
    pub(super) fn ranges(&self, pending: &VecDeque<Pending>, leader_epoch: i32) -> Vec<Range> {
        let limit = ReadLimit { max_bytes: ENTRY_BYTES, at_least_one: true };
        let mut ranges = Vec::new();
        let mut open = RangeBuilder::new(leader_epoch, limit);
        for (append, first_seq) in self.placing.writes(pending) {
            let log_append_time = self.at.time_ms.filter(|_| append.log_append_time);
            for record in append.batch.records() {
                let row = || RecordRow {
                    seq: first_seq.plus(i64::from(record.offset_delta)),
                    timestamp: log_append_time.unwrap_or_else(|| append.batch.timestamp(&record)),
                    log_append_time: append.log_append_time,
                    key: record.key,
                    value: record.value.map(Value::Plain),
                    headers: record.headers.iter().map(Header::from).collect(),
                };
                if !open.push(row()) {
                    let full = std::mem::replace(&mut open, RangeBuilder::new(leader_epoch, limit));
                    ranges.push(full.finish());
                    open.push(row());
                }
            }
        }
        ranges.push(open.finish());
        ranges
    }
}
