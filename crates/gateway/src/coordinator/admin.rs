//! What administrators ask: which groups there are, who is in them, and that one be forgotten.

use std::{collections::BTreeMap, sync::Arc};

use groups::{DescribedGroup, GroupError, GroupType, ListedGroup, absent};
use store::DeletedGroup;
use wire::ErrorCode;

use super::{Cell, Coordinator, Held, Known, code};
use crate::error::ApiError;

impl Coordinator {
    /// DescribeGroups, for one group.
    pub(crate) async fn describe(
        self: &Arc<Self>,
        version: i16,
        group_id: &str,
    ) -> Result<(DescribedGroup, Option<GroupError>), ApiError> {
        if let Some(held) = self.lock(group_id, false).await? {
            let described = held.active.group.describe();
            self.release(held);
            return Ok((described, None));
        }
        Ok(absent::describe(version, group_id, self.has_offsets(group_id).await?))
    }

    /// ListGroups: the groups that are coordinated here.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Vec<ListedGroup>, ApiError> {
        if self.tenure().is_loading() {
            return Err(ApiError::Code(ErrorCode::CoordinatorLoadInProgress));
        }
        let stored = self.store.groups.groups_with_offsets().await?;
        let mut listed = BTreeMap::new();
        for group_id in stored.into_iter().filter(|group_id| self.slot_of(group_id).is_ok()) {
            let simple = ListedGroup::empty(&group_id, GroupType::Classic, "");
            listed.insert(group_id, simple);
        }
        for cell in self.idle_and_active(&mut listed) {
            let active = cell.active.lock().await;
            if !active.is_dropped {
                listed.insert(cell.id.clone(), active.group.list());
            }
        }
        Ok(listed.into_values().collect())
    }

    fn idle_and_active(&self, listed: &mut BTreeMap<String, ListedGroup>) -> Vec<Arc<Cell>> {
        let mut cells = Vec::new();
        for (id, known) in self.groups().iter() {
            match known {
                Known::Idle(stored) => {
                    let empty = ListedGroup::empty(id, stored.group_type(), stored.protocol_type());
                    listed.insert(id.clone(), empty);
                }
                Known::Active(cell) => cells.push(cell.clone()),
            }
        }
        cells
    }

    /// DeleteGroups, for one group.
    pub(crate) async fn delete(self: &Arc<Self>, group_id: &str) -> Result<(), ApiError> {
        let Some(mut held) = self.lock(group_id, true).await? else { return Err(code(absent::delete())) };
        let result = match held.active.group.check_delete() {
            Err(error) => Err(code(error)),
            Ok(()) => self.delete_held(&mut held).await,
        };
        self.release(held);
        result
    }

    async fn delete_held(self: &Arc<Self>, held: &mut Held) -> Result<(), ApiError> {
        let Some(DeletedGroup { had_state, offsets }) =
            self.store.groups.delete_group(&held.cell.id, held.slot).await?
        else {
            return Err(ApiError::Code(ErrorCode::NotCoordinator));
        };
        let replies = held.active.group.close(GroupError::CoordinatorNotAvailable);
        held.active.waiting.answer(replies);
        if held.is_known || had_state || offsets > 0 { Ok(()) } else { Err(code(absent::delete())) }
    }
}
