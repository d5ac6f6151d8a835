use std::sync::Arc;

use super::{leases::LeaseStatements, registrations::RegistrationStatements, rows::GroupStatements};
use crate::database::Database;

/// Committed offsets, stored groups, leases and registrations; cheap to clone.
#[derive(Clone)]
pub struct Groups {
    pub(super) db: Database,
    pub(super) statements: Arc<Statements>,
}

pub(super) struct Statements {
    pub(super) groups: GroupStatements,
    pub(super) leases: LeaseStatements,
    pub(super) registrations: RegistrationStatements,
}

impl Groups {
    pub(crate) fn new(db: Database) -> Groups {
        let tables = db.tables();
        let statements = Statements {
            groups: GroupStatements::new(tables),
            leases: LeaseStatements::new(tables),
            registrations: RegistrationStatements::new(tables),
        };
        Groups { db, statements: Arc::new(statements) }
    }
}
