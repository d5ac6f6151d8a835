//! What the coordinator has written beside groups and offsets.

use std::collections::BTreeSet;

use store::{PartitionKey, Registration};
use tokio::time::Instant;

/// Registrations and partition leases as they were written last.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) registrations: BTreeSet<Registration>,
    /// When they were.
    pub(super) registered: Option<Instant>,
    /// Group, member and partition of each lease.
    pub(super) leases: BTreeSet<(String, String, PartitionKey)>,
    /// When the first lease is to be written again; `None`: there is none.
    pub(super) renewal: Option<Instant>,
}
