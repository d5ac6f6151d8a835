//! Which groups are this gateway's: coordinator slots with leases (storage.md D8, D12).
//!
//! Every third of the lease time the gateway says that it lives, renews its slots and takes free
//! ones up to its fair share. The groups of a slot that is new are loaded before the slot serves;
//! until then clients hear COORDINATOR_LOAD_IN_PROGRESS. Groups of a slot that was lost are closed:
//! their members hear NOT_COORDINATOR and look the coordinator up again.
//!
//! A gateway that cannot reach Postgres cannot know whether another one has taken its slots. Was it
//! alone when it looked last, it goes on from memory; else it is cut off when its lease is over, until
//! it has renewed it: all its slots are lost to it, and it closes its Kafka connections, for clients
//! stay with a broker that answers, be it with nothing but errors.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLockReadGuard},
};

use groups::{Group, GroupError, StoredGroup};
use store::{Heartbeat, Node, SlotLease, Slots, StoreError};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{error, info, warn};
use wire::ErrorCode;

use super::{Cell, Coordinator, Held, Known};

/// What is known of slots and gateways.
#[derive(Debug, Default)]
pub(crate) struct Tenure {
    /// `None`: nothing yet.
    slots: Option<Slots>,
    /// Slots whose groups are loaded, with the fencing number.
    serving: BTreeMap<i32, i64>,
    nodes: Vec<Node>,
    /// Another process has this node id, and that was said.
    in_conflict: bool,
    /// Until then nobody else can have the slots; `None`: for ever, nobody else is there.
    lease_end: Option<Instant>,
}

impl Tenure {
    /// Before the first slots are loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.slots.is_none()
    }

    pub(super) fn serving(&self) -> Vec<SlotLease> {
        self.serving.iter().map(|(slot, fencing)| SlotLease { slot: *slot, fencing: *fencing }).collect()
    }

    fn is_lease_over(&self) -> bool {
        self.lease_end.is_some_and(|end| Instant::now() >= end)
    }
}

