//! Which slots are this gateway's, and until when.

use std::{collections::BTreeMap, sync::Arc};

use store::{Node, SlotLease, Slots};
use tokio::time::Instant;
use wire::ErrorCode;

/// What is known of slots and gateways since the last renewal.
#[derive(Debug, Default)]
pub(crate) struct Tenure {
    /// `None`: nothing yet.
    pub(super) slots: Option<Arc<Slots>>,
    /// This gateway's, by number.
    pub(super) owned: BTreeMap<i32, SlotLease>,
    /// The gateways that live.
    pub(super) nodes: Vec<Node>,
    /// Another process has this node id, and that was said.
    pub(super) in_conflict: bool,
    /// Until then no other gateway can have the slots; `None`: for ever, there is no other.
    pub(super) lease_end: Option<Instant>,
}

/// The slots of this gateway at one moment.
#[derive(Debug, Clone)]
pub(crate) struct OwnedSlots {
    all: Arc<Slots>,
    leases: BTreeMap<i32, SlotLease>,
}

impl Tenure {
    /// Before the first renewal.
    pub(crate) fn is_loading(&self) -> bool {
        self.slots.is_none()
    }

    /// `None` before the first renewal. No slot is owned when the lease is over.
    pub(crate) fn owned(&self) -> Option<OwnedSlots> {
        let leases = if self.is_lease_over() { BTreeMap::new() } else { self.owned.clone() };
        Some(OwnedSlots { all: self.slots.clone()?, leases })
    }

    pub(super) fn is_lease_over(&self) -> bool {
        self.lease_end.is_some_and(|end| Instant::now() >= end)
    }

    /// The slot of a group, if it is this gateway's.
    pub(super) fn slot_of(&self, group_id: &str, node: &Node) -> Result<SlotLease, ErrorCode> {
        let Some(slots) = &self.slots else { return Err(ErrorCode::CoordinatorNotAvailable) };
        if self.is_lease_over() {
            return Err(ErrorCode::NotCoordinator);
        }
        let number = slots.of_group(group_id);
        if let Some(lease) = self.owned.get(&number) {
            return Ok(*lease);
        }
        Err(match slots.slots.iter().find(|slot| slot.slot == number).and_then(|slot| slot.node_id) {
            // The lease of this gateway's former process, which is about to end.
            Some(node_id) if node_id == node.node_id => ErrorCode::CoordinatorLoadInProgress,
            Some(_) => ErrorCode::NotCoordinator,
            None => ErrorCode::CoordinatorNotAvailable,
        })
    }

    /// The gateway that has the slot of a group.
    pub(super) fn owner_of(&self, group_id: &str, node: &Node) -> Result<Node, ErrorCode> {
        let Some(slots) = &self.slots else { return Err(ErrorCode::CoordinatorNotAvailable) };
        let number = slots.of_group(group_id);
        let slot = slots.slots.iter().find(|slot| slot.slot == number).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        if slot.owner == Some(node.instance) && !self.is_lease_over() {
            return Ok(node.clone());
        }
        let owner = self.nodes.iter().find(|other| Some(other.instance) == slot.owner);
        owner.filter(|owner| owner.node_id != node.node_id).cloned().ok_or(ErrorCode::CoordinatorNotAvailable)
    }

    /// These slots are free again.
    pub(super) fn release(&mut self, released: &[i32]) {
        self.owned.retain(|slot, _| !released.contains(slot));
        let slots = self.slots.iter_mut().flat_map(|slots| &mut Arc::make_mut(slots).slots);
        for slot in slots.filter(|slot| released.contains(&slot.slot)) {
            (slot.owner, slot.node_id) = (None, None);
        }
    }
}

impl OwnedSlots {
    pub(crate) fn contains(&self, lease: SlotLease) -> bool {
        self.leases.get(&lease.slot) == Some(&lease)
    }

    /// The slot of a group, whichever gateway has it.
    pub(crate) fn number_of(&self, group_id: &str) -> i32 {
        self.all.of_group(group_id)
    }

