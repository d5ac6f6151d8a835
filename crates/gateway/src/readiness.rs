//! Whether Postgres and the schema are usable, for the readiness probe and the log.

use std::sync::{Mutex, PoisonError};

/// The last thing that was learnt about the database. Starts as not ready.
#[derive(Debug)]
pub struct Readiness {
    /// Why the gateway is not ready; `None` when it is.
    reason: Mutex<Option<String>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { reason: Mutex::new(Some("starting".to_owned())) }
    }
}

impl Readiness {
    /// Why the gateway is not ready, in words.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether this changed ready to not ready or the reverse.
    pub(crate) fn set(&self, reason: Option<String>) -> bool {
        let mut current = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = current.is_some() != reason.is_some();
        *current = reason;
        changed
    }
}
