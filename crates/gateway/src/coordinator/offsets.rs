//! Committed offsets: stored under the group's mutex, forgotten on request.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use groups::{CommitRequest, GroupError, absent};
use store::{Committed, NewOffset, OffsetCommit, OffsetQuery, PartitionKey, Registration};
use wire::ErrorCode;

use super::{Coordinator, Held, code};
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
        let absent = absent::check_commit(version, request);
        let Some(mut held) = self.lock(group_id, absent.is_ok()).await? else {
            return Err(code(absent.err().unwrap_or(GroupError::IllegalGeneration)));
        };
        let checked = held.active.group.check_commit(self.clock.now(), request);
        let result = match checked {
            Err(error) => Err(code(error)),
            Ok(()) => self.store_offsets(&held, request, offsets).await,
        };
        self.release(held);
        result
    }

    async fn store_offsets(
        &self,
        held: &Held,
        request: &CommitRequest,
        offsets: &BTreeMap<PartitionKey, NewOffset>,
    ) -> Result<BTreeMap<PartitionKey, Committed>, ApiError> {
        let commit = OffsetCommit { group: &held.cell.id, offsets, slot: Some(held.slot) };
        let committed = self.within_lease(self.store.groups.commit_offsets(&commit)).await?;
        let committed = committed.ok_or(ApiError::Code(ErrorCode::NotCoordinator))?;
        if request.generation < 0 {
            let register = |key: &PartitionKey| Registration { group: held.cell.id.clone(), topic_id: key.topic_id };
            let mut to_register = self.to_register.lock().unwrap_or_else(PoisonError::into_inner);
            to_register.extend(offsets.keys().map(register));
        }
        Ok(committed)
    }

    /// Whether this gateway may store and forget the group's offsets now; everyone may tell them.
    pub(crate) fn check_owned(&self, group_id: &str) -> Result<(), ErrorCode> {
        self.slot_of(group_id).map(drop)
    }

    /// OffsetDelete: which of the topics may lose their offsets.
    ///
    /// # Errors
    /// For the whole request.
    pub(crate) async fn delete_offsets(
        self: &Arc<Self>,
        group_id: &str,
        topics: &BTreeMap<String, Vec<PartitionKey>>,
    ) -> Result<BTreeMap<String, GroupError>, ApiError> {
        let Some(held) = self.lock(group_id, true).await? else { return Err(code(absent::delete())) };
        let result = self.delete_offsets_held(&held, topics).await;
        self.release(held);
        result
    }

    async fn delete_offsets_held(
        &self,
        held: &Held,
        topics: &BTreeMap<String, Vec<PartitionKey>>,
    ) -> Result<BTreeMap<String, GroupError>, ApiError> {
        if !held.is_known && !self.has_offsets(&held.cell.id).await? {
            return Err(code(absent::delete()));
        }
        held.active.group.check_offset_delete().map_err(code)?;
        let mut refused = BTreeMap::new();
        let mut partitions = Vec::new();
        for (topic, keys) in topics {
            match held.active.group.check_offset_delete_of(topic) {
                Ok(()) => partitions.extend(keys),
                Err(error) => drop(refused.insert(topic.clone(), error)),
            }
        }
        if !partitions.is_empty() {
            self.store.groups.delete_offsets(&held.cell.id, &partitions).await?;
        }
        Ok(refused)
    }

    pub(super) async fn has_offsets(&self, group_id: &str) -> Result<bool, ApiError> {
        let query = OffsetQuery { group: group_id, partitions: None };
        Ok(!self.store.groups.fetch_offsets(&[query]).await?.is_empty())
    }
}