    /// Those that this gateway is to keep.
    pub(crate) fn share(&self) -> impl Iterator<Item = SlotLease> + '_ {
        self.leases.values().copied().take(self.fair_share())
    }

    /// Those that are too many, since another gateway is to have them.
    pub(crate) fn surplus(&self) -> Vec<i32> {
        self.leases.keys().copied().skip(self.fair_share()).collect()
    }

    fn fair_share(&self) -> usize {
        self.all.fair_share.max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Slot;
    use uuid::Uuid;

    use super::*;

    fn node(node_id: i32, instance: u128) -> Node {
        Node { node_id, host: format!("host{node_id}"), port: 9092, rack: None, instance: Uuid::from_u128(instance) }
    }

    /// One slot, which all groups are in.
    fn tenure(owner: Option<&Node>, me: &Node, lease: Option<Duration>) -> Tenure {
        let slot = Slot { slot: 0, fencing: 7, owner: owner.map(|n| n.instance), node_id: owner.map(|n| n.node_id) };
        let slots = Slots { slots: vec![slot], fair_share: 1 };
        let owned = slots.of(me.instance).map(|lease| (lease.slot, lease)).collect();
        let nodes = owner.into_iter().cloned().collect();
        let lease_end = lease.map(|lease| Instant::now() + lease);
        Tenure { slots: Some(Arc::new(slots)), owned, nodes, in_conflict: false, lease_end }
    }

    #[test]
    fn what_a_client_hears_of_a_group() {
        let (me, other, before) = (node(1, 1), node(2, 2), node(1, 3));
        let lease = SlotLease { slot: 0, fencing: 7 };
        let minute = Some(Duration::from_secs(60));
        let table = [
            (Tenure::default(), Err(ErrorCode::CoordinatorNotAvailable), Err(ErrorCode::CoordinatorNotAvailable)),
            (tenure(Some(&me), &me, minute), Ok(lease), Ok(1)),
            (tenure(Some(&me), &me, None), Ok(lease), Ok(1)),
            (
                tenure(Some(&me), &me, Some(Duration::ZERO)),
                Err(ErrorCode::NotCoordinator),
                Err(ErrorCode::CoordinatorNotAvailable),
            ),
            (tenure(Some(&other), &me, minute), Err(ErrorCode::NotCoordinator), Ok(2)),
            (
                tenure(Some(&before), &me, minute),
                Err(ErrorCode::CoordinatorLoadInProgress),
                Err(ErrorCode::CoordinatorNotAvailable),
            ),
            (
                tenure(None, &me, minute),
                Err(ErrorCode::CoordinatorNotAvailable),
                Err(ErrorCode::CoordinatorNotAvailable),
            ),
        ];
        for (tenure, slot, owner) in table {
            assert_eq!(tenure.slot_of("g", &me), slot, "{tenure:?}");
            assert_eq!(tenure.owner_of("g", &me).map(|node| node.node_id), owner, "{tenure:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_not_kept_and_nothing_is_owned_when_the_lease_is_over() {
        let me = node(1, 1);
        let slot = |slot| Slot { slot, fencing: 1, owner: Some(me.instance), node_id: Some(1) };
        let slots = Slots { slots: (0..5).map(slot).collect(), fair_share: 3 };
        let owned = slots.of(me.instance).map(|lease| (lease.slot, lease)).collect();
        let mut tenure = Tenure { slots: Some(Arc::new(slots)), owned, ..Tenure::default() };
        let owned = tenure.owned().unwrap();
        assert_eq!(owned.share().map(|lease| lease.slot).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(owned.surplus(), [3, 4]);
        assert!(
            owned.contains(SlotLease { slot: 4, fencing: 1 }) && !owned.contains(SlotLease { slot: 4, fencing: 2 })
        );
        tenure.release(&owned.surplus());
        assert_eq!(tenure.owned().unwrap().surplus(), [] as [i32; 0]);
        assert!(tenure.slots.as_ref().unwrap().slots[3].owner.is_none());
        tenure.lease_end = Some(Instant::now());
        assert_eq!(tenure.owned().unwrap().share().count(), 0);
    }
}
