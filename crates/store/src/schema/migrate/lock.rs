//! One gateway migrates at a time.
//!
//! The lock is a transaction-level advisory lock in a transaction that stays open on a connection
//! of its own: it ends with that connection whatever happens (B019), and works behind a pooler in
//! transaction mode too, where a session-level lock would stay behind on the server's side. The
//! transaction reads nothing between its statements, so it holds no snapshot that
//! CREATE INDEX CONCURRENTLY or VACUUM would wait for. For the same reason nobody sleeps in
//! `pg_advisory_lock`, whose waiter does hold one.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::Instant;

use crate::{
    config::PostgresConfig,
    database::{Tables, pool},
    error::{Backoff, StoreError},
    schema::advisory::advisory_key,
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Held until it is released or dropped; the connection is closed then, never pooled.
pub(super) struct MigrationLock {
    connection: PgConnection,
}

impl MigrationLock {
    /// Waits while another gateway migrates.
    pub(super) async fn acquire(config: &PostgresConfig, tables: &Tables) -> Result<MigrationLock, StoreError> {
        let deadline = Instant::now() + config.migration_timeout;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut lock = MigrationLock { connection: pool::connect_alone(config).await? };
        while !lock.attempt(tables).await? {
            let pause = backoff.next_delay();
            if Instant::now() + pause > deadline {
                let reason = format!("another gateway migrates since {:?}", config.migration_timeout);
                return Err(StoreError::Contended(reason));
            }
            tokio::time::sleep(pause).await;
        }
        Ok(lock)
    }

    /// `None` if another gateway has it.
    pub(super) async fn try_acquire(
        config: &PostgresConfig,
        tables: &Tables,
    ) -> Result<Option<MigrationLock>, StoreError> {
        let mut lock = MigrationLock { connection: pool::connect_alone(config).await? };
        Ok(if lock.attempt(tables).await? {
            Some(lock)
        } else {
            lock.release().await;
            None
        })
    }

    async fn attempt(&mut self, tables: &Tables) -> Result<bool, StoreError> {
        let key = advisory_key(tables, "migration");
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
        sqlx::raw_sql(begin).execute(&mut self.connection).await?;
        let taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
            .bind(key)
            .fetch_one(&mut self.connection)
            .await?;
        if !taken {
            sqlx::raw_sql("ROLLBACK").execute(&mut self.connection).await?;
        }
        Ok(taken)
    }

    /// Is it still held? Its connection can be lost while another one works.
    pub(super) async fn check(&mut self) -> Result<(), StoreError> {
        sqlx::raw_sql("SELECT 1").execute(&mut self.connection).await?;
        Ok(())
    }

    pub(super) async fn release(self) {
        // Closing ends the transaction and with it the lock, also when this fails.
        let _ = self.connection.close().await;
    }
}
