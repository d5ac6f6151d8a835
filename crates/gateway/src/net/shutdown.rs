//! Shutdown in two steps: first no new work, then no work at all.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Seen by every task of the gateway. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    draining: CancellationToken,
    aborted: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Resolves when no new connection and no new request may be taken up.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Resolves when tasks must end whatever they are doing.
    pub(crate) async fn aborted(&self) {
        self.aborted.cancelled().await;
    }

    /// Runs a task that [`Shutdown::drain`] waits for.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Tells every task to finish and waits for them at most `grace`; what runs then still is cut
    /// off. Returns whether everything finished by itself.
    pub(crate) async fn drain(&self, grace: Duration) -> bool {
        self.draining.cancel();
        self.tasks.close();
        let in_time = timeout(grace, self.tasks.wait()).await.is_ok();
        self.aborted.cancel();
        self.tasks.wait().await;
        in_time
    }
}
