//! When bytes last moved, for the idle time-out.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::time::sleep;

pub(super) struct Activity {
    start: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    pub(super) fn touch(&self) {
        self.last_ms.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Resolves when nothing has moved for `limit`. A request that is still being answered does
    /// not count as activity: that is Apache Kafka's rule for `connections.max.idle.ms` too.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let idle = self.start.elapsed().saturating_sub(last);
            if idle >= limit {
                return;
            }
            sleep(limit - idle).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn idle_time_counts_from_the_last_byte() {
        let activity = Activity::new();
        let limit = Duration::from_millis(200);
        sleep(limit / 2).await;
        activity.touch();
        let touched = Instant::now();
        activity.idle_for(limit).await;
        assert!(touched.elapsed() >= limit - Duration::from_millis(1));
    }
}
