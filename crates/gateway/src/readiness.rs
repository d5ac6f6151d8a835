//! Whether Postgres and the schema are usable, for the readiness probe and the log.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last thing that was learnt about the database. Starts as not ready.
#[derive(Debug)]
pub(crate) struct Readiness(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Why the gateway is not ready; `None` when it is.
    reason: Option<String>,
    was_ready: bool,
}

impl Default for Readiness {
    fn default() -> Self {
        Self(Mutex::new(State { reason: Some("starting".to_owned()), was_ready: false }))
    }
}

impl Readiness {
    /// Why the gateway is not ready, in words.
    pub(crate) fn reason(&self) -> Option<String> {
        self.state().reason.clone()
    }

    /// The schema was up to date once since the start.
    pub(crate) fn is_prepared(&self) -> bool {
        self.state().was_ready
    }

    /// Returns whether this changed ready to not ready or the reverse.
    pub(crate) fn set(&self, reason: Option<String>) -> bool {
        let mut state = self.state();
        let changed = state.reason.is_some() != reason.is_some();
        state.was_ready |= reason.is_none();
        state.reason = reason;
        changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
