use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tokio::{sync::oneshot, task::JoinSet};

use super::{
    types::{Append, AppendReply},
    writer,
};
use crate::log::Log;

impl Log {
    /// Queues a batch; calls for one partition are stored in the order in which they were made.
    pub fn append(&self, append: Append) -> AppendReply {
        let (reply, receiver) = oneshot::channel();
        self.state.batcher.submit(append, reply);
        receiver
    }

    /// Starts the writers. They end when [`Log::close_appends`] was called and the queue is empty.
    pub fn spawn_writers(&self) -> JoinSet<()> {
        let mut writers = JoinSet::new();
        for _ in 0..self.db.config().append.append_writers.max(1) {
            writers.spawn(supervise(self.clone()));
        }
        writers
    }

    /// Refuses further appends; what is queued is still written.
    pub fn close_appends(&self) {
        self.state.batcher.close();
    }
}

/// A panic is a bug, but not the end of the writer: what it had taken is given back by its drop.
async fn supervise(log: Log) {
    while AssertUnwindSafe(writer::run(log.clone())).catch_unwind().await.is_err() {
        tracing::error!("a writer panicked and is started again; its producers are told to try again");
    }
}
