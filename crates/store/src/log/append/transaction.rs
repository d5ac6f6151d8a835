//! The append transaction: lock the partitions, check sequences, assign offsets, copy, commit
//! (storage.md D2, D3, D6).

use std::collections::HashMap;

use sqlx::{Connection, Execute, PgConnection, Row};

use super::{
    batcher::Work,
    placing::{AppendedAt, Placing},
    stored_batches,
};
use crate::{
    error::StoreError,
    log::Log,
    offset::Seq,
    partition::PartitionKey,
    record::{CopyEncoder, Placement, RowMaker},
};

/// Rows are handed to the driver in pieces of this many bytes, so that Postgres parses one while
/// the next is encoded.
const COPY_CHUNK: usize = 128 * 1024;

/// A partition's part in the transaction.
pub(super) struct Part {
    pub(super) placing: Placing,
    pub(super) at: AppendedAt,
}

/// What the lock function tells of a partition whose lock this transaction holds.
struct Locked {
    /// 0 if the topic is gone.
    partition_count: i32,
    next_seq: Seq,
    log_start_seq: Seq,
    max_timestamp: i64,
    now_ms: i64,
}

/// Writes all partitions of `work`, which is sorted; `None` for one whose lock was not free.
///
/// # Errors
/// Nothing was written, unless the error came from the commit itself: then nobody knows.
pub(super) async fn transaction(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
) -> Result<Vec<Option<Part>>, StoreError> {
    let mut tx = connection.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let parts = append_on(log, &mut tx, work).await?;
    tx.commit().await?;
    Ok(parts)
}

/// The same within the transaction of `connection`, which is to be READ COMMITTED.
async fn append_on(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
) -> Result<Vec<Option<Part>>, StoreError> {
    let locked = lock(log, connection, work).await?;
    let mut parts = Vec::with_capacity(work.len());
    for item in work.iter_mut() {
        parts.push(match locked.get(&item.partition) {
            Some(locked) => Some(place(log, connection, item, locked).await?),
            None => None,
        });
    }
    if parts.iter().flatten().any(|part| part.placing.bytes > 0) {
        copy(log, connection, work, &parts).await?;
    }
    Ok(parts)
}

/// Takes the first partition's lock and as many of the others as are free.
async fn lock(
    log: &Log,
    connection: &mut PgConnection,
    work: &[Work],
) -> Result<HashMap<PartitionKey, Locked>, StoreError> {
    let rows = log
        .state
        .statements
        .lock_partitions()
        .bind(work.iter().map(|item| item.partition.topic_id).collect::<Vec<i64>>())
        .bind(work.iter().map(|item| item.partition.partition_id).collect::<Vec<i32>>())
        .bind(work.iter().map(|item| item.partition.lock_key()).collect::<Vec<i64>>())
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            let partition = PartitionKey::new(row.try_get("topic_id")?, row.try_get("partition_id")?);
            let locked = Locked {
                partition_count: row.try_get("partition_count")?,
                next_seq: Seq::new(row.try_get("next_seq")?),
                log_start_seq: Seq::new(row.try_get("log_start_seq")?),
                max_timestamp: row.try_get("max_timestamp")?,
                now_ms: row.try_get("now_ms")?,
            };
            Ok((partition, locked))
        })
        .collect()
}

/// Places the batches of a locked partition, after what is not remembered was looked up.
async fn place(log: &Log, connection: &mut PgConnection, item: &mut Work, locked: &Locked) -> Result<Part, StoreError> {
    let at = AppendedAt { log_start: locked.log_start_seq.offset(), time_ms: Some(locked.now_ms) };
    if item.partition.partition_id >= locked.partition_count {
        // Before the memory is looked at: the ledger takes no row of a topic that is gone.
        return Ok(Part { placing: Placing::nowhere(item.pending.len(), locked.next_seq), at });
    }
    let next_seq = item.memory.compare(locked.next_seq, locked.max_timestamp);
    if next_seq > locked.next_seq {
        log.raise_end(connection, item.partition, next_seq, locked.next_seq).await?;
    }
    let producers = &mut item.memory.producers;
    let producer_ids = item.pending.iter().map(|pending| pending.append.batch.header.producer_id);
    stored_batches::learn(producers, log, connection, item.partition, producer_ids).await?;
    let batches = item.pending.iter().map(|pending| &pending.append.batch);
    Ok(Part { placing: Placing::of(batches, next_seq, producers, at.time_ms), at })
}

async fn copy(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
    parts: &[Option<Part>],
) -> Result<(), StoreError> {
    let statement = log.state.statements.copy_rows().sql();
    let mut copy = connection.copy_in_raw(statement.as_str()).await?;
    let mut rows = RowMaker::new(log.db.config().append.payload_compression);
    let mut encoder = CopyEncoder::new();
    for (item, part) in work.iter_mut().zip(parts) {
        let Some(Part { placing, at }) = part else { continue };
        for (append, first_seq) in placing.writes(&item.pending) {
            let log_append_time = at.time_ms.filter(|_| append.log_append_time);
            let placement = Placement { partition: item.partition, first_seq, log_append_time };
            rows.each_row(&append.batch, placement, &mut item.memory.max_timestamp, |row| encoder.push(row));
            if encoder.len() >= COPY_CHUNK {
                copy.send(encoder.take()).await?;
            }
        }
    }
    copy.send(encoder.finish()).await?;
    copy.finish().await?;
    Ok(())
}
