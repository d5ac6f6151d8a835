//! STUCK_AHEAD: groups whose committed offset is past the end of the log, as after a restored backup
//! or a commit by hand. They would wait for records that other groups have had long ago, or that never
//! come; a fetch there answers OFFSET_OUT_OF_RANGE, so that a Kafka client resets by its own policy.

use std::{
    collections::BTreeSet,
    sync::{MutexGuard, PoisonError},
};

use store::{StoreError, StuckAhead};
use tracing::warn;

use super::handle::Coordinator;

impl Coordinator {
    /// Looks at the groups that are coordinated here and tells of those that were not stuck there
    /// at the last look.
    pub(crate) async fn find_stuck_ahead(&self) -> Result<(), StoreError> {
        let mut found = self.store.groups.stuck_ahead().await?;
        found.retain(|stuck| self.check_owned(&stuck.group).is_ok());
        let key = |stuck: &StuckAhead| (stuck.group.clone(), stuck.partition, stuck.offset);
        let mut last = self.last_stuck_ahead();
        let known: BTreeSet<_> = last.iter().map(key).collect();
        for stuck in found.iter().filter(|stuck| !known.contains(&key(stuck))) {
            warn!(
                group = stuck.group,
                topic = stuck.topic,
                partition = stuck.partition.partition_id,
                offset = stuck.offset,
                distance = stuck.distance,
                "STUCK_AHEAD: a committed offset is past the end of the log"
            );
        }
        *last = found;
        Ok(())
    }

    /// What the last look has found, by group, topic and partition.
    pub(crate) fn stuck_ahead(&self) -> Vec<StuckAhead> {
        self.last_stuck_ahead().clone()
    }

    fn last_stuck_ahead(&self) -> MutexGuard<'_, Vec<StuckAhead>> {
        self.stuck_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
