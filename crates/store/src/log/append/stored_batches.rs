//! Producers that are not remembered are looked up in the rows that carry their batches (storage.md D6).

use sqlx::{PgConnection, Row};

use super::sequence::{BATCHES_TO_RETAIN, ProducerEntry, Producers, StoredBatch};
use crate::{error::StoreError, log::Log, offset::Seq, partition::PartitionKey};

/// Looks up those of the producers that `producers` does not know.
pub(super) async fn learn(
    producers: &mut Producers,
    log: &Log,
    connection: &mut PgConnection,
    partition: PartitionKey,
    producer_ids: impl Iterator<Item = i64>,
) -> Result<(), StoreError> {
    for producer_id in producer_ids.filter(|id| *id >= 0) {
        if !producers.knows(producer_id) {
            let entry = stored_batches(log, connection, partition, producer_id).await?;
            producers.learn(producer_id, entry);
        }
    }
    Ok(())
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
