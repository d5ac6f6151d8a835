//! Which gateway coordinates which groups (storage.md D8): a lease on each coordinator slot.
//!
//! A slot is only where a group is coordinated. Offsets are stored by group id, so that nothing is
//! lost however gateways come and go (B106). Leases are rows with an expiry and a fencing number
//! that rises at every change of hands; there is no session lock that could outlive its owner (B019).

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::{cluster::Cluster, database::Tables, error::StoreError};

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
    /// one statement; answers how all slots stand. The leases run `lease` from before the call; who
    /// has not renewed in that time must stop to coordinate. A lease that expired without anybody
    /// taking it is simply renewed.
    ///
    /// To be called after [`Cluster::heartbeat_node`], whose rows tell how many gateways share.
    ///
    /// # Errors
    /// As every statement.
    pub async fn keep_slots(&self, instance: Uuid, lease: Duration) -> Result<Slots, StoreError> {
        let mut connection = self.db.acquire_for_lease().await?;
        let rows = sqlx::query(AssertSqlSafe(keep_sql(self.db.tables())))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .fetch_all(&mut *connection)
            .await?;
        let fair_share: i64 = rows.first().map_or(Ok(0), |row| row.try_get(4))?;
        let slots = rows
            .iter()
            .map(|row| {
                Ok(Slot {
                    slot: row.try_get(0)?,
                    fencing: row.try_get(1)?,
                    owner: row.try_get(2)?,
                    node_id: row.try_get(3)?,
                })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(Slots { slots, fair_share: fair_share.max(0) as usize })
    }

    /// Gives up these slots, or all of this gateway; returns how many. Whatever it still tries to
    /// write with their fencing numbers is refused.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_slots(&self, instance: Uuid, slots: Option<&[i32]>) -> Result<u64, StoreError> {
        let sql = format!(
            "UPDATE {} SET lock_owner = NULL, locked_until = '-infinity', fencing = fencing + 1 \
             WHERE lock_owner = $1 AND ($2::int[] IS NULL OR slot = ANY($2))",
            self.db.tables().kafka_coordinator_slot
        );
        let mut connection = self.db.acquire_for_lease().await?;
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(instance).bind(slots).execute(&mut *connection).await?.rows_affected())
    }
}

/// `fencing` also rises for a gateway that takes up again what it has lost in between: that is
/// another tenure. A save that is under way holds its slot's row FOR KEY SHARE: nobody takes it just
/// then (FOR UPDATE), and it is renewed all the same (an UPDATE of other columns).
fn keep_sql(tables: &Tables) -> String {
    let Tables { kafka_coordinator_slot, kafka_node, .. } = tables;
    format!(
        "WITH share AS MATERIALIZED (SELECT ceil(count(*)::numeric / greatest(1, (SELECT count(*) \
             FROM {kafka_node} WHERE heartbeat_at > now() - $2 * interval '1 second')))::bigint AS fair \
           FROM {kafka_coordinator_slot}), \
         mine AS MATERIALIZED (SELECT count(*) AS count FROM {kafka_coordinator_slot} WHERE lock_owner = $1), \
         free AS MATERIALIZED (SELECT slot FROM {kafka_coordinator_slot} \
           WHERE lock_owner IS DISTINCT FROM $1 AND locked_until < now() ORDER BY slot \
           LIMIT (SELECT greatest(0, fair - count) FROM share, mine) FOR UPDATE SKIP LOCKED), \
         kept AS (UPDATE {kafka_coordinator_slot} s SET lock_owner = $1, \
             locked_until = now() + $2 * interval '1 second', \
             fencing = s.fencing + (s.lock_owner IS DISTINCT FROM $1)::int \
           WHERE s.lock_owner = $1 OR s.slot IN (SELECT slot FROM free) \
           RETURNING s.slot, s.fencing) \
         SELECT s.slot, coalesce(kept.fencing, s.fencing), \
           CASE WHEN kept.slot IS NOT NULL THEN $1 WHEN s.lock_owner <> $1 AND s.locked_until > now() THEN s.lock_owner END, \
           (SELECT n.node_id FROM {kafka_node} n WHERE n.heartbeat_at > now() - $2 * interval '1 second' \
             AND n.instance = CASE WHEN kept.slot IS NOT NULL THEN $1 \
               WHEN s.locked_until > now() THEN s.lock_owner END), \
           share.fair \
         FROM share, {kafka_coordinator_slot} s LEFT JOIN kept USING (slot) ORDER BY 1"
    )
}

/// No row if the slot has changed hands; else it cannot until the commit. $1 slot, $2 fencing.
pub(crate) fn fence(tables: &Tables) -> String {
    let slots = &tables.kafka_coordinator_slot;
    format!("fence AS MATERIALIZED (SELECT slot FROM {slots} WHERE slot = $1 AND fencing = $2 FOR KEY SHARE)")
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
