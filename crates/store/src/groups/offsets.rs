//! Committed offsets: the rows that pgQueue's clients share (storage.md D1). A committed Kafka
//! offset, the next one to read, equals `offset_value`, the last `enqueue_seq` done.
//!
//! What a pgQueue client does to a row that Kafka wrote: it moves `offset_value` and leaves the
//! other columns. `kafka_offset` tells: metadata and leader epoch count only while both are equal.
//! A row with `offset_value` 0, pgQueue's default, is a committed offset of 0: a pgQueue worker
//! would read from the first record, and so does the Kafka consumer, instead of applying
//! `auto.offset.reset` and skipping with `latest` what the group has never seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use sqlx::{AssertSqlSafe, Row};

use crate::{
    cluster::SlotLease, database::Tables, database::retry::while_contended, error::StoreError, groups::Groups,
    groups::leases, partition::PartitionKey,
};

/// One partition of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewOffset {
    /// ≥ 0
    pub offset: i64,
    pub leader_epoch: Option<i32>,
    pub metadata: String,
    /// OffsetCommit 2–4: when it ceases to count; later commits without it go by the general
    /// retention again.
    pub expires_after: Option<Duration>,
}

/// One commit of one group.
#[derive(Debug)]
pub struct OffsetCommit<'a> {
    /// Without NUL.
    pub group: &'a str,
    /// The last one counts for a partition that stands in a request twice.
    pub offsets: &'a BTreeMap<PartitionKey, NewOffset>,
    /// Stored only while the gateway has this slot. Read without a lock, so that commits do not
    /// stand in line: a commit in the very moment of a take-over may still pass.
    pub slot: Option<SlotLease>,
}

/// How one partition's commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Stored, or there already; with the offset that was there before.
    Stored {
        previous: Option<i64>,
    },
    UnknownPartition,
    /// Postgres stores no NUL in text.
    InvalidMetadata,
}

/// Who asks for which offsets.
#[derive(Debug, Clone, Copy)]
pub struct OffsetQuery<'a> {
    pub group: &'a str,
    /// `None`: all that the group has.
    pub partitions: Option<&'a [PartitionKey]>,
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOffset {
    pub group: String,
    pub topic: String,
    pub partition: PartitionKey,
    pub offset: i64,
    pub leader_epoch: Option<i32>,
    /// Empty where a pgQueue client was the last to commit.
    pub metadata: String,
    /// Milliseconds since 1970 of Kafka's last commit.
    pub committed_at_ms: Option<i64>,
}

/// A group that waits for records whose offsets others have had long ago, or never will
/// (STUCK_AHEAD of pgQueue).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckAhead {
    pub group: String,
    pub topic: String,
    pub partition: PartitionKey,
    pub offset: i64,
    /// How far the offset is past the end of the log, ≥ 1.
    pub distance: i64,
}

/// A group that the gateway coordinates and that has members, or is about to have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveGroup {
    pub group: String,
    /// Counts only if it is the one that is stored.
    pub generation: i32,
    /// Topics whose offsets members need; `None`: all.
    pub needed_topics: Option<BTreeSet<String>>,
}

/// An offset that is the same as before is not written again before this is over. It is what keeps
/// consumers that commit the same offset every few seconds from making dead rows (B054).
const UNCHANGED_FOR: &str = "interval '5 minutes'";

/// A commit removes acknowledged leases of at most so many records before the new offset; older
/// ones do no harm, and a jump over millions must not take minutes.
const TIDIED_RECORDS: i64 = 10_000;

