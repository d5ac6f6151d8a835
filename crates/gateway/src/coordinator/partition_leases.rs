//! What a group's members need in the tables beside their offsets: leases on their partitions
//! (storage.md D9) and registrations (storage.md D10).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::PoisonError,
    time::Duration,
};

use groups::{OwnedPartition, StoredGroup};
use store::{PartitionHold, PartitionKey, Registration, SlotLease, StoreError};
use tokio::time::Instant;
use tracing::debug;

use super::handle::Coordinator;

/// A registration is written again after it.
const REGISTRATION_AGE: Duration = Duration::from_secs(60);

/// A partition that a member of a group owns.
#[derive(Debug, Clone)]
struct Owned {
    group: String,
    partition: OwnedPartition,
}

impl Owned {
    fn topic_partition(&self) -> (&str, i32) {
        (&self.partition.topic, self.partition.partition)
    }
}

impl Coordinator {
    /// Resolves when a generation has its assignment.
    pub(crate) async fn assigned(&self) {
        self.assigned.notified().await;
    }

    /// Renews the partition leases of all groups that are coordinated here when a quarter of their time is
    /// over or members own other partitions than before, and registrations if some are new or it is time:
    /// a statement each, however many groups there are.
    pub(crate) async fn keep_leases(&self) -> Result<(), StoreError> {
        let mut written = self.written.lock().await;
        let mut wanted = std::mem::take(&mut *self.to_register.lock().unwrap_or_else(PoisonError::into_inner));
        let owned = self.owned_partitions().await;
        let partitions = self.partition_keys(&owned).await?;
        let of_members = owned.iter().filter_map(|owned| {
            let key = partitions.get(&owned.topic_partition())?;
            Some(Registration { group: owned.group.clone(), topic_id: key.topic_id })
        });
        wanted.extend(of_members);
        let is_time = written.registered.is_none_or(|at| at.elapsed() >= REGISTRATION_AGE / 2);
        if is_time || !wanted.is_subset(&written.registrations) {
            let list: Vec<Registration> = wanted.iter().cloned().collect();
            self.store.groups.heartbeat_registrations(&list, REGISTRATION_AGE).await?;
            written.registrations = wanted;
            written.registered = Some(Instant::now());
        }
        let holds = self.holds(&owned, &partitions);
        let leases =
            holds.iter().map(|hold| (hold.group.to_owned(), hold.member_id.to_owned(), hold.partition)).collect();
        if written.renewal.is_none_or(|due| due <= Instant::now()) || written.leases != leases {
            self.store.groups.renew_partitions(&holds).await?;
            written.renewal = holds.iter().map(|hold| Instant::now() + hold.duration / 4).min();
            written.leases = leases;
        }
        Ok(())
    }

    async fn owned_partitions(&self) -> Vec<Owned> {
        let mut owned = Vec::new();
        for group in self.active_groups() {
            let state = group.lock().await;
            if let Some(saved) = state.saved.as_ref().filter(|_| !state.is_dropped) {
                owned.extend(owned_by(&group.id, saved));
            }
        }
        owned
    }

    /// Keeps pgQueue's workers of the group off what a new generation assigns to its members.
    pub(super) async fn lease_assigned(&self, group_id: &str, stored: &StoredGroup) -> Result<(), StoreError> {
        let owned: Vec<Owned> = owned_by(group_id, stored).collect();
        let partitions = self.partition_keys(&owned).await?;
        self.store.groups.hold_partitions(&self.holds(&owned, &partitions)).await
    }

    /// The last member left: workers need not wait for the leases to run out.
    pub(super) async fn release_leases(&self, group_id: &str, slot: SlotLease) {
        let released = self.store.groups.release_partitions(group_id, slot);
        if let Err(error) = self.membership.within_lease(released).await {
            debug!(group = group_id, %error, "leases were not released; they run out by themselves");
        }
    }

    async fn partition_keys<'a>(
        &self,
        owned: &'a [Owned],
    ) -> Result<HashMap<(&'a str, i32), PartitionKey>, StoreError> {
        let names: BTreeSet<&str> = owned.iter().map(|owned| owned.topic_partition().0).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let topics = self.store.catalog.topics(&names).await?;
        let found: BTreeMap<&str, _> =
            names.into_iter().zip(topics).filter_map(|(name, topic)| Some((name, topic?))).collect();
        let key = |owned: &'a Owned| {
            let (name, partition) = owned.topic_partition();
            let topic = found.get(name)?;
            let exists = (0..topic.partition_count).contains(&partition);
            exists.then(|| ((name, partition), PartitionKey::new(topic.id, partition)))
        };
        Ok(owned.iter().filter_map(key).collect())
    }

    /// A member's session begins anew when another gateway takes its group over, so its leases last
    /// until that has happened.
    fn holds<'a>(
        &self,
        owned: &'a [Owned],
        partitions: &HashMap<(&'a str, i32), PartitionKey>,
    ) -> Vec<PartitionHold<'a>> {
        let hold = |owned: &'a Owned| {
            let session_timeout = Duration::from_millis(owned.partition.session_timeout_ms.unsigned_abs().into());
            Some(PartitionHold {
                group: &owned.group,
                member_id: &owned.partition.member_id,
                partition: *partitions.get(&owned.topic_partition())?,
                duration: session_timeout + self.membership.lease(),
            })
        };
        owned.iter().filter_map(hold).collect()
    }
}

fn owned_by(group_id: &str, stored: &StoredGroup) -> impl Iterator<Item = Owned> {
    stored.owned_partitions().into_iter().map(|partition| Owned { group: group_id.to_owned(), partition })
}
