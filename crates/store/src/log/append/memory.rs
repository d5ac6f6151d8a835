//! What the gateway remembers of a partition between two transactions; all of it can be lost.

use sqlx::{PgConnection, Row};

use super::sequence::{BATCHES_TO_RETAIN, ProducerEntry, Producers, StoredBatch};
use crate::{error::StoreError, log::Log, offset::Seq, partition::PartitionKey};

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

    /// Brings it in line with what the holder of the partition's lock sees; returns the next seq.
    pub(super) async fn compare(
        &mut self,
        log: &Log,
        connection: &mut PgConnection,
        partition: PartitionKey,
        next_seq: Seq,
        max_timestamp: i64,
    ) -> Result<Seq, StoreError> {
        self.producers.trim();
        // A gateway that shares the partition with another writer does not guess its end.
        self.is_suspect = self.next_seq.is_some_and(|remembered| remembered != next_seq);
        self.max_timestamp = self.max_timestamp.max(max_timestamp);
        let remembered = self.next_seq.unwrap_or(next_seq);
        if remembered != next_seq {
            self.producers.forget_all();
        }
        if remembered > next_seq {
            // Their offsets were seen, so they are not given out again.
            log.raise_end(connection, partition, remembered, next_seq).await?;
        }
        Ok(remembered.max(next_seq))
    }

    /// Looks up the producers that it does not know, in the rows that carry their batches.
    pub(super) async fn learn_producers(
        &mut self,
        log: &Log,
        connection: &mut PgConnection,
        partition: PartitionKey,
        producer_ids: impl Iterator<Item = i64>,
    ) -> Result<(), StoreError> {
        for producer_id in producer_ids.filter(|id| *id >= 0) {
            if !self.producers.knows(producer_id) {
                let entry = stored_batches(log, connection, partition, producer_id).await?;
                self.producers.learn(producer_id, entry);
            }
        }
        Ok(())
    }
}

/// The last batches of a producer on a partition.
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
        let epoch: i16 = row.try_get("epoch")?;
        let record_count: i32 = row.try_get("records")?;
        let last_seq = Seq::new(row.try_get("last_seq")?);
        let stored = StoredBatch {
            base_sequence: row.try_get("base_sequence")?,
            record_count,
            base_offset: last_seq.next().plus(-i64::from(record_count)).offset(),
            append_time: row.try_get("append_time")?,
        };
        match &mut entry {
            None => entry = Some(ProducerEntry::new(epoch, stored)),
            Some(newer) if newer.epoch == epoch => newer.push_older(stored),
            Some(_) => break,
        }
    }
    Ok(entry)
}
