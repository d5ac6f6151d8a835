//! Exclusive use of a group.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use wire::ErrorCode;

use super::{
    active_group::{ActiveGroup, ActiveState, Wake},
    handle::Coordinator,
    slot::{Found, SlotGroups},
};

/// A group that no other task can use meanwhile, in a slot that was this gateway's when it was locked.
///
/// When it is dropped the group's timer is set, and a group without members is let go from memory.
pub(super) struct LockedGroup {
    pub(super) slot: Arc<SlotGroups>,
    pub(super) group: Arc<ActiveGroup>,
    pub(super) state: OwnedMutexGuard<ActiveState>,
    /// It was not made for this use.
    pub(super) existed: bool,
}

impl LockedGroup {
    /// A group that was in memory before; by now it may be dropped.
    pub(super) async fn again(slot: Arc<SlotGroups>, group: Arc<ActiveGroup>) -> Self {
        let state = group.lock().await;
        Self { slot, group, state, existed: true }
    }
}

impl Drop for LockedGroup {
    fn drop(&mut self) {
        let state = &mut *self.state;
        if state.is_dropped {
            return;
        }
        if state.group.is_idle() && state.waiting.is_empty() {
            state.is_dropped = true;
            self.group.set_wake(Wake::Ended);
            let stored = state.saved.take().filter(|_| !state.group.is_dead());
            return self.slot.let_go(&self.group.id, stored);
        }
        self.group.set_wake(state.group.wake_at().map_or(Wake::Never, Wake::At));
    }
}

impl Coordinator {
    /// `None`: there is no such group in memory, nor in the stored form.
    ///
    /// # Errors
    /// When the group is not coordinated here, or not yet.
    pub(super) async fn lock(self: &Arc<Self>, group_id: &str) -> Result<Option<LockedGroup>, ErrorCode> {
        loop {
            let slot = self.slot_of(group_id)?;
            let Ok(found) = slot.find(group_id, &self.settings, self.clock.now()) else { continue };
            let Some(found) = found else { return Ok(None) };
            if let Some(locked) = self.lock_found(slot, found).await {
                return Ok(Some(locked));
            }
        }
    }

    /// The same; a group that is not there is made.
    pub(super) async fn lock_or_make(self: &Arc<Self>, group_id: &str) -> Result<LockedGroup, ErrorCode> {
        loop {
            let slot = self.slot_of(group_id)?;
            let Ok(found) = slot.find_or_make(group_id, &self.settings, self.clock.now()) else { continue };
            if let Some(locked) = self.lock_found(slot, found).await {
                return Ok(locked);
            }
        }
    }

    /// `None`: look again.
    async fn lock_found(self: &Arc<Self>, slot: Arc<SlotGroups>, found: Found) -> Option<LockedGroup> {
        let Found { group, is_new, existed } = found;
        if is_new {
            self.start_timer(slot.clone(), group.clone());
        }
        let state = group.lock().await;
        let locked = LockedGroup { slot, group, state, existed };
        // The mutex may have been waited for until the lease was over.
        let is_owned = self.membership.slot_of(&locked.group.id) == Ok(locked.slot.lease);
        (is_owned && !locked.state.is_dropped).then_some(locked)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use groups::{JoinRequest, Protocol, Settings};
    use store::SlotLease;

    use super::*;

    const NOW: groups::Millis = 1_700_000_000_000;

    fn slot() -> Arc<SlotGroups> {
        SlotGroups::new(SlotLease { slot: 3, fencing: 1 }, HashMap::new())
    }

    async fn made(slot: &Arc<SlotGroups>) -> LockedGroup {
        let found = slot.find_or_make("g", &Settings::default(), NOW).unwrap();
        assert!(found.is_new && !found.existed);
        LockedGroup::again(slot.clone(), found.group).await
    }

    /// Makes a member.
    fn join(locked: &mut LockedGroup) {
        let request = JoinRequest {
            version: 3,
            member_id: String::new(),
            instance_id: None,
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![Protocol { name: "range".to_owned(), metadata: Default::default() }],
            fresh_uuid: "uuid".to_owned(),
        };
        let (token, _) = locked.state.waiting.join();
        assert!(locked.state.group.join(NOW, token, request).replies.is_empty());
    }

    #[tokio::test]
    async fn a_group_that_nobody_needs_is_let_go_when_it_is_unlocked() {
        let slot = slot();
        let locked = made(&slot).await;
        let wakes = locked.group.wakes();
        drop(locked);
        assert_eq!(*wakes.borrow(), Wake::Ended);
        assert!(slot.find("g", &Settings::default(), NOW).unwrap().is_none());
    }

    #[tokio::test]
    async fn unlocking_sets_the_timer_also_when_a_request_ends_in_the_middle() {
        let slot = slot();
        let mut locked = made(&slot).await;
        let wakes = locked.group.wakes();
        let request = async {
            join(&mut locked);
            std::future::pending::<()>().await;
            drop(locked);
        };
        assert!(tokio::time::timeout(std::time::Duration::from_millis(10), request).await.is_err());
        assert_eq!(*wakes.borrow(), Wake::At(NOW + 3_000), "the initial delay");
        let again = slot.find("g", &Settings::default(), NOW).unwrap().unwrap();
        assert!(again.existed && !again.is_new);
        drop(again.group.lock().await);
    }

    #[tokio::test]
    async fn a_slot_that_is_closed_takes_no_group_back() {
        let slot = slot();
        let mut locked = made(&slot).await;
        let group = locked.group.clone();
        assert_eq!(slot.close().len(), 1);
        assert!(slot.find_or_make("other", &Settings::default(), NOW).is_err());
        join(&mut locked);
        drop(locked);
        group.close().await;
        assert!(group.lock().await.is_dropped);
        assert_eq!(*group.wakes().borrow(), Wake::Ended);
        assert!(slot.find("g", &Settings::default(), NOW).is_err() && slot.active().is_empty());
    }
}
