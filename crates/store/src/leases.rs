//! Leases that keep Kafka members and pgQueue workers of one group apart (storage.md D9).
//!
//! What it takes, from `receive_batch_for_group` of `datahub.pgqueue.repository` 1.7.0.17: a worker
//! reads the group's `offset_value`, and then for every priority 0..=9 by itself takes the lowest
//! `enqueue_seq` above it whose lease is not acknowledged; if it cannot lease that one, it is done
//! with that priority. So the **head of every priority** that has records above the offset must be
//! leased; one head for the whole partition would let workers pass at the other nine.
//!
//! Three consequences for who uses this module:
//!
//! - A partition without records above the offset has nothing that could be leased. The heads of
//!   records that arrive later must be held when they arrive ([`Store::hold_heads`] again); in
//!   between, a worker may be faster, and then its lease is reported and left alone.
//! - When the offset moves, the leases at the old heads **stay** until they have nearly run out: a
//!   worker that has read the old offset a moment ago still finds them in its way, instead of
//!   records that are committed by now. [`Store::release_heads`] leaves them too.
//! - A lease of our own on a record that ceased to be a head by a commit backwards stays likewise.
//!
//! `lock_owner` is `{group}:{member id}`. pgQueue's workers have a UUID there.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};

use crate::{Store, contention::while_contended, error::StoreError, partition::PartitionKey, tables::Tables};

/// `ACKED_LOCK_OWNER` of `datahub.pgqueue.lease_markers`; `locked_until` is 1970 then.
pub(crate) const ACKED: &str = "'__acked__'";

/// One partition that a member owns.
#[derive(Debug, Clone, Copy)]
pub struct HeadHold<'a> {
    pub group: &'a str,
    pub member_id: &'a str,
    /// For so long from now.
    pub session_timeout: Duration,
    pub partition: PartitionKey,
    /// The heads are the first records from this Kafka offset on; `None`: from the committed one.
    pub after: Option<i64>,
}

/// First record of one priority that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub group: String,
    pub partition: PartitionKey,
    pub offset: i64,
    pub priority: i16,
    /// `None`: it is leased for the member. Else somebody has it, most likely a pgQueue worker.
    pub held_by: Option<OtherHolder>,
}

/// Who has a head that was to be leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHolder {
    /// Empty if the lease was taken in the same moment.
    pub lock_owner: String,
    /// Zero if its lease was taken in the same moment.
    pub remaining: Duration,
}

/// `lock_owner` of a member's leases.
#[must_use]
pub fn lock_owner(group: &str, member_id: &str) -> String {
    format!("{group}:{member_id}")
}

