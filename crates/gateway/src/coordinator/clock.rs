//! The clock of the groups.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groups::Millis;
use tokio::time::Instant;

/// Milliseconds since 1970 that never go backwards.
#[derive(Debug)]
pub(super) struct MonotonicClock {
    start: Instant,
    start_ms: Millis,
}

impl MonotonicClock {
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: since.as_millis() as Millis }
    }

    pub(super) fn now(&self) -> Millis {
        self.start_ms.saturating_add(self.start.elapsed().as_millis() as Millis)
    }

    pub(super) fn instant(&self, at: Millis) -> Instant {
        self.start + Duration::from_millis(at.saturating_sub(self.start_ms).max(0).unsigned_abs())
    }
}
