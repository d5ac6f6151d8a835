use crate::database::Database;

/// Migrations and time partitions; cheap to clone.
#[derive(Clone)]
pub struct Schema {
    pub(super) db: Database,
}

impl Schema {
    pub(crate) fn new(db: Database) -> Schema {
        Schema { db }
    }
}