impl Groups {
    /// Commits offsets of many partitions of one group, all in one statement; a group with leases
    /// that pgQueue's workers have acknowledged takes another one. An answer for each partition; `None` as a whole: the slot
    /// is another gateway's by now and nothing was stored.
    ///
    /// Acknowledged leases between the old and the new offset go with it, in both directions: after
    /// a commit that moves backwards the records come again for pgQueue's workers too.
    ///
    /// # Errors
    /// As every statement: then nothing was stored, except after [`StoreError::Unavailable`], when
    /// nobody knows.
    pub async fn commit_offsets(
        &self,
        commit: &OffsetCommit<'_>,
    ) -> Result<Option<BTreeMap<PartitionKey, Committed>>, StoreError> {
        let (legible, illegible): (Vec<_>, Vec<_>) =
            commit.offsets.iter().partition(|(_, new)| !new.metadata.contains('\0'));
        let mut results: BTreeMap<PartitionKey, Committed> =
            illegible.into_iter().map(|(partition, _)| (*partition, Committed::InvalidMetadata)).collect();
        if legible.is_empty() {
            return Ok(Some(results));
        }
        // Most groups have no acknowledged leases, and then nothing of the messages is looked at.
        let mut stored = while_contended!(self.store_offsets(commit, &legible, Acked::Absent).await)?;
        if stored == Stored::AckedPresent {
            stored = while_contended!(self.store_offsets(commit, &legible, Acked::Removed).await)?;
        }
        let Stored::Partitions(stored) = stored else { return Ok(None) };
        results.extend(stored);
        Ok(Some(results))
    }

