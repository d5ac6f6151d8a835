//! What administrators ask: which groups there are, which members they have, and that one be forgotten.

use std::{collections::BTreeMap, sync::Arc};

use groups::{DescribedGroup, GroupError, GroupType, ListedGroup, absent};
use store::DeletedGroup;
use wire::ErrorCode;

use super::{handle::Coordinator, slot::Entry};
use crate::error::ApiError;

impl Coordinator {
    /// DescribeGroups, for one group.
    pub(crate) async fn describe(
        self: &Arc<Self>,
        version: i16,
        group_id: &str,
    ) -> Result<(DescribedGroup, Option<GroupError>), ApiError> {
        if let Some(locked) = self.lock(group_id).await? {
            return Ok((locked.state.group.describe(), None));
        }
        Ok(absent::describe(version, group_id, self.has_offsets(group_id).await?))
    }

    /// ListGroups: the groups that are coordinated here.
    pub(crate) async fn list(&self) -> Result<Vec<ListedGroup>, ApiError> {
        if self.membership.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress.into());
        }
        let with_offsets = self.store.groups.groups_with_offsets().await?.into_iter();
        let mut listed: BTreeMap<String, ListedGroup> = with_offsets
            .filter(|group_id| self.check_owned(group_id).is_ok())
            .map(|group_id| (group_id.clone(), ListedGroup::empty(&group_id, GroupType::Classic, "")))
            .collect();
        let mut active = Vec::new();
        for slot in self.served() {
            slot.for_each(|id, entry| match entry {
                Entry::Idle(stored) => {
                    let empty = ListedGroup::empty(id, stored.group_type(), stored.protocol_type());
                    listed.insert(id.to_owned(), empty);
                }
                Entry::Active(group) => active.push(group.clone()),
            });
        }
        for group in active {
            let state = group.lock().await;
            if !state.is_dropped {
                listed.insert(group.id.clone(), state.group.list());
            }
        }
        Ok(listed.into_values().collect())
    }

    /// DeleteGroups, for one group.
    pub(crate) async fn delete(self: &Arc<Self>, group_id: &str) -> Result<(), ApiError> {
        let mut locked = self.lock_or_make(group_id).await?;
        locked.state.group.check_delete()?;
        let deleted = self.store.groups.delete_group(group_id, locked.slot.lease).await?;
        let DeletedGroup { had_state, offsets } = deleted.ok_or(ErrorCode::NotCoordinator)?;
        let state = &mut *locked.state;
        let replies = state.group.close(GroupError::CoordinatorNotAvailable);
        state.waiting.answer(replies);
        if locked.existed || had_state || offsets > 0 { Ok(()) } else { Err(absent::delete().into()) }
    }
}
