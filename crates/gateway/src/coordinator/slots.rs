//! Slots come and go, and their groups with them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError},
};

use groups::{Group, StoredGroup};
use store::{SlotLease, StoreError};
use tracing::{error, info};

use super::{
    active_group::ActiveGroup,
    handle::Coordinator,
    slot::{Entry, SlotGroups},
};
use crate::membership::OwnedSlots;

impl Coordinator {
    /// Loads the groups of slots that are new, and gives up slots that are too many.
    pub(crate) async fn arrange(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(owned) = self.membership.owned() else { return Ok(()) };
        self.load(&owned).await?;
        self.give_up(&owned.surplus()).await
    }

    /// Closes the groups of slots as they are lost: at once, whatever else waits for Postgres. Ends never.
    pub(crate) async fn follow_slots(self: &Arc<Self>) {
        let mut tenure = self.membership.subscribe();
        loop {
            let owned = tenure.borrow_and_update().owned();
            if let Some(owned) = owned {
                self.close_beside(self.stop_serving(|lease| !owned.contains(lease)));
            }
            // The membership is this coordinator's own, so the channel is never closed.
            drop(tenure.changed().await);
        }
    }

    /// A write was refused: another gateway has the slot.
    pub(super) fn lost(&self, lost: SlotLease) {
        self.close_beside(self.stop_serving(|lease| lease == lost));
    }

    /// Loads the groups of slots that are not served yet. A slot that has changed hands meanwhile is not
    /// served after it either.
    async fn load(self: &Arc<Self>, owned: &OwnedSlots) -> Result<(), StoreError> {
        let served: Vec<SlotLease> = self.served().iter().map(|slot| slot.lease).collect();
        let new: Vec<SlotLease> = owned.share().filter(|lease| !served.contains(lease)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i32> = new.iter().map(|lease| lease.slot).collect();
        let rows = self.store.groups.load_groups(&numbers).await?;
        let count = rows.len();
        let mut groups: BTreeMap<i32, HashMap<String, Entry>> = BTreeMap::new();
        for row in rows {
            match read_group(&row.state) {
                Ok(stored) => {
                    let entry = self.entry(&row.group_id, stored);
                    groups.entry(owned.number_of(&row.group_id)).or_default().insert(row.group_id, entry);
                }
                // Members join again; the offsets are not in it.
                Err(error) => error!(group = row.group_id, error, "a stored group cannot be read; it starts anew"),
            }
        }
        for lease in new {
            self.serve(SlotGroups::new(lease, groups.remove(&lease.slot).unwrap_or_default()));
        }
        info!(slots = numbers.len(), groups = count, "coordinating");
        Ok(())
    }

    fn entry(&self, group_id: &str, stored: StoredGroup) -> Entry {
        if !stored.has_members() {
            return Entry::Idle(stored);
        }
        let group = Group::restore(group_id, &self.settings, stored.clone(), self.clock.now());
        Entry::Active(ActiveGroup::new(group_id, group, Some(stored)))
    }

    fn serve(self: &Arc<Self>, slot: Arc<SlotGroups>) {
        let before = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            // Asked under the lock: a loss that comes later finds the slot here.
            if !self.membership.owned().is_some_and(|owned| owned.contains(slot.lease)) {
                return;
            }
            slots.insert(slot.lease.slot, slot.clone())
        };
        for group in slot.active() {
            self.start_timer(slot.clone(), group);
        }
        self.close_beside(before.into_iter().flat_map(|before| before.close()).collect());
    }

    /// A gateway came: it is to have some of the slots.
    async fn give_up(self: &Arc<Self>, surplus: &[i32]) -> Result<(), StoreError> {
        if surplus.is_empty() {
            return Ok(());
        }
        close(self.stop_serving(|lease| surplus.contains(&lease.slot))).await;
        let released = self.membership.release(surplus).await?;
        info!(slots = released, "gave up coordinator slots for another gateway");
        Ok(())
    }

    /// The groups of these slots in memory, which are to be closed.
    fn stop_serving(&self, is_lost: impl Fn(SlotLease) -> bool) -> Vec<Arc<ActiveGroup>> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let lost: Vec<i32> =
            slots.values().map(|slot| slot.lease).filter(|lease| is_lost(*lease)).map(|lease| lease.slot).collect();
        lost.iter().filter_map(|slot| slots.remove(slot)).flat_map(|slot| slot.close()).collect()
    }

    /// In a task of its own: a group may be locked by the caller, or by a request that waits for Postgres.
    fn close_beside(&self, groups: Vec<Arc<ActiveGroup>>) {
        if !groups.is_empty() {
            self.shutdown.spawn(close(groups));
        }
    }
}

async fn close(groups: Vec<Arc<ActiveGroup>>) {
    for group in groups {
        group.close().await;
    }
}

fn read_group(state: &[u8]) -> Result<StoredGroup, String> {
    let json = std::str::from_utf8(state).map_err(|error| error.to_string())?;
    StoredGroup::from_json(json).map_err(|error| error.to_string())
}