    async fn store_offsets(
        &self,
        commit: &OffsetCommit<'_>,
        offsets: &[(&PartitionKey, &NewOffset)],
        acked: Acked,
    ) -> Result<Stored, StoreError> {
        let column = |value: fn(&PartitionKey, &NewOffset) -> i64| -> Vec<i64> {
            offsets.iter().map(|(partition, new)| value(partition, new)).collect()
        };
        let partitions: Vec<i32> = offsets.iter().map(|(partition, _)| partition.partition_id).collect();
        let epochs: Vec<Option<i32>> = offsets.iter().map(|(_, new)| new.leader_epoch).collect();
        let metadata: Vec<Option<&str>> =
            offsets.iter().map(|(_, new)| Some(new.metadata.as_str()).filter(|text| !text.is_empty())).collect();
        let expiries: Vec<Option<f64>> =
            offsets.iter().map(|(_, new)| new.expires_after.map(|after| after.as_secs_f64())).collect();
        let mut connection = self.db.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(commit_sql(self.db.tables(), acked)))
            .bind(commit.group)
            .bind(column(|partition, _| partition.topic_id))
            .bind(partitions)
            .bind(column(|_, new| new.offset))
            .bind(epochs)
            .bind(metadata)
            .bind(expiries)
            .bind(commit.slot.map(|slot| slot.slot))
            .bind(commit.slot.map(|slot| slot.fencing))
            .fetch_all(&mut *connection)
            .await?;
        let mut results = Vec::with_capacity(rows.len());
        for row in &rows {
            if !row.try_get::<bool, _>(4)? {
                return Ok(Stored::Fenced);
            }
            if !row.try_get::<bool, _>(5)? {
                return Ok(Stored::AckedPresent);
            }
            let is_known: bool = row.try_get(2)?;
            let committed = match is_known {
                true => Committed::Stored { previous: row.try_get(3)? },
                false => Committed::UnknownPartition,
            };
            results.push((PartitionKey::new(row.try_get(0)?, row.try_get(1)?), committed));
        }
        Ok(Stored::Partitions(results))
    }

    /// Offsets of one or more groups, in one statement, by group, topic and partition. A partition
    /// that is missing from the answer has none, for certain: nothing but an error stands for not
    /// knowing (B008).
    ///
    /// # Errors
    /// As every statement.
    pub async fn fetch_offsets(&self, queries: &[OffsetQuery<'_>]) -> Result<Vec<StoredOffset>, StoreError> {
        let whole: Vec<&str> = queries.iter().filter(|q| q.partitions.is_none()).map(|q| q.group).collect();
        let named = || queries.iter().flat_map(|q| q.partitions.unwrap_or_default().iter().map(|p| (q.group, p)));
        let sql = format!(
            "SELECT o.consumer_group, t.topic_name, o.topic_id, o.partition_id, o.offset_value, \
               CASE WHEN o.kafka_offset = o.offset_value THEN o.kafka_leader_epoch END, \
               coalesce(CASE WHEN o.kafka_offset = o.offset_value THEN o.kafka_metadata END, ''), \
               floor(extract(epoch FROM o.kafka_committed_at) * 1000)::bigint \
             FROM (SELECT * FROM {offset} WHERE consumer_group = ANY($1) \
               UNION SELECT o.* FROM unnest($2::text[], $3::bigint[], $4::int[]) AS k(consumer_group, topic_id, partition_id) \
               JOIN {offset} o USING (consumer_group, topic_id, partition_id)) o \
             JOIN {topic} t ON t.id = o.topic_id ORDER BY 1, 2, 4",
            offset = self.db.tables().consumer_offset,
            topic = self.db.tables().topic,
        );
        let mut connection = self.db.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(whole)
            .bind(named().map(|(group, _)| group).collect::<Vec<&str>>())
            .bind(named().map(|(_, partition)| partition.topic_id).collect::<Vec<i64>>())
            .bind(named().map(|(_, partition)| partition.partition_id).collect::<Vec<i32>>())
            .fetch_all(&mut *connection)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(StoredOffset {
                    group: row.try_get(0)?,
                    topic: row.try_get(1)?,
                    partition: PartitionKey::new(row.try_get(2)?, row.try_get(3)?),
                    offset: row.try_get(4)?,
                    leader_epoch: row.try_get(5)?,
                    metadata: row.try_get(6)?,
                    committed_at_ms: row.try_get(7)?,
                })
            })
            .collect()
    }

    /// Ids of all groups that have committed anything, pgQueue's included, sorted.
    ///
    /// # Errors
    /// As every statement.
    pub async fn groups_with_offsets(&self) -> Result<Vec<String>, StoreError> {
        let sql = format!("SELECT DISTINCT consumer_group FROM {} ORDER BY 1", self.db.tables().consumer_offset);
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *connection).await?)
    }

    /// Deletes what a group has committed for these partitions, and with the last offset of a topic
    /// the registration there; answers those that had an offset. Acknowledged leases of the
    /// partitions go too, as in a commit backwards to 0.
    ///
    /// # Errors
    /// As every statement.
    pub async fn delete_offsets(
        &self,
        group: &str,
        partitions: &[PartitionKey],
    ) -> Result<Vec<PartitionKey>, StoreError> {
        let rows = while_contended!(self.delete_offsets_once(group, partitions).await)?;
        rows.iter().map(|row| Ok(PartitionKey::new(row.try_get(0)?, row.try_get(1)?))).collect()
    }

    async fn delete_offsets_once(
        &self,
        group: &str,
        partitions: &[PartitionKey],
    ) -> Result<Vec<sqlx::postgres::PgRow>, StoreError> {
        let mut sorted = partitions.to_vec();
        sorted.sort_unstable();
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query(AssertSqlSafe(delete_sql(self.db.tables())))
            .bind(group)
            .bind(sorted.iter().map(|partition| partition.topic_id).collect::<Vec<i64>>())
            .bind(sorted.iter().map(|partition| partition.partition_id).collect::<Vec<i32>>())
            .fetch_all(&mut *connection)
            .await?)
    }

    /// Forgets offsets whose time is over, and registrations of the gateway that nothing needs any
    /// more; returns how many offsets. To be called now and then, on every gateway: each one does so
    /// for the groups of its `slots`, and all of them for groups that never had members (KIP-211,
    /// `ClassicGroup.offsetExpirationCondition`).
    ///
    /// An offset's time runs from its commit; in a group without members, from when the last one
    /// left if that was later. Not at all while members of the group need the topic (`live`), nor in
    /// a group with members that `live` does not tell of. A pgQueue worker's heartbeat on the topic
    /// counts like a commit, and an offset that a pgQueue client committed last never expires.
    ///
    /// Up to 5 minutes late, since a commit that changes nothing is not always written; and never
    /// within 5 minutes of a heartbeat of the gateway, which may hide a worker's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn expire_offsets(
        &self,
        retention: Duration,
        slots: &[SlotLease],
        live: &[LiveGroup],
    ) -> Result<u64, StoreError> {
        while_contended!(self.expire_offsets_once(retention, slots, live).await)
    }

    async fn expire_offsets_once(
        &self,
        retention: Duration,
        slots: &[SlotLease],
        live: &[LiveGroup],
    ) -> Result<u64, StoreError> {
        let generation = |live: &LiveGroup| live.needed_topics.is_some().then_some(live.generation);
        // Postgres stores no NUL in text, so no topic has one in its name.
        let needed: Vec<(&str, &str)> = live
            .iter()
            .flat_map(|live| live.needed_topics.iter().flatten().map(|topic| (live.group.as_str(), topic.as_str())))
            .filter(|(_, topic)| !topic.contains('\0'))
            .collect();
        let mut connection = self.db.acquire().await?;
        let deleted: i64 = sqlx::query_scalar(AssertSqlSafe(expire_sql(self.db.tables())))
            .bind(retention.as_secs_f64())
            .bind(slots.iter().map(|slot| slot.slot).collect::<Vec<i32>>())
            .bind(slots.iter().map(|slot| slot.fencing).collect::<Vec<i64>>())
            .bind(live.iter().map(|live| live.group.as_str()).collect::<Vec<&str>>())
            .bind(live.iter().map(generation).collect::<Vec<Option<i32>>>())
            .bind(needed.iter().map(|(group, _)| *group).collect::<Vec<&str>>())
            .bind(needed.iter().map(|(_, topic)| *topic).collect::<Vec<&str>>())
            .fetch_one(&mut *connection)
            .await?;
        Ok(deleted.unsigned_abs())
    }

    /// All groups whose offset is past the end of the log, in one statement, by group, topic and
    /// partition. The end is Kafka's: the ledger counts where all rows are gone.
    ///
    /// # Errors
    /// As every statement.
    pub async fn stuck_ahead(&self) -> Result<Vec<StuckAhead>, StoreError> {
        let Tables { consumer_offset, topic, message, kafka_partition, .. } = self.db.tables();
        let sql = format!(
            "SELECT o.consumer_group, t.topic_name, o.topic_id, o.partition_id, o.offset_value, \
               o.offset_value - ends.seq \
             FROM (SELECT p.topic_id, p.partition_id, \
                 greatest(coalesce(ledger.next_seq - 1, 0), coalesce(last.seq, 0)) AS seq \
               FROM (SELECT DISTINCT topic_id, partition_id FROM {consumer_offset}) p \
               LEFT JOIN {kafka_partition} ledger USING (topic_id, partition_id) \
               LEFT JOIN LATERAL (SELECT m.enqueue_seq AS seq FROM {message} m \
                 WHERE m.topic_id = p.topic_id AND m.partition_id = p.partition_id \
                 ORDER BY m.enqueue_seq DESC LIMIT 1) last ON true) ends \
             JOIN {consumer_offset} o USING (topic_id, partition_id) JOIN {topic} t ON t.id = o.topic_id \
             WHERE o.offset_value > ends.seq ORDER BY 1, 2, 4"
        );
        let mut connection = self.db.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *connection).await?;
        rows.iter()
            .map(|row| {
                Ok(StuckAhead {
                    group: row.try_get(0)?,
                    topic: row.try_get(1)?,
                    partition: PartitionKey::new(row.try_get(2)?, row.try_get(3)?),
                    offset: row.try_get(4)?,
                    distance: row.try_get(5)?,
                })
            })
            .collect()
    }
}

