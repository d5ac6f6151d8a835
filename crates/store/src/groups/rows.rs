//! What must survive of a group (storage.md D8): written when a generation completes, read when a
//! gateway takes the group's coordinator slot. What is in `state` is the caller's business.

use sqlx::{PgConnection, Row, postgres::PgRow};

use crate::{
    cluster::{FENCE, SlotLease},
    database::statements,
    error::StoreError,
    groups::Groups,
    groups::leases::ACKED,
};

statements! {
    /// Of the stored groups.
    pub(super) struct GroupStatements where fence = FENCE, acked = ACKED;

    /// ($1 slots) → group_id, generation, protocol_type, has_members, state.
    load_groups: "SELECT group_id, generation, protocol_type, has_members, state FROM {kafka_group} \
        WHERE slot = ANY($1) ORDER BY group_id";

    /// ($1 slot, $2 fencing, $3 group id, $4 generation, $5 protocol type, $6 has members, $7 state).
    save_group: "WITH {fence} INSERT INTO {kafka_group} AS g \
          (group_id, slot, fencing, generation, protocol_type, has_members, state) \
        SELECT $3, $1, $2, $4, $5, $6, $7 FROM fence \
        ON CONFLICT (group_id) DO UPDATE SET slot = excluded.slot, fencing = excluded.fencing, \
          generation = excluded.generation, protocol_type = excluded.protocol_type, \
          has_members = excluded.has_members, state = excluded.state, updated_at = now()";

    /// ($1 slot, $2 fencing, $3 group id) → had_state.
    delete_group_state: "WITH {fence}, gone AS (DELETE FROM {kafka_group} USING fence WHERE group_id = $3 RETURNING 1) \
        SELECT EXISTS (SELECT FROM gone) AS had_state FROM fence";

    /// ($1 slot, $2 fencing, $3 group id) → had_state, offsets.
    delete_group: "WITH {fence}, \
          groups AS (DELETE FROM {kafka_group} USING fence WHERE group_id = $3 RETURNING 1), \
          offsets AS (DELETE FROM {consumer_offset} USING fence WHERE consumer_group = $3 RETURNING 1), \
          registrations AS (DELETE FROM {consumer_registration} USING fence \
            WHERE consumer_group = $3 AND last_heartbeat_at <= kafka_heartbeat_at) \
        SELECT EXISTS (SELECT FROM groups) AS had_state, (SELECT count(*) FROM offsets) AS offsets FROM fence";

    /// ($1 group id, $2 how many at the most): those that nobody holds.
    delete_free_leases: "DELETE FROM {message_group_lease} WHERE id IN \
        (SELECT id FROM {message_group_lease} \
          WHERE consumer_group = $1 AND (lock_owner = {acked} OR locked_until < now()) \
          ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)";
}

/// A group as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGroup {
    /// Without NUL.
    pub group_id: String,
    pub generation: i32,
    /// For people who read the table; empty for a simple group.
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

impl StoredGroup {
    fn read(row: &PgRow) -> Result<StoredGroup, StoreError> {
        Ok(StoredGroup {
            group_id: row.try_get("group_id")?,
            generation: row.try_get("generation")?,
            protocol_type: row.try_get("protocol_type")?,
            has_members: row.try_get("has_members")?,
            state: row.try_get("state")?,
        })
    }
}

impl Groups {
    /// All groups of these slots. Call it after the slots were taken: what their former owner
    /// managed to save is then in it, and its later saves are refused.
    ///
    /// # Errors
    /// As every statement.
    pub async fn load_groups(&self, slots: &[i32]) -> Result<Vec<StoredGroup>, StoreError> {
        let mut connection = self.db.acquire().await?;
        let rows = self.statements.groups.load_groups().bind(slots).fetch_all(&mut *connection).await?;
        rows.iter().map(StoredGroup::read).collect()
    }

    /// Stores a group in its slot. `false`: the slot is not the caller's any more, or never was, and
    /// nothing was stored. The slot's row is locked until the commit, so that no other gateway can
    /// take it and load the group in between; with KEY SHARE, so that its own lease can be renewed.
    ///
    /// # Errors
    /// As every statement.
    pub async fn save_group(&self, group: &StoredGroup, slot: SlotLease) -> Result<bool, StoreError> {
        self.save_group_on(&mut *self.db.acquire().await?, group, slot).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn save_group_on(
        &self,
        connection: &mut PgConnection,
        group: &StoredGroup,
        slot: SlotLease,
    ) -> Result<bool, StoreError> {
        let protocol_type = self.db.encoding(connection).await?.readable(&group.protocol_type);
        let statement = self.statements.groups.save_group().bind(slot.slot).bind(slot.fencing);
        let statement = statement.bind(&group.group_id).bind(group.generation).bind(&*protocol_type);
        let stored = statement.bind(group.has_members).bind(&group.state).execute(connection).await?;
        Ok(stored.rows_affected() == 1)
    }

    /// Forgets the state of a group that is empty and has no offsets; its offsets, if it has some
    /// after all, stay. `None`: the slot is another gateway's by now. `Some(false)`: there was none.
    ///
    /// # Errors
    /// As every statement.
    pub async fn delete_group_state(&self, group_id: &str, slot: SlotLease) -> Result<Option<bool>, StoreError> {
        self.delete_group_state_on(&mut *self.db.acquire().await?, group_id, slot).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn delete_group_state_on(
        &self,
        connection: &mut PgConnection,
        group_id: &str,
        slot: SlotLease,
    ) -> Result<Option<bool>, StoreError> {
        let statement = self.statements.groups.delete_group_state().bind(slot.slot).bind(slot.fencing).bind(group_id);
        let row = statement.fetch_optional(connection).await?;
        Ok(row.map(|row| row.try_get("had_state")).transpose()?)
    }

    /// Deletes all that is of a group: state, offsets, registrations that no pgQueue worker uses,
    /// and its leases, except those that a worker holds. Works from what is stored, whatever
    /// gateway stored it (B099). `None`: the slot is another gateway's by now, and everything but
    /// leases is still there.
    ///
    /// # Errors
    /// As every statement. Repeating it finishes what an error interrupted.
    pub async fn delete_group(&self, group_id: &str, slot: SlotLease) -> Result<Option<DeletedGroup>, StoreError> {
        self.delete_group_on(&mut *self.db.acquire().await?, group_id, slot).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn delete_group_on(
        &self,
        connection: &mut PgConnection,
        group_id: &str,
        slot: SlotLease,
    ) -> Result<Option<DeletedGroup>, StoreError> {
        let statements = &self.statements.groups;
        // First, as pgQueue locks them first; and it may take many statements.
        loop {
            let statement = statements.delete_free_leases().bind(group_id).bind(LEASES_AT_ONCE);
            if statement.execute(&mut *connection).await?.rows_affected() < LEASES_AT_ONCE.unsigned_abs() {
                break;
            }
        }
        let statement = statements.delete_group().bind(slot.slot).bind(slot.fencing).bind(group_id);
        let Some(row) = statement.fetch_optional(connection).await? else { return Ok(None) };
        let offsets: i64 = row.try_get("offsets")?;
        Ok(Some(DeletedGroup { had_state: row.try_get("had_state")?, offsets: offsets.unsigned_abs() }))
    }
}
