//! Persist, then answer.

use groups::{GroupError, Outcome, StoredGroup};
use tracing::warn;

use super::{handle::Coordinator, lock::LockedGroup};

impl Coordinator {
    pub(super) async fn carry_out(&self, locked: &mut LockedGroup, mut outcome: Outcome) {
        if let Some(save) = outcome.save.take() {
            if let Err(error) = self.save(locked, &save).await {
                return self.take_back(locked, outcome, error);
            }
            self.note_saved(locked, save).await;
        }
        locked.state.waiting.answer(outcome.replies);
    }

    fn take_back(&self, locked: &mut LockedGroup, outcome: Outcome, error: GroupError) {
        let state = &mut *locked.state;
        let replies = state.group.undo(self.clock.now(), outcome, error);
        state.waiting.answer(replies);
        if error == GroupError::NotCoordinator {
            let replies = state.group.close(error);
            state.waiting.answer(replies);
            self.lost(locked.slot.lease);
        }
    }

    async fn save(&self, locked: &LockedGroup, save: &StoredGroup) -> Result<(), GroupError> {
        let group_id = &locked.group.id;
        let failed = |error: &dyn std::fmt::Display| {
            warn!(group = group_id, generation = save.generation(), %error, "a group's generation was not stored");
            GroupError::CoordinatorNotAvailable
        };
        let state = save.to_json().map_err(|error| failed(&error))?.into_bytes();
        let row = store::StoredGroup {
            group_id: group_id.clone(),
            generation: save.generation(),
            protocol_type: save.protocol_type().to_owned(),
            has_members: save.has_members(),
            state,
        };
        let membership = &self.membership;
        match membership.within_lease(self.store.groups.save_group(&row, locked.slot.lease)).await {
            // Before the members hear of their partitions, so that no worker takes a record after that.
            Ok(true) => {
                membership.within_lease(self.lease_assigned(group_id, save)).await.map_err(|error| failed(&error))
            }
            Ok(false) => Err(GroupError::NotCoordinator),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn note_saved(&self, locked: &mut LockedGroup, save: StoredGroup) {
        if save.is_assigned() {
            self.assigned.notify_one();
        }
        let has_members = save.has_members();
        let before = locked.state.saved.replace(save);
        if !has_members && before.is_some_and(|before| before.has_members()) {
            self.release_leases(&locked.group.id, locked.slot.lease).await;
        }
    }
}
