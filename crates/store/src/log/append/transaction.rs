//! The append transaction: lock the partitions, check sequences, assign offsets, copy, commit
//! (storage.md D2, D3, D6).

use std::collections::{HashMap, VecDeque};

use sqlx::{Connection, PgConnection, Row};

use super::{
    batcher::{PartitionMemory, Pending, Work},
    copy::CopyEncoder,
    sequence::{BATCHES_TO_RETAIN, ProducerEntry, SequenceVerdict, StoredBatch},
    types::{AppendError, Appended},
};
use crate::{
    error::StoreError,
    log::Log,
    log::range::{Range, RangeBuilder, ReadLimit},
    log::tail::ENTRY_BYTES,
    partition::PartitionKey,
    record::{COLUMNS, Header, Placement, RecordRow, RowMaker, Value},
};

/// Rows are handed to the driver in pieces of this many bytes, so that Postgres parses one while
/// the next is encoded.
const COPY_CHUNK: usize = 128 * 1024;

/// How one batch is answered once the transaction has committed.
type Verdict = Result<Appended, AppendError>;

/// A partition's part in the transaction.
pub(super) struct Placed {
    /// One for each pending batch, in order.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) next_seq: i64,
    /// Bytes of records that were appended.
    pub(super) bytes: usize,
    /// First seq of each pending batch that is to be written.
    pub(super) first_seqs: Vec<Option<i64>>,
    now_ms: i64,
}

impl Placed {
    pub(super) fn set_log_start(&mut self, log_start_seq: i64) {
        for appended in self.verdicts.iter_mut().flatten() {
            appended.log_start_offset = log_start_seq - 1;
        }
    }

