use std::sync::Arc;

use tokio::sync::OnceCell;

use super::{channel::Channel, nodes::LastSeen, producers::IdStatements, slots::SlotStatements};
use crate::database::Database;

/// Gateways, their leadership and coordinator slots; cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) db: Database,
    pub(super) state: Arc<State>,
}

pub(super) struct State {
    pub(super) last_seen: LastSeen,
    pub(super) channel: Channel,
    pub(super) cluster_id: OnceCell<String>,
    pub(super) ids: IdStatements,
    pub(super) slots: SlotStatements,
}

impl Cluster {
    pub(crate) fn new(db: Database) -> Cluster {
        let channel = Channel::new(db.tables());
        let state = State {
            last_seen: LastSeen::default(),
            channel,
            cluster_id: OnceCell::new(),
            ids: IdStatements::new(db.tables()),
            slots: SlotStatements::new(db.tables()),
        };
        Cluster { db, state: Arc::new(state) }
    }

    /// The channel on which gateways send each other hints.
    pub(crate) fn channel(&self) -> &Channel {
        &self.state.channel
    }
}
