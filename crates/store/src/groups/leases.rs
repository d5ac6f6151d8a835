//! Leases that keep Kafka members and pgQueue workers of one group apart (storage.md D9).
//!
//! pgQueue leases messages; a Kafka member owns whole partitions, with all that will ever arrive
//! there. So the gateway leases partitions, in a table of its own, and a trigger refuses workers
//! the messages of a leased partition (`R__kafka_refuse_lease.sql`): a worker finds its `INSERT`
//! without a row, as if another one had the message, and comes back later.
//!
//! What a worker has leased before stays with it, and it may acknowledge it: the Kafka member
//! starts at `offset_value` and may process the same records (at least once).

use std::time::Duration;

use sqlx::PgConnection;

use crate::{
    cluster::{FENCE, SlotLease},
    database::{Statement, Tables, retry::while_contended, statements},
    error::StoreError,
    groups::Groups,
    partition::PartitionKey,
};

/// `ACKED_LOCK_OWNER` of `datahub.pgqueue.lease_markers`; `locked_until` is 1970 then.
pub(crate) const ACKED: &str = "'__acked__'";

/// `lock_owner` of a partition that was released.
const NOBODY: &str = "''";

/// Fragment: ($1 groups, $2 topic ids, $3 partition ids, $4 owners, $5 seconds from now).
const LEASE_PARTITIONS: &str = "INSERT INTO {kafka_partition_lease} AS l \
      (consumer_group, topic_id, partition_id, lock_owner, locked_until) \
    SELECT k.consumer_group, k.topic_id, k.partition_id, k.lock_owner, now() + k.seconds * interval '1 second' \
    FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::float8[]) \
      AS k(consumer_group, topic_id, partition_id, lock_owner, seconds) \
    JOIN {topic} t ON t.id = k.topic_id ORDER BY 1, 2, 3 \
    ON CONFLICT (consumer_group, topic_id, partition_id) DO UPDATE SET \
      lock_owner = excluded.lock_owner, locked_until = excluded.locked_until";

statements! {
    /// Of leases of partitions.
    pub(super) struct LeaseStatements where fence = FENCE, nobody = NOBODY, lease_partitions = LEASE_PARTITIONS;

    /// Whoever had them.
    hold_partitions: "{lease_partitions}";

    /// Where a quarter of the time is over.
    renew_partitions: "{lease_partitions} \
        WHERE l.locked_until < now() + (excluded.locked_until - now()) * 0.75 \
          AND (l.lock_owner = excluded.lock_owner OR (l.lock_owner <> {nobody} AND l.locked_until < now()))";

    /// ($1 slot, $2 fencing, $3 group).
    release_partitions: "WITH {fence} UPDATE {kafka_partition_lease} \
          SET lock_owner = {nobody}, locked_until = now() FROM fence \
        WHERE consumer_group = $3 AND lock_owner <> {nobody}";

    /// Those that ended an hour ago.
    forget_partition_leases: "DELETE FROM {kafka_partition_lease} WHERE locked_until < now() - interval '1 hour'";
}

/// A partition that a member owns.
#[derive(Debug, Clone, Copy)]
pub struct PartitionHold<'a> {
    pub group: &'a str,
    pub member_id: &'a str,
    pub partition: PartitionKey,
    /// For so long from now.
    pub duration: Duration,
}