    /// What was appended, as a read of the rows would return it.
    pub(super) fn ranges(&self, pending: &VecDeque<Pending>, leader_epoch: i32) -> Vec<Range> {
        let limit = ReadLimit { max_bytes: ENTRY_BYTES, at_least_one: true };
        let mut ranges = Vec::new();
        let mut open = RangeBuilder::new(leader_epoch, limit);
        for (pending, first_seq) in pending.iter().zip(&self.first_seqs) {
            let (batch, Some(first_seq)) = (&pending.append.batch, *first_seq) else { continue };
            for record in batch.records() {
                let row = || RecordRow {
                    seq: first_seq + i64::from(record.offset_delta),
                    timestamp: if pending.append.log_append_time { self.now_ms } else { batch.timestamp(&record) },
                    log_append_time: pending.append.log_append_time,
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

/// What the lock function tells of a partition whose lock this transaction holds.
pub(super) struct Locked {
    /// 0 if the topic is gone.
    pub(super) partition_count: i32,
    pub(super) next_seq: i64,
    pub(super) log_start_seq: i64,
    pub(super) max_timestamp: i64,
    pub(super) now_ms: i64,
}

/// Writes all partitions of `work`, which is sorted; `None` for one whose lock was not free.
///
/// # Errors
/// Nothing was written, unless the error came from the commit itself: then nobody knows.
pub(super) async fn transaction(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
) -> Result<Vec<Option<Placed>>, StoreError> {
    let mut tx = connection.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let locked = lock(log, &mut tx, work).await?;
    let mut placed = Vec::with_capacity(work.len());
    for item in work.iter_mut() {
        placed.push(match locked.get(&item.partition) {
            Some(locked) => Some(place(log, &mut tx, item, locked).await?),
            None => None,
        });
    }
    if placed.iter().flatten().any(|part| part.bytes > 0) {
        copy(log, &mut tx, work, &placed).await?;
    }
    tx.commit().await?;
    Ok(placed)
}

/// Takes the first partition's lock and as many of the others as are free.
async fn lock(
    log: &Log,
    connection: &mut PgConnection,
    work: &[Work],
) -> Result<HashMap<PartitionKey, Locked>, StoreError> {
    let topic_ids: Vec<i64> = work.iter().map(|item| item.partition.topic_id).collect();
    let partition_ids: Vec<i32> = work.iter().map(|item| item.partition.partition_id).collect();
    let lock_keys: Vec<i64> = work.iter().map(|item| item.partition.lock_key()).collect();
    let rows = log
        .state
        .statements
        .lock_partitions()
        .bind(topic_ids)
        .bind(partition_ids)
        .bind(lock_keys)
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            Ok((
                PartitionKey::new(row.try_get(0)?, row.try_get(1)?),
                Locked {
                    partition_count: row.try_get(2)?,
                    next_seq: row.try_get(3)?,
                    log_start_seq: row.try_get(4)?,
                    max_timestamp: row.try_get(5)?,
                    now_ms: row.try_get(6)?,
                },
            ))
        })
        .collect()
}

/// Decides for each pending batch of a locked partition whether and where it is written.
pub(super) async fn place(
    log: &Log,
    connection: &mut PgConnection,
    item: &mut Work,
    locked: &Locked,
) -> Result<Placed, StoreError> {
    let partition = item.partition;
    if partition.partition_id >= locked.partition_count {
        // Before the memory is looked at: the ledger takes no row of a topic that is gone.
        return Ok(Placed {
            verdicts: item.pending.iter().map(|_| Err(AppendError::UnknownPartition)).collect(),
            next_seq: locked.next_seq,
            bytes: 0,
            first_seqs: vec![None; item.pending.len()],
            now_ms: locked.now_ms,
        });
    }
    let mut next_seq = compare_memory(log, connection, partition, &mut item.memory, locked).await?;
    let mut part = Placed { verdicts: Vec::new(), next_seq, bytes: 0, first_seqs: Vec::new(), now_ms: locked.now_ms };
    for pending in &item.pending {
        let batch = &pending.append.batch;
        let header = &batch.header;
        let sequence = if header.producer_id < 0 {
            SequenceVerdict::Append
        } else {
            let producers = &mut item.memory.producers;
            if !producers.knows(header.producer_id) {
                producers
                    .learn(header.producer_id, stored_batches(log, connection, partition, header.producer_id).await?);
            }
            producers.check(header)
        };
        let appended = |base_offset, append_time| Appended {
            base_offset,
            log_append_time: pending.append.log_append_time.then_some(append_time),
            log_start_offset: locked.log_start_seq - 1,
        };
        let (first_seq, verdict) = match sequence {
            SequenceVerdict::Append => (Some(next_seq), Ok(appended(next_seq - 1, locked.now_ms))),
            SequenceVerdict::Duplicate(stored) => (None, Ok(appended(stored.base_offset, stored.append_time))),
            SequenceVerdict::OutOfOrder => (None, Err(AppendError::OutOfOrderSequence)),
            SequenceVerdict::StaleEpoch => (None, Err(AppendError::StaleProducerEpoch)),
        };
        if first_seq.is_some() {
            if header.producer_id >= 0 {
                let stored = StoredBatch {
                    base_sequence: header.base_sequence,
                    record_count: header.records_count,
                    base_offset: next_seq - 1,
                    append_time: locked.now_ms,
                };
                item.memory.producers.record(header, stored);
            }
            next_seq += i64::from(header.records_count);
            part.bytes += batch.records.len();
        }
        part.first_seqs.push(first_seq);
        part.verdicts.push(verdict);
    }
    part.next_seq = next_seq;
    Ok(part)
}

/// Brings the partition's memory in line with what the lock holder sees; returns the next seq.
async fn compare_memory(
    log: &Log,
    connection: &mut PgConnection,
    partition: PartitionKey,
    memory: &mut PartitionMemory,
    locked: &Locked,
) -> Result<i64, StoreError> {
    memory.producers.trim();
    // Who shares the partition with another writer does not guess its end.
    memory.is_suspect = memory.next_seq > 0 && memory.next_seq != locked.next_seq;
    memory.max_timestamp = memory.max_timestamp.max(locked.max_timestamp);
    if memory.next_seq < locked.next_seq {
        memory.producers.forget_all();
        return Ok(locked.next_seq);
    }
    if memory.next_seq > locked.next_seq {
        // Rows that this gateway has written are gone: somebody removed them, or the server lost
        // its last transactions. Their offsets were seen, so they are not given out again.
        tracing::warn!(
            ?partition,
            expected = memory.next_seq,
            found = locked.next_seq,
            "the end of the log moved back"
        );
        memory.producers.forget_all();
        log.state
            .statements
            .raise_next_seq()
            .bind(partition.topic_id)
            .bind(partition.partition_id)
            .bind(memory.next_seq)
            .execute(connection)
            .await?;
    }
    Ok(memory.next_seq)
}

/// The last batches of a producer on a partition, from the rows that carry them.
async fn stored_batches(
    log: &Log,
    connection: &mut PgConnection,
    partition: PartitionKey,
    producer_id: i64,
) -> Result<Option<ProducerEntry>, StoreError> {
    let rows = log
        .state
        .statements
        .producer_batches()
        .bind(partition.topic_id)
        .bind(partition.partition_id)
        .bind(producer_id)
        .bind(BATCHES_TO_RETAIN as i64)
        .fetch_all(connection)
        .await?;
    let mut entry: Option<ProducerEntry> = None;
    for row in rows {
        let (last_seq, epoch): (i64, i16) = (row.try_get(0)?, row.try_get(1)?);
        let record_count: i32 = row.try_get(3)?;
        let stored = StoredBatch {
            base_sequence: row.try_get(2)?,
            record_count,
            base_offset: last_seq - i64::from(record_count),
            append_time: row.try_get(4)?,
        };
        match &mut entry {
            None => entry = Some(ProducerEntry::new(epoch, stored)),
            Some(newer) if newer.epoch == epoch => newer.push_older(stored),
            Some(_) => break,
        }
    }
    Ok(entry)
}

async fn copy(
    log: &Log,
    connection: &mut PgConnection,
    work: &mut [Work],
    placed: &[Option<Placed>],
) -> Result<(), StoreError> {
    let statement = format!("COPY {} ({COLUMNS}) FROM STDIN (FORMAT binary)", log.db.tables().message);
    let mut copy = connection.copy_in_raw(&statement).await?;
    let mut rows = RowMaker::new(log.db.config().append.payload_compression);
    let mut encoder = CopyEncoder::new();
    for (item, part) in work.iter_mut().zip(placed) {
        let Some(part) = part else { continue };
        for (pending, first_seq) in item.pending.iter().zip(&part.first_seqs) {
            let Some(first_seq) = *first_seq else { continue };
            let at = Placement {
                partition: item.partition,
                first_seq,
                log_append_time: pending.append.log_append_time.then_some(part.now_ms),
            };
            rows.each_row(&pending.append.batch, at, &mut item.memory.max_timestamp, |row| encoder.push(row));
            if encoder.len() >= COPY_CHUNK {
                copy.send(encoder.take()).await?;
            }
        }
    }
    copy.send(encoder.finish()).await?;
    copy.finish().await?;
    Ok(())
}
