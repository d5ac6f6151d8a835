//! What ends by itself: offsets whose retention is over, and the state of groups that have nothing left.

use std::{collections::BTreeSet, sync::Arc};

use store::{LiveGroup, StoreError};

use super::{handle::Coordinator, slot::Entry};

impl Coordinator {
    /// Forgets offsets whose time is over, and groups that have nothing left. Answers how many offsets they
    /// were.
    pub(crate) async fn expire(self: &Arc<Self>) -> Result<u64, StoreError> {
        let live = self.live_groups().await;
        let slots: Vec<_> = self.served().iter().map(|slot| slot.lease).collect();
        let expired = self.store.groups.expire_offsets(self.offsets_retention, &slots, &live).await?;
        let with_offsets: BTreeSet<String> = self.store.groups.groups_with_offsets().await?.into_iter().collect();
        let retention = i64::try_from(self.offsets_retention.as_millis()).unwrap_or(i64::MAX);
        let before = self.clock.now().saturating_sub(retention);
        let mut over = Vec::new();
        for slot in self.served() {
            slot.for_each(|id, entry| match entry {
                Entry::Idle(stored) if stored.state_since() < before && !with_offsets.contains(id) => {
                    over.push(id.to_owned());
                }
                _ => {}
            });
        }
        for group_id in over {
            self.forget(&group_id).await?;
        }
        Ok(expired)
    }

    async fn forget(self: &Arc<Self>, group_id: &str) -> Result<(), StoreError> {
        // Locked, so that no member joins meanwhile.
        let Ok(Some(mut locked)) = self.lock(group_id).await else { return Ok(()) };
        if locked.state.group.check_delete().is_ok()
            && self.store.groups.delete_group_state(group_id, locked.slot.lease).await?.is_some()
        {
            locked.state.saved = None;
        }
        Ok(())
    }

    async fn live_groups(&self) -> Vec<LiveGroup> {
        let mut live = Vec::new();
        for active in self.active_groups() {
            let state = active.lock().await;
            let group = &state.group;
            if !state.is_dropped && !group.is_empty() {
                let needed_topics = group.needed_topics().cloned();
                live.push(LiveGroup { group: active.id.clone(), generation: group.generation(), needed_topics });
            }
        }
        live
    }
}
