//! The produce path: group commit.
//!
//! Requests of many connections and partitions wait in [`batcher`] and are written together by a
//! few writers ([`writer`]), each with a connection of its own, in one COPY and one commit, or a few
//! records in one statement. A partition is with one writer at a time, so its batches keep the order
//! of their arrival and its lock is never contended within a gateway.

mod batcher;
mod copy;
mod insert;
mod row;
mod sequence;
mod transaction;
mod writer;

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};
use wire::batch::ProducedBatch;

pub(crate) use batcher::Batcher;
pub use row::PayloadCompression;
pub(crate) use row::{COLUMNS, SNAPPY, flags};

use crate::{Store, error::StoreError, partition::PartitionKey};

/// How appends are grouped; every value has a default that serves well.
#[derive(Debug, Clone)]
pub struct AppendConfig {
    /// Connections that write, 1..=64. Each carries one transaction at a time.
    pub writers: usize,
    /// Bytes of records that one transaction takes at the most, unless a single batch is larger.
    pub max_transaction_bytes: usize,
    /// How long a transaction may take before the connection is given up and the producer is told
    /// to try again.
    pub timeout: Duration,
    pub payload_compression: PayloadCompression,
}

impl Default for AppendConfig {
    fn default() -> Self {
        Self {
            writers: 2,
            max_transaction_bytes: 8 * 1024 * 1024,
            timeout: Duration::from_secs(30),
            payload_compression: PayloadCompression::None,
        }
    }
}

/// One producer batch for one partition.
pub struct Append {
    pub partition: PartitionKey,
    pub batch: ProducedBatch,
    /// The topic has `message.timestamp.type=LogAppendTime`.
    pub log_append_time: bool,
    /// Given back to the caller's memory budget when the batch is written or refused.
    pub reservation: Reservation,
}

/// Anything whose drop tells the caller that a batch no longer takes up memory.
pub type Reservation = Box<dyn Send + Sync>;

/// A batch that is committed in Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Kafka offset of the batch's first record.
    pub base_offset: i64,
    /// Milliseconds; only for LogAppendTime topics.
    pub log_append_time: Option<i64>,
    pub log_start_offset: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error("the topic or the partition does not exist")]
    UnknownPartition,
    #[error("the sequence number does not follow the producer's last one")]
    OutOfOrderSequence,
    #[error("a newer epoch of this producer has written to the partition")]
    StaleProducerEpoch,
    /// The outcome is unknown when the connection was lost at the commit; an idempotent producer's
    /// repeat finds out.
    #[error(transparent)]
    Store(Arc<StoreError>),
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

/// Answers one [`Append`] when its transaction has ended.
pub type AppendReply = oneshot::Receiver<Result<Appended, AppendError>>;

impl Store {
    /// Queues a batch; calls for one partition are stored in the order in which they were made.
    pub fn append(&self, append: Append) -> AppendReply {
        let (reply, receiver) = oneshot::channel();
        self.batcher().submit(append, reply);
        receiver
    }

    /// Starts the writers. They end when [`Store::close_appends`] was called and the queue is empty.
    pub fn spawn_writers(&self) -> JoinSet<()> {
        let mut writers = JoinSet::new();
        for _ in 0..self.config().append.writers.max(1) {
            writers.spawn(writer::run(self.clone()));
        }
        writers
    }

    /// Refuses further appends; what is queued is still written.
    pub fn close_appends(&self) {
        self.batcher().close();
    }
}
