//! What must survive of a group (storage.md D8): written when a generation completes, read when a
//! gateway takes the group's coordinator slot. What is in `state` is the caller's business.

use sqlx::{AssertSqlSafe, Row};

use crate::{
    cluster::{SlotLease, fence},
    database::Tables,
    error::StoreError,
    groups::Groups,
    groups::leases::ACKED,
};

/// A group as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGroup {
    /// Without NUL.
    pub group_id: String,
    pub generation: i32,
    /// Empty for a simple group.
    pub protocol_type: String,
    /// Offsets of a group with members do not expire.
    pub has_members: bool,
    pub state: Vec<u8>,
}

/// What [`Groups::delete_group`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedGroup {
    pub had_state: bool,
    pub offsets: u64,
}

/// Leases that are deleted in one statement.
const LEASES_AT_ONCE: i64 = 10_000;

impl Groups {
    /// All groups of these slots. Call it after the slots were taken: what their former owner
    /// managed to save is then in it, and later saves of his are refused.
    ///
    /// # Errors
    /// As every statement.
    pub async fn load_groups(&self, slots: &[i32]) -> Result<Vec<StoredGroup>, StoreError> {
        let sql = format!(
            "SELECT group_id, generation, protocol_type, has_members, state FROM {} \
             WHERE slot = ANY($1) ORDER BY group_id",
            self.db.tables().kafka_group
        );
        let mut connection = self.db.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(slots).fetch_all(&mut *connection).await?;
        rows.iter()
            .map(|row| {
                Ok(StoredGroup {
                    group_id: row.try_get(0)?,
                    generation: row.try_get(1)?,
                    protocol_type: row.try_get(2)?,
                    has_members: row.try_get(3)?,
                    state: row.try_get(4)?,
                })
            })
            .collect()
    }

    /// Stores a group in its slot. `false`: the slot is not the caller's any more, or never was, and
    /// nothing was stored. The slot's row is locked until the commit, so that no other gateway can
    /// take it and load the group in between; with KEY SHARE, so that its own lease can be renewed.
    ///
    /// # Errors
    /// As every statement.
    pub async fn save_group(&self, group: &StoredGroup, slot: SlotLease) -> Result<bool, StoreError> {
        let Tables { kafka_group, .. } = self.db.tables();
        let sql = format!(
            "WITH {fence} INSERT INTO {kafka_group} AS g \
               (group_id, slot, fencing, generation, protocol_type, has_members, state) \
             SELECT $3, $1, $2, $4, $5, $6, $7 FROM fence \
             ON CONFLICT (group_id) DO UPDATE SET slot = excluded.slot, fencing = excluded.fencing, \
               generation = excluded.generation, protocol_type = excluded.protocol_type, \
               has_members = excluded.has_members, state = excluded.state, updated_at = now()",
            fence = fence(self.db.tables()),
        );
        let mut connection = self.db.acquire().await?;
        let stored = sqlx::query(AssertSqlSafe(sql))
            .bind(slot.slot)
            .bind(slot.fencing)
            .bind(&group.group_id)
            .bind(group.generation)
            .bind(&group.protocol_type)
            .bind(group.has_members)
            .bind(&group.state)
            .execute(&mut *connection)
            .await?;
        Ok(stored.rows_affected() == 1)
    }

    /// Forgets the state of a group that is empty and has no offsets; its offsets, if it has some
    /// after all, stay. `None`: the slot is another gateway's by now. `Some(false)`: there was none.
    ///
    /// # Errors
    /// As every statement.
    pub async fn delete_group_state(&self, group_id: &str, slot: SlotLease) -> Result<Option<bool>, StoreError> {
        let Tables { kafka_group, .. } = self.db.tables();
        let sql = format!(
            "WITH {fence}, gone AS (DELETE FROM {kafka_group} USING fence WHERE group_id = $3 RETURNING 1) \
             SELECT EXISTS (SELECT FROM gone) FROM fence",
            fence = fence(self.db.tables()),
        );
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(slot.slot)
            .bind(slot.fencing)
            .bind(group_id)
            .fetch_optional(&mut *connection)
            .await?)
    }

    /// Deletes all that is of a group: state, offsets, registrations that no pgQueue worker uses,
    /// and its leases, except those that somebody holds. Works from what is stored, whatever
    /// gateway stored it (B099). `None`: the slot is another gateway's by now, and everything but
    /// leases is still there.
    ///
    /// # Errors
    /// As every statement. Repeating it finishes what an error interrupted.
    pub async fn delete_group(&self, group_id: &str, slot: SlotLease) -> Result<Option<DeletedGroup>, StoreError> {
        let Tables { kafka_group, consumer_offset, consumer_registration, .. } = self.db.tables();
        // First, as pgQueue locks them first; and it may take many statements.
        self.delete_leases_of(group_id).await?;
        let sql = format!(
            "WITH {fence}, \
             groups AS (DELETE FROM {kafka_group} USING fence WHERE group_id = $3 RETURNING 1), \
             offsets AS (DELETE FROM {consumer_offset} USING fence WHERE consumer_group = $3 RETURNING 1), \
             registrations AS (DELETE FROM {consumer_registration} USING fence \
               WHERE consumer_group = $3 AND last_heartbeat_at <= kafka_heartbeat_at) \
             SELECT EXISTS (SELECT FROM groups), (SELECT count(*) FROM offsets) FROM fence",
            fence = fence(self.db.tables()),
        );
        let mut connection = self.db.acquire().await?;
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(slot.slot)
            .bind(slot.fencing)
            .bind(group_id)
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| {
            let offsets: i64 = row.try_get(1)?;
            Ok(DeletedGroup { had_state: row.try_get(0)?, offsets: offsets.unsigned_abs() })
        })
        .transpose()
    }

    async fn delete_leases_of(&self, group_id: &str) -> Result<(), StoreError> {
        let lease = &self.db.tables().message_group_lease;
        let sql = format!(
            "DELETE FROM {lease} WHERE id IN (SELECT id FROM {lease} WHERE consumer_group = $1 \
               AND (lock_owner = {ACKED} OR locked_until < now()) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)"
        );
        let mut connection = self.db.acquire().await?;
        loop {
            let statement = sqlx::query(AssertSqlSafe(sql.clone())).bind(group_id).bind(LEASES_AT_ONCE);
            if statement.execute(&mut *connection).await?.rows_affected() < LEASES_AT_ONCE.unsigned_abs() {
                return Ok(());
            }
        }
    }
}