/// What a commit does about leases that pgQueue's workers of the group have acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acked {
    /// It is done only if there are none: cheap, the table of messages is not in the plan.
    Absent,
    /// It removes them.
    Removed,
}

#[derive(Debug, PartialEq, Eq)]
enum Stored {
    Partitions(Vec<(PartitionKey, Committed)>),
    Fenced,
    AckedPresent,
}

/// Leases first, then offsets, as pgQueue's acknowledgement does, so that the two do not deadlock.
fn commit_sql(tables: &Tables, acked: Acked) -> String {
    let Tables { consumer_offset, topic, kafka_coordinator_slot, .. } = tables;
    let guard = leases::acked(tables);
    let removed = leases::remove_acked(
        tables,
        "k.is_known AND (SELECT passed FROM fence)",
        &format!(
            "CASE WHEN k.committed < coalesce(k.previous, 0) THEN k.committed \
               ELSE greatest(coalesce(k.previous, 0), k.committed - {TIDIED_RECORDS}) END"
        ),
        "CASE WHEN k.committed < coalesce(k.previous, 0) THEN 9223372036854775807 ELSE k.committed END",
    );
    let (removed, proceed) = match acked {
        Acked::Absent => ("removed AS (SELECT WHERE false)".to_owned(), "NOT (SELECT any_at_all FROM acked)"),
        Acked::Removed => (removed, "true"),
    };
    format!(
        "WITH fence AS MATERIALIZED (SELECT $8::int IS NULL OR EXISTS (SELECT FROM {kafka_coordinator_slot} \
             WHERE slot = $8 AND fencing = $9) AS passed), \
         k AS MATERIALIZED (SELECT k.*, \
             t.id IS NOT NULL AND k.partition_id BETWEEN 0 AND t.partition_count - 1 AS is_known, \
             o.offset_value AS previous \
           FROM unnest($2::bigint[], $3::int[], $4::bigint[], $5::int[], $6::text[], $7::float8[]) \
             AS k(topic_id, partition_id, committed, leader_epoch, metadata, expires_after) \
           LEFT JOIN {topic} t ON t.id = k.topic_id \
           LEFT JOIN {consumer_offset} o ON o.consumer_group = $1 AND o.topic_id = k.topic_id \
             AND o.partition_id = k.partition_id), \
         {guard}, {removed}, \
         stored AS (INSERT INTO {consumer_offset} AS o (consumer_group, topic_id, partition_id, offset_value, \
             kafka_offset, kafka_leader_epoch, kafka_metadata, kafka_committed_at, kafka_expire_at) \
           SELECT $1, k.topic_id, k.partition_id, k.committed, k.committed, k.leader_epoch, k.metadata, now(), \
             now() + k.expires_after * interval '1 second' \
           FROM k, (SELECT count(*) AS count FROM removed) removed \
           WHERE k.is_known AND (SELECT passed FROM fence) AND removed.count >= 0 AND {proceed} \
           ORDER BY k.topic_id, k.partition_id \
           ON CONFLICT (consumer_group, topic_id, partition_id) DO UPDATE SET \
             offset_value = excluded.offset_value, kafka_offset = excluded.kafka_offset, \
             kafka_leader_epoch = excluded.kafka_leader_epoch, kafka_metadata = excluded.kafka_metadata, \
             kafka_committed_at = excluded.kafka_committed_at, kafka_expire_at = excluded.kafka_expire_at \
           WHERE (o.offset_value, o.kafka_offset, o.kafka_leader_epoch, o.kafka_metadata) IS DISTINCT FROM \
               (excluded.offset_value, excluded.kafka_offset, excluded.kafka_leader_epoch, excluded.kafka_metadata) \
             OR o.kafka_expire_at IS DISTINCT FROM excluded.kafka_expire_at \
             OR o.kafka_committed_at < now() - {UNCHANGED_FOR}) \
         SELECT k.topic_id, k.partition_id, k.is_known, k.previous, fence.passed, {proceed} FROM k, fence"
    )
}

