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
            writers.spawn(writer::run(self.clone()));
        }
        writers
    }

    /// Refuses further appends; what is queued is still written.
    pub fn close_appends(&self) {
        self.state.batcher.close();
    }
}
