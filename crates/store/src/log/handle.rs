use std::sync::Arc;

use tokio::sync::Notify;

use super::{
    append::Batcher, pending_hints::PendingHints, statements::LogStatements, tail::TailCache, waiters::Waiters,
};
use crate::{cluster::Cluster, database::Database};

/// Appends and reads of all partitions; cheap to clone.
#[derive(Clone)]
pub struct Log {
    pub(super) db: Database,
    pub(super) cluster: Cluster,
    pub(super) state: Arc<State>,
}

/// What is remembered of the logs; Postgres is the truth.
pub(super) struct State {
    pub(super) statements: LogStatements,
    pub(super) batcher: Arc<Batcher>,
    pub(super) waiters: Arc<Waiters>,
    pub(super) tail: TailCache,
    /// A reader began to wait for a partition.
    pub(super) watch_wake: Notify,
    pub(super) hints: PendingHints,
}

impl Log {
    pub(crate) fn new(db: Database, cluster: Cluster) -> Log {
        let state = State {
            statements: LogStatements::new(db.tables()),
            batcher: Arc::default(),
            waiters: Arc::default(),
            tail: TailCache::new(db.config().tail_cache_bytes as usize),
            watch_wake: Notify::new(),
            hints: PendingHints::default(),
        };
        Log { db, cluster, state: Arc::new(state) }
    }

    /// Drops what is remembered of a deleted topic, and wakes its readers.
    pub(crate) fn forget_topic(&self, topic_id: i64) {
        self.state.batcher.forget_topic(topic_id);
        self.state.waiters.forget_topic(topic_id);
        self.state.tail.forget_topic(topic_id);
    }
}
