//! Batches to append and logs to append them to.

use bytes::Bytes;
use sqlx::Row;
use store::{Append, AppendError, AppendReply, Appended, NewTopic, PartitionKey, Store};
use testkit::TestDatabase;
use tokio::task::JoinSet;
use wire::batch::{BatchBuilder, ProduceLimits, ProducedBatch, ProducerFields, TimestampType};

/// A producer's batch in the making.
pub struct Batch {
    builder: BatchBuilder,
    fields: ProducerFields,
    next: i64,
}

impl Batch {
    pub fn new(fields: ProducerFields) -> Self {
        Self { builder: BatchBuilder::new(0, -1, TimestampType::CreateTime), fields, next: 0 }
    }

    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        self.builder.push(self.next, timestamp, key, value, headers.iter().copied()).unwrap();
        self.next += 1;
    }

    pub fn produced(self) -> ProducedBatch {
        let limits = ProduceLimits { max_batch_bytes: 1 << 24, max_decompressed_bytes: 1 << 24 };
        let bytes: Bytes = self.builder.finish_as(&self.fields).unwrap();
        ProducedBatch::validate(bytes, limits).unwrap()
    }
}

/// Records with these values and no keys.
pub fn plain(values: &[&str]) -> ProducedBatch {
    with_fields(ProducerFields::default(), values)
}

pub fn idempotent(producer_id: i64, producer_epoch: i16, base_sequence: i32, values: &[&str]) -> ProducedBatch {
    with_fields(ProducerFields { producer_id, producer_epoch, base_sequence, ..Default::default() }, values)
}

fn with_fields(fields: ProducerFields, values: &[&str]) -> ProducedBatch {
    let mut batch = Batch::new(fields);
    for value in values {
        batch.push(1_000, None, Some(value.as_bytes()), &[]);
    }
    batch.produced()
}

/// A topic in a test's database, with the writers of one gateway.
pub struct Log {
    pub store: Store,
    pub name: String,
    pub topic_id: i64,
    pub log_append_time: bool,
    pub writers: JoinSet<()>,
}

impl Log {
    pub async fn create(database: &TestDatabase, partitions: i32) -> Self {
        let mut log = Self::without_writers(database, partitions).await;
        log.writers = log.store.log.spawn_writers();
        log
    }

    /// What is queued stays so.
    pub async fn without_writers(database: &TestDatabase, partitions: i32) -> Self {
        let store = database.store().clone();
        let new = NewTopic {
            name: "log".to_owned(),
            partition_count: partitions,
            retention_max_age_seconds: 0,
            configs: Default::default(),
        };
        let topic = store.catalog.create_topic(&new).await.unwrap();
        Self { store, name: new.name, topic_id: topic.id, log_append_time: false, writers: JoinSet::new() }
    }

    /// The same topic through a store of its own, which remembers nothing.
    pub async fn on_another_gateway(&self, database: &TestDatabase) -> Self {
        let store = Store::connect(database.config()).unwrap();
        let writers = store.log.spawn_writers();
        Self { store, name: self.name.clone(), topic_id: self.topic_id, log_append_time: self.log_append_time, writers }
    }

    pub fn key(&self, partition: i32) -> PartitionKey {
        PartitionKey::new(self.topic_id, partition)
    }

    pub fn queue(&self, partition: i32, batch: ProducedBatch) -> AppendReply {
        self.store.log.append(Append {
            partition: self.key(partition),
            batch,
            log_append_time: self.log_append_time,
            reservation: Box::new(()),
        })
    }

    pub async fn append(&self, partition: i32, batch: ProducedBatch) -> Result<Appended, AppendError> {
        self.queue(partition, batch).await.unwrap()
    }

    pub async fn values(&self, partition: i32) -> Vec<String> {
        let rows = self.rows("convert_from(payload, 'UTF8')", partition).await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    pub async fn seqs(&self, partition: i32) -> Vec<i64> {
        self.rows("enqueue_seq", partition).await.iter().map(|row| row.get(0)).collect()
    }

    async fn rows(&self, column: &str, partition: i32) -> Vec<sqlx::postgres::PgRow> {
        let sql = format!(
            "SELECT {column} FROM queue.metadata_queue_message WHERE topic_id = $1 AND partition_id = $2 \
             ORDER BY enqueue_seq"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(self.topic_id)
            .bind(partition)
            .fetch_all(self.store.pool())
            .await
            .unwrap()
    }
}