fn delete_sql(tables: &Tables) -> String {
    let Tables { consumer_offset, consumer_registration, .. } = tables;
    let guard = leases::acked(tables);
    let removed = leases::remove_acked(tables, "true", "0", "9223372036854775807");
    format!(
        "WITH k AS MATERIALIZED (SELECT * FROM unnest($2::bigint[], $3::int[]) AS k(topic_id, partition_id)), \
         {guard}, {removed}, \
         gone AS (DELETE FROM {consumer_offset} o USING k, (SELECT count(*) AS count FROM removed) removed \
           WHERE o.consumer_group = $1 AND o.topic_id = k.topic_id AND o.partition_id = k.partition_id \
             AND removed.count >= 0 RETURNING o.id, o.topic_id, o.partition_id), \
         unregistered AS (DELETE FROM {consumer_registration} r \
           WHERE r.consumer_group = $1 AND r.topic_id IN (SELECT topic_id FROM gone) \
             AND r.last_heartbeat_at <= r.kafka_heartbeat_at \
             AND NOT EXISTS (SELECT FROM {consumer_offset} o WHERE o.consumer_group = $1 \
               AND o.topic_id = r.topic_id AND o.id NOT IN (SELECT id FROM gone))) \
         SELECT topic_id, partition_id FROM gone ORDER BY 1, 2"
    )
}