impl Store {
    /// Leases the heads of these partitions for their members, all in one statement, and renews
    /// leases of theirs of which less than half is left. An unexpired lease of anybody else is left
    /// alone, unless its `lock_owner` is one of `former_owners`: members that had the partitions
    /// in an earlier generation. The answer has every head, also those held by others.
    ///
    /// The commit is asynchronous: a crash of the server may lose leases of the last moments.
    ///
    /// # Errors
    /// As every statement: nothing is leased then, or after [`StoreError::Unavailable`] nobody knows.
    pub async fn hold_heads(&self, holds: &[HeadHold<'_>], former_owners: &[String]) -> Result<Vec<Head>, StoreError> {
        while_contended!(self.hold_heads_once(holds, former_owners, false).await)
    }

    /// The same for the regular renewal, when `holds` has all partitions of all their members: also
    /// removes leases of these members that are no heads any more and have nearly run out, and what
    /// has long expired in their groups. Best called every quarter of the session time-out or more
    /// often.
    ///
    /// # Errors
    /// As [`Store::hold_heads`].
    pub async fn renew_heads(&self, holds: &[HeadHold<'_>], former_owners: &[String]) -> Result<Vec<Head>, StoreError> {
        while_contended!(self.hold_heads_once(holds, former_owners, true).await)
    }

    /// Lets others have the heads of these partitions at once; returns how many leases went.
    /// `after` must be what it was when they were held, `None` mostly.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_heads(&self, holds: &[HeadHold<'_>]) -> Result<u64, StoreError> {
        while_contended!(self.release_heads_once(holds).await)
    }

    async fn hold_heads_once(
        &self,
        holds: &[HeadHold<'_>],
        former_owners: &[String],
        renewal: bool,
    ) -> Result<Vec<Head>, StoreError> {
        if holds.is_empty() {
            return Ok(Vec::new());
        }
        let sql = hold_sql(self.tables());
        let columns = Columns::of(holds);
        let mut connection = self.acquire().await?;
        let rows = columns.bind_to(&sql).bind(former_owners).bind(renewal).fetch_all(&mut *connection).await?;
        rows.iter()
            .map(|row| {
                let is_held: bool = row.try_get(5)?;
                let remaining: Option<i64> = row.try_get(7)?;
                let other = OtherHolder {
                    lock_owner: row.try_get::<Option<String>, _>(6)?.unwrap_or_default(),
                    remaining: Duration::from_millis(remaining.unwrap_or(0).max(0).unsigned_abs()),
                };
                Ok(Head {
                    group: row.try_get(0)?,
                    partition: PartitionKey::new(row.try_get(1)?, row.try_get(2)?),
                    offset: row.try_get::<i64, _>(3)? - 1,
                    priority: row.try_get(4)?,
                    held_by: (!is_held).then_some(other),
                })
            })
            .collect()
    }

    async fn release_heads_once(&self, holds: &[HeadHold<'_>]) -> Result<u64, StoreError> {
        if holds.is_empty() {
            return Ok(0);
        }
        let Tables { message_group_lease, .. } = self.tables();
        let sql = format!(
            "WITH {heads} DELETE FROM {message_group_lease} WHERE id IN ( \
               SELECT l.id FROM heads h JOIN {message_group_lease} l ON l.message_id = h.id \
                 AND l.message_enqueued_at = h.enqueued_at AND l.consumer_group = h.consumer_group \
               WHERE l.lock_owner = h.lock_owner \
               ORDER BY h.topic_id, h.partition_id, h.priority FOR UPDATE OF l)",
            heads = heads(self.tables()),
        );
        let columns = Columns::of(holds);
        let mut connection = self.acquire().await?;
        Ok(columns.bind_to(&sql).execute(&mut *connection).await?.rows_affected())
    }
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

impl Store {
    /// Leases these partitions to their members, all in one statement, whoever had them before, and
    /// renews leases of which a quarter is over. Partitions of topics that are gone are left out.
    ///
    /// # Errors
    /// As every statement: nothing is leased then, or after [`StoreError::Unavailable`] nobody knows.
    pub async fn hold_partitions(&self, holds: &[PartitionHold<'_>]) -> Result<(), StoreError> {
        if holds.is_empty() {
            return Ok(());
        }
        while_contended!(self.hold_partitions_once(holds).await)
    }

    async fn hold_partitions_once(&self, holds: &[PartitionHold<'_>]) -> Result<(), StoreError> {
        let mut holds: Vec<&PartitionHold<'_>> = holds.iter().collect();
        // One order for all gateways, so that they do not deadlock, and each partition of a group once.
        holds.sort_by_key(|hold| (hold.group, hold.partition));
        holds.dedup_by_key(|hold| (hold.group, hold.partition));
        let Tables { kafka_partition_lease, topic, .. } = self.tables();
        let sql = format!(
            "INSERT INTO {kafka_partition_lease} AS l \
               (consumer_group, topic_id, partition_id, lock_owner, locked_until) \
             SELECT k.consumer_group, k.topic_id, k.partition_id, k.lock_owner, now() + k.seconds * interval '1 second' \
             FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::float8[]) \
               AS k(consumer_group, topic_id, partition_id, lock_owner, seconds) \
             JOIN {topic} t ON t.id = k.topic_id ORDER BY 1, 2, 3 \
             ON CONFLICT (consumer_group, topic_id, partition_id) DO UPDATE SET \
               lock_owner = excluded.lock_owner, locked_until = excluded.locked_until \
             WHERE l.lock_owner <> excluded.lock_owner \
               OR l.locked_until < now() + (excluded.locked_until - now()) * 0.75"
        );
        let mut connection = self.acquire().await?;
        sqlx::query(AssertSqlSafe(sql))
            .bind(holds.iter().map(|hold| hold.group).collect::<Vec<&str>>())
            .bind(holds.iter().map(|hold| hold.partition.topic_id).collect::<Vec<i64>>())
            .bind(holds.iter().map(|hold| hold.partition.partition_id).collect::<Vec<i32>>())
            .bind(holds.iter().map(|hold| lock_owner(hold.group, hold.member_id)).collect::<Vec<String>>())
            .bind(holds.iter().map(|hold| hold.duration.as_secs_f64()).collect::<Vec<f64>>())
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Lets others have the partitions of these members at once; returns how many they had.
    ///
    /// # Errors
    /// As every statement.
    pub async fn release_partitions(&self, group: &str, member_ids: &[&str]) -> Result<u64, StoreError> {
        let sql = format!(
            "UPDATE {} SET locked_until = now() \
             WHERE consumer_group = $1 AND lock_owner = ANY($2) AND locked_until > now()",
            self.tables().kafka_partition_lease
        );
        let owners: Vec<String> = member_ids.iter().map(|member_id| lock_owner(group, member_id)).collect();
        let mut connection = self.acquire().await?;
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(group).bind(owners).execute(&mut *connection).await?.rows_affected())
    }

    /// Removes leases that ended an hour ago: no worker that read an offset before is still on its
    /// way with it.
    ///
    /// # Errors
    /// As every statement.
    pub async fn forget_partition_leases(&self) -> Result<u64, StoreError> {
        let sql = format!(
            "DELETE FROM {} WHERE locked_until < now() - interval '1 hour'",
            self.tables().kafka_partition_lease
        );
        let mut connection = self.acquire().await?;
        Ok(sqlx::query(AssertSqlSafe(sql)).execute(&mut *connection).await?.rows_affected())
    }
}

/// The parameters $1 to $6.
struct Columns<'a> {
    groups: Vec<&'a str>,
    lock_owners: Vec<String>,
    timeouts: Vec<f64>,
    topic_ids: Vec<i64>,
    partition_ids: Vec<i32>,
    after: Vec<Option<i64>>,
}

type Statement = sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments>;

impl<'a> Columns<'a> {
    /// In the order in which a worker leases, and each partition of a group once.
    fn of(holds: &[HeadHold<'a>]) -> Columns<'a> {
        let mut holds: Vec<&HeadHold<'a>> = holds.iter().collect();
        holds.sort_by_key(|hold| (hold.group, hold.partition));
        holds.dedup_by_key(|hold| (hold.group, hold.partition));
        Columns {
            groups: holds.iter().map(|hold| hold.group).collect(),
            lock_owners: holds.iter().map(|hold| lock_owner(hold.group, hold.member_id)).collect(),
            timeouts: holds.iter().map(|hold| hold.session_timeout.as_secs_f64()).collect(),
            topic_ids: holds.iter().map(|hold| hold.partition.topic_id).collect(),
            partition_ids: holds.iter().map(|hold| hold.partition.partition_id).collect(),
            after: holds.iter().map(|hold| hold.after).collect(),
        }
    }

    fn bind_to(self, sql: &str) -> Statement {
        let groups: Vec<String> = self.groups.into_iter().map(str::to_owned).collect();
        sqlx::query(AssertSqlSafe(sql.to_owned()))
            .bind(groups)
            .bind(self.lock_owners)
            .bind(self.timeouts)
            .bind(self.topic_ids)
            .bind(self.partition_ids)
            .bind(self.after)
    }
}

/// The first record above the offset of each priority, acknowledged ones passed over: `heads` with
/// the message's key and the columns of `k`.
///
/// Priority 5, the default, is found with the unique index, the others with the dequeue index,
/// which in the lean profile leaves out just that one. The rows' comparison and their order are
/// such that no other index serves: read by `enqueue_seq`, a priority that is rare or absent would
/// cost all records above the offset. Acknowledgement is asked for by a scalar subquery, since a
/// join might be planned the wrong way round.
fn heads(tables: &Tables) -> String {
    let Tables { consumer_offset, message, message_group_lease, .. } = tables;
    let head = |condition: &str, order: &str| {
        format!(
            "SELECT m.id, m.enqueued_at, m.enqueue_seq, m.priority FROM {message} m \
             WHERE m.topic_id = k.topic_id AND m.partition_id = k.partition_id AND {condition} \
               AND (SELECT l.lock_owner FROM {message_group_lease} l WHERE l.message_id = m.id \
                 AND l.message_enqueued_at = m.enqueued_at AND l.consumer_group = k.consumer_group) \
                 IS DISTINCT FROM {ACKED} \
             ORDER BY {order} LIMIT 1"
        )
    };
    format!(
        "asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
         k AS MATERIALIZED (SELECT k.consumer_group, k.lock_owner, k.seconds, k.topic_id, k.partition_id, \
             coalesce(k.after, o.offset_value, 0) AS after \
           FROM asynchronously, unnest($1::text[], $2::text[], $3::float8[], $4::bigint[], $5::int[], $6::bigint[]) \
             AS k(consumer_group, lock_owner, seconds, topic_id, partition_id, after) \
           LEFT JOIN {consumer_offset} o USING (consumer_group, topic_id, partition_id)), \
         heads AS MATERIALIZED (SELECT k.*, h.* FROM k \
           CROSS JOIN LATERAL (SELECT m.enqueue_seq AS seq FROM {message} m \
             WHERE m.topic_id = k.topic_id AND m.partition_id = k.partition_id AND m.enqueue_seq > k.after \
             ORDER BY m.enqueue_seq LIMIT 1) first \
           CROSS JOIN LATERAL (({default}) UNION ALL \
             SELECT o.* FROM unnest('{{0,1,2,3,4,6,7,8,9}}'::smallint[]) AS p(priority) \
             CROSS JOIN LATERAL ({other}) o) h)",
        default = head("m.enqueue_seq >= first.seq AND m.priority = 5", "m.enqueue_seq"),
        other = head(
            "m.priority <> 5 AND (m.priority, m.enqueue_seq) >= (p.priority, first.seq) AND m.priority <= p.priority",
            "m.priority, m.enqueue_seq",
        ),
    )
}

/// $1 to $6 as [`Columns`], $7 former owners, $8 whether it is the regular renewal.
fn hold_sql(tables: &Tables) -> String {
    let Tables { message_group_lease, .. } = tables;
    format!(
        "WITH {heads}, \
         held AS (INSERT INTO {message_group_lease} AS l \
             (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
           SELECT h.id, h.enqueued_at, h.consumer_group, h.lock_owner, now() + h.seconds * interval '1 second' \
           FROM heads h ORDER BY h.topic_id, h.partition_id, h.priority \
           ON CONFLICT (message_id, message_enqueued_at, consumer_group) DO UPDATE SET \
             lock_owner = excluded.lock_owner, locked_until = excluded.locked_until \
           WHERE l.lock_owner <> {ACKED} AND (l.locked_until < now() OR l.lock_owner = ANY($7::text[]) \
             OR (l.lock_owner = excluded.lock_owner \
               AND l.locked_until < now() + (excluded.locked_until - now()) / 2)) \
           RETURNING message_id, message_enqueued_at, consumer_group), \
         swept AS (DELETE FROM {message_group_lease} WHERE $8 AND id IN ( \
           SELECT l.id FROM (SELECT consumer_group, lock_owner, max(seconds) AS seconds FROM k GROUP BY 1, 2) owner \
           JOIN {message_group_lease} l ON l.consumer_group = owner.consumer_group AND l.locked_until > to_timestamp(0) \
           WHERE ((l.lock_owner = owner.lock_owner \
                AND l.locked_until < now() + owner.seconds / 4 * interval '1 second') \
               OR l.locked_until < now() - interval '1 hour') \
             AND NOT EXISTS (SELECT FROM heads h WHERE h.id = l.message_id \
               AND h.enqueued_at = l.message_enqueued_at AND h.consumer_group = l.consumer_group) \
           FOR UPDATE OF l SKIP LOCKED)) \
         SELECT h.consumer_group, h.topic_id, h.partition_id, h.enqueue_seq, h.priority, \
           held.message_id IS NOT NULL OR l.lock_owner IS NOT DISTINCT FROM h.lock_owner, l.lock_owner, \
           floor(extract(epoch FROM l.locked_until - now()) * 1000)::bigint \
         FROM heads h \
         LEFT JOIN held ON held.message_id = h.id AND held.message_enqueued_at = h.enqueued_at \
           AND held.consumer_group = h.consumer_group \
         LEFT JOIN {message_group_lease} l ON l.message_id = h.id AND l.message_enqueued_at = h.enqueued_at \
           AND l.consumer_group = h.consumer_group \
         ORDER BY 1, 2, 3, 5",
        heads = heads(tables),
    )
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
