use crate::database::Database;

/// Committed offsets, stored groups, leases and registrations; cheap to clone.
#[derive(Clone)]
pub struct Groups {
    pub(super) db: Database,
}

impl Groups {
    pub(crate) fn new(db: Database) -> Groups {
        Groups { db }
    }
}
