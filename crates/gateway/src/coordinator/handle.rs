use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use groups::Settings;
use store::{Registration, Store, StuckAhead};
use tokio::sync::Notify;
use wire::ErrorCode;

use super::{active_group::ActiveGroup, clock::MonotonicClock, slot::SlotGroups, written::Written};
use crate::{config::GroupsConfig, membership::Membership, net::shutdown::Shutdown};

/// The groups of one gateway.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(super) store: Store,
    pub(super) membership: Arc<Membership>,
    pub(super) shutdown: Shutdown,
    pub(super) settings: Settings,
    pub(super) offsets_retention: Duration,
    pub(super) clock: MonotonicClock,
    /// The slots that are served, by number.
    pub(super) slots: RwLock<BTreeMap<i32, Arc<SlotGroups>>>,
    /// Groups that committed without members since partition leases were written last.
    pub(super) to_register: Mutex<BTreeSet<Registration>>,
    /// A generation has its assignment: its partition leases are due.
    pub(super) assigned: Notify,
    pub(super) written: tokio::sync::Mutex<Written>,
    /// As of the last look.
    pub(super) stuck_ahead: Mutex<Vec<StuckAhead>>,
}

impl Coordinator {
    pub(crate) fn new(
        config: &GroupsConfig,
        store: Store,
        membership: Arc<Membership>,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            membership,
            shutdown,
            settings: config.settings(),
            offsets_retention: Duration::from_secs(u64::from(config.offsets_retention_minutes) * 60),
            clock: MonotonicClock::new(),
            slots: RwLock::default(),
            to_register: Mutex::default(),
            assigned: Notify::new(),
            written: tokio::sync::Mutex::default(),
            stuck_ahead: Mutex::default(),
        })
    }

    /// The slot of a group.
    ///
    /// # Errors
    /// When the slot is not this gateway's, or its groups are not loaded yet.
    pub(super) fn slot_of(&self, group_id: &str) -> Result<Arc<SlotGroups>, ErrorCode> {
        if group_id.contains('\0') {
            return Err(ErrorCode::InvalidGroupId);
        }
        let lease = self.membership.slot_of(group_id)?;
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(&lease.slot).filter(|slot| slot.lease == lease);
        slot.cloned().ok_or(ErrorCode::CoordinatorLoadInProgress)
    }

    /// Whether this gateway may store and forget the group's offsets now; every gateway may tell them.
    pub(crate) fn check_owned(&self, group_id: &str) -> Result<(), ErrorCode> {
        self.slot_of(group_id).map(drop)
    }

    pub(super) fn served(&self) -> Vec<Arc<SlotGroups>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(super) fn active_groups(&self) -> Vec<Arc<ActiveGroup>> {
        self.served().iter().flat_map(|slot| slot.active()).collect()
    }
}
