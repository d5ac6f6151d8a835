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

use sqlx::{PgConnection, Row};

use crate::{
    database::{retry::while_contended, statements},
    error::StoreError,
    groups::Groups,
};

statements! {
    /// Of pgQueue's register of consumers.
    pub(super) struct RegistrationStatements;

    /// ($1 groups, $2 topic ids, $3 seconds within which nothing is written again) → consumer_group,
    /// topic_id of those where a pgQueue worker is.
    heartbeat: "WITH asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
          k AS MATERIALIZED (SELECT k.* FROM asynchronously, unnest($1::text[], $2::bigint[]) \
            AS k(consumer_group, topic_id) JOIN {topic} t ON t.id = k.topic_id), \
          heartbeat AS (INSERT INTO {consumer_registration} AS r (consumer_group, topic_id, kafka_heartbeat_at) \
            SELECT consumer_group, topic_id, now() FROM k ORDER BY 1, 2 \
            ON CONFLICT (consumer_group, topic_id) DO UPDATE SET last_heartbeat_at = now(), kafka_heartbeat_at = now() \
            WHERE r.kafka_heartbeat_at IS NULL OR r.kafka_heartbeat_at <= now() - $3 * interval '1 second') \
        SELECT consumer_group, topic_id FROM k JOIN {consumer_registration} r USING (consumer_group, topic_id) \
        WHERE r.last_heartbeat_at > coalesce(r.kafka_heartbeat_at, '-infinity') \
          AND r.last_heartbeat_at > now() - interval '1 minute'";

    /// ($1 groups).
    unregister: "DELETE FROM {consumer_registration} r WHERE r.consumer_group = ANY($1) \
          AND r.last_heartbeat_at <= r.kafka_heartbeat_at \
          AND NOT EXISTS (SELECT FROM {consumer_offset} o \
            WHERE o.consumer_group = r.consumer_group AND o.topic_id = r.topic_id)";
}

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
        while_contended!(self.heartbeat_registrations_on(&mut *self.db.acquire().await?, registrations, min_age).await)
    }

    /// The same on a connection of the caller's, without the repetition after a lost race: that has
    /// ended the caller's transaction. Makes its commit asynchronous.
    ///
    /// # Errors
    /// As every statement.
    pub async fn heartbeat_registrations_on(
        &self,
        connection: &mut PgConnection,
        registrations: &[Registration],
        min_age: Duration,
    ) -> Result<Vec<Registration>, StoreError> {
        // One order for all gateways, so that they do not deadlock.
        let mut sorted: Vec<&Registration> = registrations.iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let groups: Vec<&str> = sorted.iter().map(|registration| registration.group.as_str()).collect();
        let topic_ids: Vec<i64> = sorted.iter().map(|registration| registration.topic_id).collect();
        let statement = self.statements.registrations.heartbeat().bind(groups).bind(topic_ids);
        let rows = statement.bind(min_age.as_secs_f64()).fetch_all(connection).await?;
        rows.iter()
            .map(|row| Ok(Registration { group: row.try_get("consumer_group")?, topic_id: row.try_get("topic_id")? }))
            .collect()
    }

    /// For groups that have ended: removes their registrations on topics where they have no offset
    /// and no pgQueue worker is; returns how many.
    ///
    /// # Errors
    /// As every statement.
    pub async fn unregister(&self, groups: &[&str]) -> Result<u64, StoreError> {
        self.unregister_on(&mut *self.db.acquire().await?, groups).await
    }

    /// The same on a connection of the caller's.
    ///
    /// # Errors
    /// As every statement.
    pub async fn unregister_on(&self, connection: &mut PgConnection, groups: &[&str]) -> Result<u64, StoreError> {
        Ok(self.statements.registrations.unregister().bind(groups).execute(connection).await?.rows_affected())
    }
}
