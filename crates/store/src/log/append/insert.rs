//! Small appends in one statement, where a transaction with COPY takes five round trips.
//!
//! The offsets are given out before the lock is held, from what the gateway remembers of the end of
//! each partition. The statement takes the locks, compares, and writes the partitions whose end is
//! where it was expected; that is always so while no other gateway or pgQueue client appends to them.

use std::collections::HashMap;

use sqlx::{PgConnection, Row};

use super::{
    batcher::Work,
    placing::{AppendedAt, Placing},
    transaction::Part,
};
use crate::{
    error::StoreError,
    log::Log,
    offset::{Offset, Seq},
    partition::PartitionKey,
    record::{Placement, RowArrays, RowMaker},
};

/// More rows are quicker by COPY.
const MAX_ROWS: i32 = 128;
const MAX_BYTES: usize = 256 * 1024;

/// Writes all partitions of `work`, which is sorted, if they are small and well remembered; `None`: they
/// are not. Within it `None` for a partition whose lock was not free, or that others have changed.
///
/// # Errors
/// Nobody knows whether it was written.
pub(super) async fn insert(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
) -> Result<Option<Vec<Option<Part>>>, StoreError> {
    if !is_small(work) {
        return Ok(None);
    }
    let Some(expected) = work.iter().map(expected_end).collect::<Option<Vec<Seq>>>() else { return Ok(None) };
    let mut placed = Vec::with_capacity(work.len());
    let mut arrays = RowArrays::default();
    let mut rows = RowMaker::new(log.db.config().append.payload_compression);
    for (item, next_seq) in work.iter_mut().zip(&expected) {
        let batches = item.pending.iter().map(|pending| &pending.append.batch);
        let placing = Placing::of(batches, *next_seq, &mut item.memory.producers, None);
        for (append, first_seq) in placing.writes(&item.pending) {
            let placement = Placement { partition: item.partition, first_seq, log_append_time: None };
            rows.each_row(&append.batch, placement, &mut item.memory.max_timestamp, |row| arrays.push(row));
        }
        placed.push(placing);
    }
    let written = write(log, connection, work, &expected, arrays).await?;
    let part = |(item, placing): (&mut Work, Placing)| {
        let log_start = written.get(&item.partition);
        if log_start.is_none() {
            item.memory.forget();
        }
        Some(Part { placing, at: AppendedAt { log_start: *log_start?, time_ms: None } })
    };
    Ok(Some(work.iter_mut().zip(placed).map(part).collect()))
}

/// Returns the partitions that were written, with the start of their logs.
async fn write(
    log: &Log,
    connection: &mut PgConnection,
    work: &[Work],
    expected: &[Seq],
    arrays: RowArrays,
) -> Result<HashMap<PartitionKey, Offset>, StoreError> {
    let locks = log
        .state
        .statements
        .insert_rows()
        .bind(work.iter().map(|item| item.partition.topic_id).collect::<Vec<i64>>())
        .bind(work.iter().map(|item| item.partition.partition_id).collect::<Vec<i32>>())
        .bind(work.iter().map(|item| item.partition.lock_key()).collect::<Vec<i64>>())
        .bind(expected.iter().map(|seq| seq.get()).collect::<Vec<i64>>());
    let mut written = HashMap::with_capacity(work.len());
    for row in arrays.bind(locks).fetch_all(connection).await? {
        if row.try_get("is_written")? {
            let partition = PartitionKey::new(row.try_get("topic_id")?, row.try_get("partition_id")?);
            written.insert(partition, Seq::new(row.try_get("log_start_seq")?).offset());
        }
    }
    Ok(written)
}

fn is_small(work: &[Work]) -> bool {
    let (mut rows, mut bytes) = (0_i32, 0);
    for pending in work.iter().flat_map(|item| &item.pending) {
        rows = rows.saturating_add(pending.append.batch.header.records_count);
        bytes += pending.append.batch.records.len();
    }
    rows <= MAX_ROWS && bytes <= MAX_BYTES
}

/// The end of the partition, if it and the last batches of the producers are remembered, and the time at
/// which Postgres writes does not matter.
fn expected_end(item: &Work) -> Option<Seq> {
    let memory = &item.memory;
    let knows = |id: i64| id < 0 || memory.producers.knows(id);
    let is_known = !memory.is_suspect
        && item.pending.iter().all(|p| !p.append.log_append_time && knows(p.append.batch.header.producer_id));
    memory.next_seq.filter(|_| is_known)
}
