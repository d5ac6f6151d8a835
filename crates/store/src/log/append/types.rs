use std::sync::Arc;

use tokio::sync::oneshot;
use wire::batch::ProducedBatch;

use crate::{error::StoreError, offset::Offset, partition::PartitionKey};

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
    pub base_offset: Offset,
    /// Milliseconds; only for LogAppendTime topics.
    pub log_append_time: Option<i64>,
    pub log_start_offset: Offset,
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