/// `unneeded`: topics of groups that no member needs and nobody has just used, with the time before
/// which the retention of no offset there begins.
fn expire_sql(tables: &Tables) -> String {
    let Tables { consumer_offset, consumer_registration, kafka_group, kafka_coordinator_slot, topic, .. } = tables;
    format!(
        "WITH past AS MATERIALIZED (SELECT now() - $1 * interval '1 second' - {UNCHANGED_FOR} AS limit_at), \
         mine AS MATERIALIZED (SELECT slot FROM unnest($2::int[], $3::bigint[]) AS k(slot, fencing) \
           JOIN {kafka_coordinator_slot} USING (slot, fencing)), \
         live AS MATERIALIZED (SELECT * FROM unnest($4::text[], $5::int[]) AS k(group_id, generation)), \
         needed AS MATERIALIZED (SELECT k.group_id, t.id AS topic_id \
           FROM unnest($6::text[], $7::text[]) AS k(group_id, topic_name) JOIN {topic} t USING (topic_name)), \
         unneeded AS MATERIALIZED (SELECT p.consumer_group, p.topic_id, \
             greatest(CASE WHEN NOT g.has_members THEN g.updated_at END, \
               CASE WHEN r.kafka_heartbeat_at >= r.last_heartbeat_at THEN NULL ELSE r.last_heartbeat_at END) AS used_at \
           FROM (SELECT consumer_group, topic_id FROM {consumer_offset} \
             UNION SELECT consumer_group, topic_id FROM {consumer_registration}) p \
           LEFT JOIN {consumer_registration} r USING (consumer_group, topic_id) \
           LEFT JOIN {kafka_group} g ON g.group_id = p.consumer_group \
           LEFT JOIN live ON live.group_id = p.consumer_group \
           WHERE (g.slot IS NULL OR g.slot IN (SELECT slot FROM mine)) \
             AND CASE WHEN live.group_id IS NULL THEN g.has_members IS NOT TRUE \
               ELSE g.has_members AND g.generation = live.generation \
                 AND (p.consumer_group, p.topic_id) NOT IN (SELECT group_id, topic_id FROM needed) END \
             AND (r.last_heartbeat_at IS NULL OR r.last_heartbeat_at < now() - {UNCHANGED_FOR})), \
         gone AS (DELETE FROM {consumer_offset} o WHERE o.id IN (SELECT o.id FROM past, unneeded \
             JOIN {consumer_offset} o USING (consumer_group, topic_id) \
             WHERE o.kafka_offset = o.offset_value \
               AND CASE WHEN o.kafka_expire_at IS NULL THEN greatest(o.kafka_committed_at, used_at) < limit_at \
                 ELSE o.kafka_expire_at < now() END \
             FOR UPDATE OF o SKIP LOCKED) \
           RETURNING o.id, o.consumer_group, o.topic_id), \
         unregistered AS (DELETE FROM {consumer_registration} r USING past, unneeded u \
           WHERE u.consumer_group = r.consumer_group AND u.topic_id = r.topic_id \
             AND r.last_heartbeat_at <= r.kafka_heartbeat_at AND r.last_heartbeat_at < limit_at \
             AND NOT EXISTS (SELECT FROM {consumer_offset} o WHERE o.consumer_group = r.consumer_group \
               AND o.topic_id = r.topic_id AND o.id NOT IN (SELECT id FROM gone))) \
         SELECT count(*) FROM gone"
    )
}