impl Groups {
    /// Leases these partitions to their members, all in one statement, whoever of the group had
    /// them before. Partitions of topics that are gone are left out.
    ///
    /// # Errors
    /// As every statement: nothing is leased then, or after [`StoreError::Unavailable`] nobody knows.
    pub async fn hold_partitions(&self, holds: &[PartitionHold<'_>]) -> Result<(), StoreError> {
        while_contended!(self.hold_partitions_on(&mut *self.db.acquire().await?, holds).await)
    }

    /// The same on a connection of the caller's, without the repetition after a lost race: that has
    /// ended the caller's transaction.
    ///
    /// # Errors
    /// As [`Groups::hold_partitions`].
    pub async fn hold_partitions_on(
        &self,
        connection: &mut PgConnection,
        holds: &[PartitionHold<'_>],
    ) -> Result<(), StoreError> {
        self.lease_partitions(self.statements.leases.hold_partitions(), connection, holds).await
    }

    /// The same for partitions that were leased before: writes only where a quarter of the time is
    /// over. What was released in the meantime stays so, and what another member has stays with it.
    ///
    /// # Errors
    /// As [`Groups::hold_partitions`].
    pub async fn renew_partitions(&self, holds: &[PartitionHold<'_>]) -> Result<(), StoreError> {
        while_contended!(self.renew_partitions_on(&mut *self.db.acquire().await?, holds).await)
    }

    /// The same as [`Groups::hold_partitions_on`] is to [`Groups::hold_partitions`].
    ///
    /// # Errors
    /// As [`Groups::hold_partitions`].
    pub async fn renew_partitions_on(
        &self,
        connection: &mut PgConnection,
        holds: &[PartitionHold<'_>],
    ) -> Result<(), StoreError> {
        self.lease_partitions(self.statements.leases.renew_partitions(), connection, holds).await
    }

    /// Lets workers have all partitions of a group at once; returns how many were leased. Nothing
    /// happens if the group's slot is another gateway's by now: its members are, too.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_partitions(&self, group: &str, slot: SlotLease) -> Result<u64, StoreError> {
        self.release_partitions_on(&mut *self.db.acquire().await?, group, slot).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_partitions_on(
        &self,
        connection: &mut PgConnection,
        group: &str,
        slot: SlotLease,
    ) -> Result<u64, StoreError> {
        let statement = self.statements.leases.release_partitions().bind(slot.slot).bind(slot.fencing).bind(group);
        Ok(statement.execute(connection).await?.rows_affected())
    }

    /// Removes leases that ended an hour ago: by now no worker is on its way with an offset that it
    /// read before.
    ///
    /// # Errors
    /// As every statement.
    pub async fn forget_partition_leases(&self) -> Result<u64, StoreError> {
        self.forget_partition_leases_on(&mut *self.db.acquire().await?).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn forget_partition_leases_on(&self, connection: &mut PgConnection) -> Result<u64, StoreError> {
        Ok(self.statements.leases.forget_partition_leases().execute(connection).await?.rows_affected())
    }

    async fn lease_partitions(
        &self,
        statement: Statement<'_>,
        connection: &mut PgConnection,
        holds: &[PartitionHold<'_>],
    ) -> Result<(), StoreError> {
        if holds.is_empty() {
            return Ok(());
        }
        // One order for all gateways, so that they do not deadlock, and each partition of a group once.
        let mut holds: Vec<&PartitionHold<'_>> = holds.iter().collect();
        holds.sort_by_key(|hold| (hold.group, hold.partition));
        holds.dedup_by_key(|hold| (hold.group, hold.partition));
        // Members are told apart by the random part of their ids.
        let encoding = self.db.encoding(connection).await?;
        let owner = |hold: &&PartitionHold<'_>| format!("{}:{}", hold.group, encoding.readable(hold.member_id));
        statement
            .bind(holds.iter().map(|hold| hold.group).collect::<Vec<&str>>())
            .bind(holds.iter().map(|hold| hold.partition.topic_id).collect::<Vec<i64>>())
            .bind(holds.iter().map(|hold| hold.partition.partition_id).collect::<Vec<i32>>())
            .bind(holds.iter().map(owner).collect::<Vec<String>>())
            .bind(holds.iter().map(|hold| hold.duration.as_secs_f64()).collect::<Vec<f64>>())
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// `acked`, for a statement with the group as $1: has it leases that workers have acknowledged? The
/// order makes that one index look-up, where statistics might suggest a scan of the table.
pub(crate) fn acked(tables: &Tables) -> String {
    format!(
        "acked AS MATERIALIZED (SELECT (SELECT true FROM {} \
             WHERE consumer_group = $1 AND locked_until <= to_timestamp(0) \
             ORDER BY consumer_group, locked_until LIMIT 1) IS TRUE AS any_at_all)",
        tables.message_group_lease
    )
}

/// `removed`, for a statement with [`acked`] and partitions in `k`: deletes acknowledged leases of
/// the records in (`after`, `until`] of each partition for which `condition` holds.
///
/// From the records to their leases, never the other way: pgQueue leaves the lease of every record
/// that a group has ever processed. Locked in the order of the records, as workers acknowledge them.
pub(crate) fn remove_acked(tables: &Tables, condition: &str, after: &str, until: &str) -> String {
    let Tables { message, message_group_lease, .. } = tables;
    format!(
        "removed AS (DELETE FROM {message_group_lease} WHERE id IN (SELECT l.id FROM acked, k \
           CROSS JOIN LATERAL (SELECT m.id, m.enqueued_at FROM {message} m \
             WHERE m.topic_id = k.topic_id AND m.partition_id = k.partition_id \
               AND m.enqueue_seq > {after} AND m.enqueue_seq <= {until} ORDER BY m.enqueue_seq OFFSET 0) m \
           CROSS JOIN LATERAL (SELECT l.id FROM {message_group_lease} l WHERE l.message_id = m.id \
             AND l.message_enqueued_at = m.enqueued_at AND l.consumer_group = $1 AND l.lock_owner = {ACKED} \
             FOR UPDATE) l \
           WHERE acked.any_at_all AND {condition}) RETURNING 1)"
    )
}
