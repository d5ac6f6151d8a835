//! Small appends in one statement, where a transaction with COPY takes five round trips.
//!
//! The offsets are given out before the lock is held, from what the gateway remembers of the end of
//! each partition. The statement takes the locks, compares, and writes the partitions whose end is
//! where it was expected; that is always so while no other gateway or pgQueue client appends to them.

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::{PgConnection, Row as _};

use super::{
    batcher::Work,
    transaction::{Locked, Placed, place},
};
use crate::{
    error::StoreError,
    log::{Log, statements::Statement},
    record::{Placement, Row, RowMaker},
};

/// More rows are quicker by COPY.
const MAX_ROWS: i32 = 128;
const MAX_BYTES: usize = 256 * 1024;

/// Writes all partitions of `work`, which is sorted, if they are small and well known: `None`: they
/// are not. Within it `None` for a partition whose lock was not free, or that somebody else has changed.
///
/// # Errors
/// Nobody knows whether it was written.
pub(super) async fn insert(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
) -> Result<Option<Vec<Option<Placed>>>, StoreError> {
    if !is_small(work) || !work.iter().all(is_known) {
        return Ok(None);
    }
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    let mut placed = Vec::with_capacity(work.len());
    let mut columns = Columns::default();
    let mut rows = RowMaker::new(log.db.config().append.payload_compression);
    for (item, number) in work.iter_mut().zip(1..) {
        let expected = Locked {
            partition_count: i32::MAX, // the statement sees to that
            next_seq: item.memory.next_seq,
            log_start_seq: 1,
            max_timestamp: item.memory.max_timestamp,
            now_ms,
        };
        let part = place(log, connection, item, &expected).await?;
        for (pending, first_seq) in item.pending.iter().zip(&part.first_seqs) {
            let Some(first_seq) = *first_seq else { continue };
            let at = Placement { partition: item.partition, first_seq, log_append_time: None };
            rows.each_row(&pending.append.batch, at, &mut item.memory.max_timestamp, |row| columns.push(number, row));
        }
        placed.push(Some(part));
    }
    let answer = columns.bind(log, work).fetch_all(connection).await?;
    let mut log_starts = vec![None; work.len()];
    for row in answer {
        let (number, log_start_seq, is_written): (i32, i64, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if let Some(log_start) = log_starts.get_mut(number as usize - 1) {
            *log_start = Some((log_start_seq, is_written));
        }
    }
    for ((item, part), log_start) in work.iter_mut().zip(&mut placed).zip(log_starts) {
        match (log_start, part.as_mut()) {
            (Some((log_start_seq, true)), Some(part)) => part.set_log_start(log_start_seq),
            _ => {
                item.memory.forget();
                *part = None;
            }
        }
    }
    Ok(Some(placed))
}

fn is_small(work: &[Work]) -> bool {
    let (mut rows, mut bytes) = (0_i32, 0);
    for pending in work.iter().flat_map(|item| &item.pending) {
        rows = rows.saturating_add(pending.append.batch.header.records_count);
        bytes += pending.append.batch.records.len();
    }
    rows <= MAX_ROWS && bytes <= MAX_BYTES
}

/// Whether the end of the partition and the last batches of its producers are remembered, and the
/// time at which Postgres writes does not matter.
fn is_known(item: &Work) -> bool {
    let memory = &item.memory;
    let knows = |id: i64| id < 0 || memory.producers.knows(id);
    memory.next_seq > 0
        && !memory.is_suspect
        && item.pending.iter().all(|p| !p.append.log_append_time && knows(p.append.batch.header.producer_id))
}

/// Rows as arrays, one for each column.
#[derive(Default)]
struct Columns {
    /// Which partition of the statement, from 1.
    part: Vec<i32>,
    seq: Vec<i64>,
    routing_key: Vec<String>,
    payload: Vec<Vec<u8>>,
    payload_compression: Vec<i16>,
    headers: Vec<Option<String>>,
    key: Vec<Option<Vec<u8>>>,
    flags: Vec<Option<i16>>,
    timestamp: Vec<Option<i64>>,
    max_timestamp: Vec<Option<i64>>,
    producer_id: Vec<Option<i64>>,
    producer_epoch: Vec<Option<i16>>,
    base_sequence: Vec<Option<i32>>,
    batch_records: Vec<Option<i32>>,
}

impl Columns {
    fn push(&mut self, part: i32, row: &Row<'_>) {
        self.part.push(part);
        self.seq.push(row.seq);
        self.routing_key.push(row.routing_key.to_owned());
        self.payload.push(row.payload.to_vec());
        self.payload_compression.push(row.payload_compression);
        self.headers.push(row.headers.map(str::to_owned));
        self.key.push(row.key.map(<[u8]>::to_vec));
        self.flags.push(row.flags);
        self.timestamp.push(row.timestamp);
        self.max_timestamp.push(row.max_timestamp);
        self.producer_id.push(row.batch.map(|batch| batch.producer_id));
        self.producer_epoch.push(row.batch.map(|batch| batch.producer_epoch));
        self.base_sequence.push(row.batch.map(|batch| batch.base_sequence));
        self.batch_records.push(row.batch.map(|batch| batch.records));
    }

    fn bind(self, log: &Log, work: &[Work]) -> Statement<'static> {
        log.state
            .statements
            .insert_rows()
            .bind(work.iter().map(|item| item.partition.topic_id).collect::<Vec<i64>>())
            .bind(work.iter().map(|item| item.partition.partition_id).collect::<Vec<i32>>())
            .bind(work.iter().map(|item| item.partition.lock_key()).collect::<Vec<i64>>())
            .bind(work.iter().map(|item| item.memory.next_seq).collect::<Vec<i64>>())
            .bind(self.part)
            .bind(self.seq)
            .bind(self.routing_key)
            .bind(self.payload)
            .bind(self.payload_compression)
            .bind(self.headers)
            .bind(self.key)
            .bind(self.flags)
            .bind(self.timestamp)
            .bind(self.max_timestamp)
            .bind(self.producer_id)
            .bind(self.producer_epoch)
            .bind(self.base_sequence)
            .bind(self.batch_records)
    }
}
