//! Kafka groups in pgQueue's register of consumers (storage.md D10), so that aggressive retention
//! waits for them: it keeps a record until every group that is registered on its topic is past it.
//!
//! A registration ends
//! - with the group's last committed offset on the topic: [`Groups::delete_offsets`],
//!   [`Groups::delete_group`], [`Groups::expire_offsets`];
//! - by [`Groups::unregister`] when a group dies that has no offset there;
//! - with the topic.
//!
//! Never while a pgQueue worker uses it, that is, after a heartbeat that is later than the gateway's
//! last; and never with the group's members alone: a consumer that is switched off and has offsets
//! will come back for its records.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};

use crate::{database::retry::while_contended, error::StoreError, groups::Groups};

/// A group on a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Registration {
    pub group: String,
    pub topic_id: i64,
}

impl Groups {
    /// Registers groups on topics, or tells that they live, in one statement; topics that are gone
    /// are left out. What was written less than `min_age` ago is not written again.
    ///
    /// Answers those where a pgQueue worker has sent a heartbeat too in the last minute: the two
    /// kinds share the group.
    ///
    /// # Errors
    /// As every statement.
    pub async fn heartbeat_registrations(
        &self,
        registrations: &[Registration],
        min_age: Duration,
    ) -> Result<Vec<Registration>, StoreError> {
        if registrations.is_empty() {
            return Ok(Vec::new());
        }
        while_contended!(self.heartbeat_registrations_once(registrations, min_age).await)
    }

    async fn heartbeat_registrations_once(
        &self,
        registrations: &[Registration],
        min_age: Duration,
    ) -> Result<Vec<Registration>, StoreError> {
        // One order for all gateways, so that they do not deadlock.
        let mut sorted: Vec<&Registration> = registrations.iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let sql = format!(
            "WITH asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
             k AS MATERIALIZED (SELECT k.* FROM asynchronously, unnest($1::text[], $2::bigint[]) \
               AS k(consumer_group, topic_id) JOIN {topic} t ON t.id = k.topic_id), \
             heartbeat AS (INSERT INTO {registration} AS r (consumer_group, topic_id, kafka_heartbeat_at) \
               SELECT consumer_group, topic_id, now() FROM k ORDER BY 1, 2 \
               ON CONFLICT (consumer_group, topic_id) DO UPDATE SET last_heartbeat_at = now(), kafka_heartbeat_at = now() \
               WHERE r.kafka_heartbeat_at IS NULL OR r.kafka_heartbeat_at <= now() - $3 * interval '1 second') \
             SELECT consumer_group, topic_id FROM k JOIN {registration} r USING (consumer_group, topic_id) \
             WHERE r.last_heartbeat_at > coalesce(r.kafka_heartbeat_at, '-infinity') \
               AND r.last_heartbeat_at > now() - interval '1 minute'",
            topic = self.db.tables().topic,
            registration = self.db.tables().consumer_registration,
        );
        let mut connection = self.db.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(sorted.iter().map(|registration| registration.group.as_str()).collect::<Vec<&str>>())
            .bind(sorted.iter().map(|registration| registration.topic_id).collect::<Vec<i64>>())
            .bind(min_age.as_secs_f64())
            .fetch_all(&mut *connection)
            .await?;
        rows.iter().map(|row| Ok(Registration { group: row.try_get(0)?, topic_id: row.try_get(1)? })).collect()
    }

    /// For groups that have ended: removes their registrations on topics where they have no offset
    /// and no pgQueue worker is; returns how many.
    ///
    /// # Errors
    /// As every statement.
    pub async fn unregister(&self, groups: &[&str]) -> Result<u64, StoreError> {
        let sql = format!(
            "DELETE FROM {registration} r WHERE r.consumer_group = ANY($1) \
               AND r.last_heartbeat_at <= r.kafka_heartbeat_at \
               AND NOT EXISTS (SELECT FROM {offset} o \
                 WHERE o.consumer_group = r.consumer_group AND o.topic_id = r.topic_id)",
            registration = self.db.tables().consumer_registration,
            offset = self.db.tables().consumer_offset,
        );
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(groups).execute(&mut *connection).await?.rows_affected())
    }
}
