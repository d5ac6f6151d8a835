//! Which gateway coordinates which groups (storage.md D8): a lease on each coordinator slot.
//!
//! A slot is only where a group is coordinated. Offsets are stored by group id, so that nothing is
//! lost however gateways come and go (B106). Leases are rows with an expiry and a fencing number
//! that rises at every change of hands; there is no session lock that could outlive its owner (B019).

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{PgConnection, Row, postgres::PgRow};
use uuid::Uuid;

use crate::{cluster::Cluster, database::statements, error::StoreError};

statements! {
    /// Of the table of coordinator slots.
    pub(super) struct SlotStatements;

    /// ($1 instance, $2 lease in seconds) → slot, fencing, owner, node_id, fair_share of all slots.
    keep_slots: include_str!("keep_slots.sql");

    /// ($1 instance, $2 slots or null for all).
    release_slots: "UPDATE {kafka_coordinator_slot} \
          SET lock_owner = NULL, locked_until = '-infinity', fencing = fencing + 1 \
        WHERE lock_owner = $1 AND ($2::int[] IS NULL OR slot = ANY($2))";
}

/// For statements with a slot as $1 and its fencing as $2: no row if the slot has changed hands; else
/// it cannot until the commit.
pub(crate) const FENCE: &str =
    "fence AS MATERIALIZED (SELECT slot FROM {kafka_coordinator_slot} WHERE slot = $1 AND fencing = $2 FOR KEY SHARE)";

/// A slot that a gateway has, and what proves it: writes with an old `fencing` are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotLease {
    pub slot: i32,
    pub fencing: i64,
}

/// A slot as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub slot: i32,
    pub fencing: i64,
    /// Instance of the gateway whose lease has not expired.
    pub owner: Option<Uuid>,
    /// Its node id, while its heartbeat lives.
    pub node_id: Option<i32>,
}

impl Slot {
    fn read(row: &PgRow) -> Result<Slot, StoreError> {
        Ok(Slot {
            slot: row.try_get("slot")?,
            fencing: row.try_get("fencing")?,
            owner: row.try_get("owner")?,
            node_id: row.try_get("node_id")?,
        })
    }
}

/// What [`Cluster::keep_slots`] leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    /// All, by number.
    pub slots: Vec<Slot>,
    /// How many slots one live gateway is to have at the most. Who has more gives the rest up:
    /// first it stops to coordinate them, then [`Cluster::release_slots`].
    pub fair_share: usize,
}

impl Slots {
    /// Those of one gateway.
    pub fn of(&self, instance: Uuid) -> impl Iterator<Item = SlotLease> + '_ {
        let its = self.slots.iter().filter(move |slot| slot.owner == Some(instance));
        its.map(|slot| SlotLease { slot: slot.slot, fencing: slot.fencing })
    }

    /// The slot of a group: the first 4 bytes, big-endian, of SHA-256(group id), modulo their number.
    #[must_use]
    pub fn of_group(&self, group: &str) -> i32 {
        slot_of(group, self.slots.len())
    }
}

/// 0 if there are no slots.
fn slot_of(group: &str, slots: usize) -> i32 {
    let digest = Sha256::digest(group.as_bytes());
    let hash = digest.iter().take(4).fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
    (hash % (slots.max(1) as u64)) as i32
}

impl Cluster {
    /// Renews the leases of this gateway and takes free or expired slots up to its fair share, in
    /// one statement; answers how all slots stand. The leases run `lease` from before the call; a
    /// gateway that has not renewed in that time must stop to coordinate. A lease that expired without
    /// anybody taking it is simply renewed.
    ///
    /// To be called after [`Cluster::heartbeat_node`], whose rows tell how many gateways share.
    ///
    /// # Errors
    /// As every statement.
    pub async fn keep_slots(&self, instance: Uuid, lease: Duration) -> Result<Slots, StoreError> {
        self.keep_slots_on(&mut *self.db.acquire_for_lease().await?, instance, lease).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn keep_slots_on(
        &self,
        connection: &mut PgConnection,
        instance: Uuid,
        lease: Duration,
    ) -> Result<Slots, StoreError> {
        let statement = self.state.slots.keep_slots().bind(instance).bind(lease.as_secs_f64());
        let rows = statement.fetch_all(connection).await?;
        let fair_share: i64 = rows.first().map_or(Ok(0), |row| row.try_get("fair_share"))?;
        let slots = rows.iter().map(Slot::read).collect::<Result<_, StoreError>>()?;
        Ok(Slots { slots, fair_share: fair_share.max(0) as usize })
    }

    /// Gives up these slots, or all of this gateway; returns how many. Whatever it still tries to
    /// write with their fencing numbers is refused.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_slots(&self, instance: Uuid, slots: Option<&[i32]>) -> Result<u64, StoreError> {
        self.release_slots_on(&mut *self.db.acquire_for_lease().await?, instance, slots).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_slots_on(
        &self,
        connection: &mut PgConnection,
        instance: Uuid,
        slots: Option<&[i32]>,
    ) -> Result<u64, StoreError> {
        let statement = self.state.slots.release_slots().bind(instance).bind(slots);
        Ok(statement.execute(connection).await?.rows_affected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_a_group_never_changes_and_all_slots_are_used() {
        // sha256("group") starts with ad936fcb.
        assert_eq!(slot_of("group", 64), 0xad93_6fcb_i64.rem_euclid(64) as i32);
        let mut used: Vec<i32> = (0..1000).map(|n| slot_of(&format!("group-{n}"), 64)).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, (0..64).collect::<Vec<_>>());
        assert_eq!(slot_of("group", 0), 0);
    }
}
