//! Committed offsets: stored under the group's mutex, forgotten on request.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use groups::{CommitRequest, GroupError, absent};
use store::{Committed, NewOffset, OffsetCommit, OffsetQuery, PartitionKey, Registration};
use wire::ErrorCode;

use super::{handle::Coordinator, lock::LockedGroup};
use crate::error::ApiError;

impl Coordinator {
    /// OffsetCommit. The group stays locked until the offsets are stored, so that no generation
    /// begins between the check and the write.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        version: i16,
        group_id: &str,
        request: &CommitRequest,
        offsets: &BTreeMap<PartitionKey, NewOffset>,
    ) -> Result<BTreeMap<PartitionKey, Committed>, ApiError> {
        let mut locked = match absent::check_commit(version, request) {
            Ok(()) => self.lock_or_make(group_id).await?,
            Err(refusal) => self.lock(group_id).await?.ok_or(refusal)?,
        };
        locked.state.group.check_commit(self.clock.now(), request)?;
        self.store_offsets(&locked, request, offsets).await
    }

    async fn store_offsets(
        &self,
        locked: &LockedGroup,
        request: &CommitRequest,
        offsets: &BTreeMap<PartitionKey, NewOffset>,
    ) -> Result<BTreeMap<PartitionKey, Committed>, ApiError> {
        let group_id = &locked.group.id;
        let commit = OffsetCommit { group: group_id, offsets, slot: Some(locked.slot.lease) };
        let committed = self.membership.within_lease(self.store.groups.commit_offsets(&commit)).await?;
        let committed = committed.ok_or(ErrorCode::NotCoordinator)?;
        if request.generation < 0 {
            let register = |key: &PartitionKey| Registration { group: group_id.clone(), topic_id: key.topic_id };
            let mut to_register = self.to_register.lock().unwrap_or_else(PoisonError::into_inner);
            to_register.extend(offsets.keys().map(register));
        }
        Ok(committed)
    }

    /// OffsetDelete: which of the topics may not lose their offsets, and why.
    ///
    /// # Errors
    /// For the whole request.
    pub(crate) async fn delete_offsets(
        self: &Arc<Self>,
        group_id: &str,
        topics: &BTreeMap<String, Vec<PartitionKey>>,
    ) -> Result<BTreeMap<String, GroupError>, ApiError> {
        if group_id.is_empty() {
            return Err(GroupError::InvalidGroupId.into());
        }
        let locked = self.lock_or_make(group_id).await?;
        if !locked.existed && !self.has_offsets(group_id).await? {
            return Err(absent::delete().into());
        }
        let group = &locked.state.group;
        group.check_offset_delete()?;
        let mut refused = BTreeMap::new();
        let mut partitions = Vec::new();
        for (topic, keys) in topics {
            match group.check_offset_delete_of(topic) {
                Ok(()) => partitions.extend(keys),
                Err(error) => drop(refused.insert(topic.clone(), error)),
            }
        }
        if !partitions.is_empty() {
            self.store.groups.delete_offsets(group_id, &partitions).await?;
        }
        Ok(refused)
    }

    pub(super) async fn has_offsets(&self, group_id: &str) -> Result<bool, ApiError> {
        let query = OffsetQuery { group: group_id, partitions: None };
        Ok(!self.store.groups.fetch_offsets(&[query]).await?.is_empty())
    }
}