impl Coordinator {
    pub(super) fn tenure(&self) -> RwLockReadGuard<'_, Tenure> {
        self.tenure.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Tenure) -> T) -> T {
        change(&mut self.tenure.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The slot of a group, if this gateway serves it.
    pub(super) fn slot_of(&self, group_id: &str) -> Result<SlotLease, ErrorCode> {
        if group_id.contains('\0') {
            return Err(ErrorCode::InvalidGroupId);
        }
        let tenure = self.tenure();
        let Some(slots) = &tenure.slots else { return Err(ErrorCode::CoordinatorNotAvailable) };
        if tenure.is_lease_over() {
            return Err(ErrorCode::NotCoordinator);
        }
        let number = slots.of_group(group_id);
        if let Some(fencing) = tenure.serving.get(&number) {
            return Ok(SlotLease { slot: number, fencing: *fencing });
        }
        Err(match slots.slots.iter().find(|slot| slot.slot == number) {
            // Not loaded yet; or the lease of this gateway's former process, which is about to end.
            Some(slot) if slot.owner == Some(self.node.instance) || slot.node_id == Some(self.node.node_id) => {
                ErrorCode::CoordinatorLoadInProgress
            }
            Some(slot) if slot.node_id.is_some() => ErrorCode::NotCoordinator,
            _ => ErrorCode::CoordinatorNotAvailable,
        })
    }

    /// The gateway that coordinates a group.
    pub(crate) fn owner_of(&self, group_id: &str) -> Result<Node, ErrorCode> {
        let tenure = self.tenure();
        let Some(slots) = &tenure.slots else { return Err(ErrorCode::CoordinatorNotAvailable) };
        let number = slots.of_group(group_id);
        let slot = slots.slots.iter().find(|slot| slot.slot == number).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        if slot.owner == Some(self.node.instance) && !tenure.is_lease_over() {
            return Ok(self.node.clone());
        }
        let node = tenure.nodes.iter().find(|node| Some(node.instance) == slot.owner);
        node.filter(|node| node.node_id != self.node.node_id).cloned().ok_or(ErrorCode::CoordinatorNotAvailable)
    }

    /// Says that this gateway lives and renews its slots, as quickly as that can be told to others.
    /// Never waits for a group, whose request may wait for Postgres for longer than the lease. What
    /// is new and what is too much is left to [`Coordinator::arrange`].
    pub(crate) async fn renew(self: &Arc<Self>) -> Result<(), StoreError> {
        let was_cut_off = self.fence_if_due();
        if was_cut_off {
            // What was sent before and comes late must not count, also where nobody took the slots.
            self.store.cluster.release_slots(self.node.instance, None).await?;
        }
        let lease_end = Instant::now() + self.lease;
        let heartbeat = self.store.cluster.heartbeat_node(&self.node, self.lease).await?;
        let (nodes, in_conflict) = match heartbeat {
            Heartbeat::Live(nodes) => (nodes, false),
            Heartbeat::Conflict(other) => {
                if !self.tenure().in_conflict {
                    self.tell_conflict(&other);
                }
                (self.store.cluster.live_nodes(self.lease).await?, true)
            }
        };
        let slots = self.store.cluster.keep_slots(self.node.instance, self.lease).await?;
        let is_alone = nodes.iter().all(|node| node.instance == self.node.instance);
        if Instant::now() >= lease_end || !was_cut_off && self.fence_if_due() {
            return Err(StoreError::Unavailable("the lease was over before it was renewed".to_owned()));
        }
        let lost = self.change(|tenure| {
            let mine = self.mine(&slots);
            tenure.nodes = nodes;
            tenure.in_conflict = in_conflict;
            tenure.lease_end = (!is_alone).then_some(lease_end);
            let is_lost = |(slot, fencing): &(&i32, &i64)| mine.get(slot) != Some(fencing);
            let lost: Vec<i32> = tenure.serving.iter().filter(is_lost).map(|(slot, _)| *slot).collect();
            tenure.serving.retain(|slot, fencing| mine.get(slot) == Some(fencing));
            let taken = self.take_groups(&slots, &lost);
            tenure.slots = Some(slots);
            if self.cut_off.send_replace(false) {
                info!("the lease on the coordinator slots is renewed; serving again");
            }
            taken
        });
        self.close_beside(lost);
        self.lease_changed.notify_one();
        self.slots_changed.notify_one();
        Ok(())
    }

    /// This gateway's slots, with their fencing numbers.
    fn mine(&self, slots: &Slots) -> BTreeMap<i32, i64> {
        slots.of(self.node.instance).map(|lease| (lease.slot, lease.fencing)).collect()
    }

    /// Returns when there may be something to arrange.
    pub(crate) async fn slots_changed(&self) {
        self.slots_changed.notified().await;
    }

    /// Loads the groups of slots that are new, and gives up slots that are too many.
    pub(crate) async fn arrange(self: &Arc<Self>) -> Result<(), StoreError> {
        let (mine, fair_share) = match &self.tenure().slots {
            Some(slots) => (self.mine(slots), slots.fair_share),
            None => return Ok(()),
        };
        self.load(&mine).await?;
        self.give_up_surplus(&mine, fair_share).await
    }

    /// Lets go of all groups whenever the lease is over and others may have taken the slots. Ends never.
    pub(crate) async fn fence_in_time(self: &Arc<Self>) {
        loop {
            let end = self.tenure().lease_end;
            match end {
                Some(end) if !self.fence_if_due() => {
                    // The time-out is what is waited for.
                    let _ = timeout_at(end, self.lease_changed.notified()).await;
                }
                _ => self.lease_changed.notified().await,
            }
        }
    }

    /// Whether the lease is over; then no group is in the map any more.
    fn fence_if_due(self: &Arc<Self>) -> bool {
        let taken = self.change(|tenure| {
            if !tenure.is_lease_over() {
                return None;
            }
            let lost: Vec<i32> = std::mem::take(&mut tenure.serving).into_keys().collect();
            if !self.cut_off.send_replace(true) {
                warn!(
                    slots = lost.len(),
                    "cut off from Postgres: the lease on the coordinator slots is over and other gateways may have \
                     them; no Kafka connections until it is renewed"
                );
            }
            Some(tenure.slots.as_ref().map(|slots| self.take_groups(slots, &lost)).unwrap_or_default())
        });
        let is_over = taken.is_some();
        self.close_beside(taken.unwrap_or_default());
        is_over
    }

    /// Resolves while this gateway is cut off from Postgres and others may do its work.
    pub(crate) async fn cut_off(&self) {
        // The sender is the coordinator's own, so the channel is never closed.
        let _ = self.cut_off.subscribe().wait_for(|cut_off| *cut_off).await;
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        *self.cut_off.borrow()
    }

    /// Does under a group's mutex what must not outlast the lease: who waits for the group is to
    /// learn that it is another gateway's. If Postgres does it after all, then before anybody has the
    /// slot again, or it is fenced ([`Coordinator::renew`]).
    pub(super) async fn within_lease<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::select! {
            done = work => done,
            () = self.cut_off() => Err(StoreError::Unavailable("the lease on the coordinator slots is over".to_owned())),
        }
    }

    fn tell_conflict(&self, other: &Node) {
        if (&other.host, other.port) == (&self.node.host, self.node.port) {
            let lease_ms = self.lease.as_millis() as u64;
            return info!(
                lease_ms,
                "a former process of this gateway was killed; its groups follow when its lease is over"
            );
        }
        warn!(
            node_id = other.node_id,
            host = other.host,
            port = other.port,
            "another gateway has this node id; give each gateway its own --node-id"
        );
    }

    /// Loads the groups of slots that do not serve yet. Those that changed hands meanwhile do not serve
    /// after it either.
    async fn load(self: &Arc<Self>, mine: &BTreeMap<i32, i64>) -> Result<(), StoreError> {
        let new: Vec<i32> = {
            let tenure = self.tenure();
            mine.keys().filter(|slot| !tenure.serving.contains_key(slot)).copied().collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let rows = self.store.groups.load_groups(&new).await?;
        let count = rows.len();
        let mut cells = Vec::new();
        for row in rows {
            match read_group(&row.state) {
                Ok(stored) => cells.extend(self.insert_loaded(&row.group_id, stored)),
                // Members join again; the offsets are not in it.
                Err(error) => error!(group = row.group_id, error, "a stored group cannot be read; it starts anew"),
            }
        }
        let stale = self.change(|tenure| {
            let Some(slots) = &tenure.slots else { return Vec::new() };
            let is_over = tenure.is_lease_over();
            let still = self.mine(slots);
            let (serving, stale): (Vec<i32>, Vec<i32>) =
                new.iter().partition(|slot| !is_over && still.get(slot) == mine.get(slot));
            let taken = self.take_groups(slots, &stale);
            tenure.serving.extend(serving.iter().filter_map(|slot| Some((*slot, *mine.get(slot)?))));
            taken
        });
        self.close_beside(stale);
        for cell in cells {
            let Ok(slot) = self.slot_of(&cell.id) else { continue };
            let active = cell.active.clone().lock_owned().await;
            self.release(Held { cell, active, slot, is_known: true });
        }
        info!(slots = new.len(), groups = count, "coordinating");
        Ok(())
    }

    fn insert_loaded(&self, group_id: &str, stored: StoredGroup) -> Option<Arc<Cell>> {
        if !stored.has_members() {
            self.groups().insert(group_id.to_owned(), Known::Idle(stored));
            return None;
        }
        let group = Group::restore(group_id, &self.settings, stored.clone(), self.clock.now());
        let cell = Arc::new(Cell::new(group_id, group, Some(stored)));
        self.groups().insert(group_id.to_owned(), Known::Active(cell.clone()));
        Some(cell)
    }

    /// A gateway came: it is to have some of the slots.
    async fn give_up_surplus(self: &Arc<Self>, mine: &BTreeMap<i32, i64>, fair_share: usize) -> Result<(), StoreError> {
        let surplus: Vec<i32> = mine.keys().skip(fair_share.max(1)).copied().collect();
        if surplus.is_empty() {
            return Ok(());
        }
        let taken = self.change(|tenure| {
            tenure.serving.retain(|slot, _| !surplus.contains(slot));
            tenure.slots.as_ref().map(|slots| self.take_groups(slots, &surplus)).unwrap_or_default()
        });
        self.close(taken).await;
        let released = self.store.cluster.release_slots(self.node.instance, Some(&surplus)).await?;
        self.change(|tenure| {
            let slots = tenure.slots.iter_mut().flat_map(|slots| &mut slots.slots);
            for slot in slots.filter(|slot| surplus.contains(&slot.slot)) {
                (slot.owner, slot.node_id) = (None, None);
            }
        });
        info!(slots = released, "gave up coordinator slots for another gateway");
        Ok(())
    }

    /// A write was refused: somebody else has the slot.
    pub(super) fn lost_slot(self: &Arc<Self>, lost: SlotLease) {
        let taken = self.change(|tenure| {
            let is_lost = tenure.serving.get(&lost.slot) == Some(&lost.fencing);
            let slots = tenure.slots.as_ref().filter(|_| is_lost)?;
            tenure.serving.remove(&lost.slot);
            Some(self.take_groups(slots, &[lost.slot]))
        });
        self.close_beside(taken.unwrap_or_default());
    }

    /// Out of the map; those with somebody in them, with their slots.
    fn take_groups(&self, all: &Slots, slots: &[i32]) -> Vec<(i32, Arc<Cell>)> {
        let mut taken = Vec::new();
        if slots.is_empty() {
            return taken;
        }
        self.groups().retain(|id, known| {
            let slot = all.of_group(id);
            let is_taken = slots.contains(&slot);
            if let (true, Known::Active(cell)) = (is_taken, &*known) {
                taken.push((slot, cell.clone()));
            }
            !is_taken
        });
        taken
    }

    /// In a task of its own: a group may be held by the caller, or by a request that waits for Postgres.
    fn close_beside(self: &Arc<Self>, taken: Vec<(i32, Arc<Cell>)>) {
        if !taken.is_empty() {
            let this = self.clone();
            self.shutdown.spawn(async move { this.close(taken).await });
        }
    }

    async fn close(&self, groups: Vec<(i32, Arc<Cell>)>) {
        for (slot, cell) in groups {
            let active = cell.active.clone().lock_owned().await;
            let mut held = Held { cell, active, slot: SlotLease { slot, fencing: -1 }, is_known: true };
            let replies = held.active.group.close(GroupError::NotCoordinator);
            held.active.waiting.answer(replies);
            held.active.is_dropped = true;
            held.cell.wake.send_replace(super::Wake::Ended);
        }
    }

    /// Another process had this gateway's node id when it looked last.
    pub(crate) fn is_in_conflict(&self) -> bool {
        self.tenure().in_conflict
    }

    /// Returns when the other gateways know of this one, or are not likely to live. In a conflict they
    /// know the node by the process before.
    pub(crate) async fn known_to_others(&self) -> Result<(), StoreError> {
        if self.tenure().is_loading() || self.is_in_conflict() {
            return Ok(());
        }
        // Who lives has looked by then.
        match timeout(self.lease / 2, self.store.cluster.seen_by_others(self.node.instance, self.lease)).await {
            Ok(seen) => seen,
            Err(_) => Ok(()),
        }
    }

    /// At the end of the process: the others, and the next process of this gateway, need not wait.
    pub(crate) async fn resign(&self) -> Result<(), StoreError> {
        self.change(|tenure| *tenure = Tenure::default());
        self.store.cluster.release_slots(self.node.instance, None).await?;
        self.store.cluster.remove_node(self.node.node_id, self.node.instance).await?;
        Ok(())
    }
}

fn read_group(state: &[u8]) -> Result<StoredGroup, String> {
    let json = std::str::from_utf8(state).map_err(|error| error.to_string())?;
    StoredGroup::from_json(json).map_err(|error| error.to_string())
}
