//! What a group's members need in the tables beside their offsets: leases on their partitions
//! (storage.md D9) and registrations (D10); and what ends by itself: offsets whose
//! retention is over, and the state of groups that have nothing left.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, PoisonError},
    time::Duration,
};

use groups::{OwnedPartition, StoredGroup};
use store::{LiveGroup, PartitionHold, PartitionKey, Registration, SlotLease, StoreError};
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::{Cell, Coordinator, Known};

/// A registration is written again after it.
const REGISTRATION_AGE: Duration = Duration::from_secs(60);

/// What is in the tables already.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    registered: BTreeSet<Registration>,
    /// Group, member and partition of each lease.
    held: BTreeSet<(String, String, PartitionKey)>,
    /// When the first lease is to be written again; `None`: there is none.
    renewal: Option<Instant>,
}

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
    /// Resolves when upkeep is due: a generation has its assignment, or `period` is over.
    pub(crate) async fn upkeep_due(&self, period: Duration) {
        // The time-out is what is waited for.
        let _ = timeout(period, self.assigned.notified()).await;
    }

    /// Renews leases of all groups that are coordinated here when a quarter of their time is over or
    /// they are others than in `kept`, and registrations if some are missing there or `all` is wanted:
    /// a statement each, however many groups there are.
    pub(crate) async fn keep_leases(&self, kept: &mut Kept, all: bool) -> Result<(), StoreError> {
        let mut wanted = std::mem::take(&mut *self.to_register.lock().unwrap_or_else(PoisonError::into_inner));
        let mut owned = Vec::new();
        for cell in self.active_cells() {
            let active = cell.active.lock().await;
            let Some(saved) = active.saved.as_ref().filter(|_| !active.is_dropped) else { continue };
            owned.extend(owned_by(&cell.id, saved));
        }
        let partitions = match owned.as_slice() {
            [] => HashMap::new(),
            owned => self.partition_keys(owned).await?,
        };
        let of_members = owned.iter().filter_map(|owned| {
            let key = partitions.get(&owned.topic_partition())?;
            Some(Registration { group: owned.group.clone(), topic_id: key.topic_id })
        });
        wanted.extend(of_members);
        if all || !wanted.is_subset(&kept.registered) {
            let list: Vec<Registration> = wanted.iter().cloned().collect();
            self.store.groups.heartbeat_registrations(&list, REGISTRATION_AGE).await?;
            kept.registered = wanted;
        }
        let holds = self.holds(&owned, &partitions);
        let held =
            holds.iter().map(|hold| (hold.group.to_owned(), hold.member_id.to_owned(), hold.partition)).collect();
        if kept.renewal.is_none_or(|due| due <= Instant::now()) || kept.held != held {
            self.store.groups.renew_partitions(&holds).await?;
            kept.renewal = holds.iter().map(|hold| Instant::now() + hold.duration / 4).min();
            kept.held = held;
        }
        Ok(())
    }

    /// Keeps pgQueue's workers of the group off what a new generation assigns to its members.
    pub(super) async fn hold_assigned(&self, group_id: &str, stored: &StoredGroup) -> Result<(), StoreError> {
        let owned: Vec<Owned> = owned_by(group_id, stored).collect();
        if owned.is_empty() {
            return Ok(());
        }
        let partitions = self.partition_keys(&owned).await?;
        self.store.groups.hold_partitions(&self.holds(&owned, &partitions)).await
    }

    /// The last member left: workers need not wait for the leases to run out.
    pub(super) async fn release_assigned(&self, group_id: &str, slot: SlotLease) {
        if let Err(error) = self.within_lease(self.store.groups.release_partitions(group_id, slot)).await {
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
                duration: session_timeout + self.lease,
            })
        };
        owned.iter().filter_map(hold).collect()
    }

    /// Forgets offsets whose time is over, leases long ended, and groups that have nothing left.
    pub(crate) async fn expire(self: &Arc<Self>) -> Result<u64, StoreError> {
        let live = self.live_groups().await;
        let slots = self.tenure().serving();
        let expired = self.store.groups.expire_offsets(self.offsets_retention, &slots, &live).await?;
        self.store.groups.forget_partition_leases().await?;
        let with_offsets: BTreeSet<String> = self.store.groups.groups_with_offsets().await?.into_iter().collect();
        let retention = i64::try_from(self.offsets_retention.as_millis()).unwrap_or(i64::MAX);
        let before = self.clock.now().saturating_sub(retention);
        let over: Vec<String> = self
            .groups()
            .iter()
            .filter(|(id, known)| {
                matches!(known, Known::Idle(stored) if stored.state_since() < before) && !with_offsets.contains(*id)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for group_id in over {
            // Locked, so that nobody joins meanwhile.
            let Ok(Some(mut held)) = self.lock(&group_id, false).await else { continue };
            let deleted = match held.active.group.check_delete() {
                Ok(()) => self.store.groups.delete_group_state(&group_id, held.slot).await,
                Err(_) => Ok(None),
            };
            if matches!(deleted, Ok(Some(_))) {
                held.active.saved = None;
            }
            self.release(held);
            deleted?;
        }
        Ok(expired)
    }

    async fn live_groups(&self) -> Vec<LiveGroup> {
        let mut live = Vec::new();
        for cell in self.active_cells() {
            let active = cell.active.lock().await;
            let group = &active.group;
            if active.is_dropped || group.is_empty() {
                continue;
            }
            let needed_topics = group.needed_topics().cloned();
            live.push(LiveGroup { group: cell.id.clone(), generation: group.generation(), needed_topics });
        }
        live
    }

    fn active_cells(&self) -> Vec<Arc<Cell>> {
        let groups = self.groups();
        let active = |known: &Known| match known {
            Known::Active(cell) => Some(cell.clone()),
            Known::Idle(_) => None,
        };
        groups.values().filter_map(active).collect()
    }
}

/// Without those of members whose leases Postgres cannot store.
fn owned_by(group_id: &str, stored: &StoredGroup) -> impl Iterator<Item = Owned> {
    let legible = stored.owned_partitions().into_iter().filter(|partition| !partition.member_id.contains('\0'));
    legible.map(|partition| Owned { group: group_id.to_owned(), partition })
}
