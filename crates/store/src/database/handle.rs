use std::{sync::Arc, time::Duration};

use sqlx::{PgConnection, PgPool, Postgres, Row, pool::PoolConnection};
use tokio::sync::OnceCell;

use super::{
    encoding::Encoding,
    pool::{self, Pool},
    tables::Tables,
};
use crate::{config::StoreConfig, error::StoreError};

/// Connections to one database and the names of the tables in it; cheap to clone.
#[derive(Clone)]
pub(crate) struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    config: StoreConfig,
    tables: Tables,
    pool: Pool,
    /// For the signs of life of a gateway and its coordinator slots: under load they would wait for
    /// a connection until other gateways take this one for dead.
    lease_pool: Pool,
    /// It never changes.
    encoding: OnceCell<Encoding>,
}

impl Database {
    /// # Errors
    /// [`StoreError::InvalidConfig`] with the reason.
    pub(crate) fn new(config: StoreConfig) -> Result<Database, StoreError> {
        config.check()?;
        let tables = Tables::new(&config.postgres.schema, &config.postgres.table_prefix)?;
        let pool = Pool::new(&config.postgres)?;
        let lease_pool = pool.reserved(&config.postgres)?;
        pool::for_listening(&config)?; // only to see that its URL is one
        Ok(Database { inner: Arc::new(Inner { config, tables, pool, lease_pool, encoding: OnceCell::new() }) })
    }

    pub(crate) fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    /// The bare pool. [`Database::acquire`] is better where a request waits for an answer: it fails
    /// at once while Postgres is known to be down.
    pub(crate) fn pool(&self) -> &PgPool {
        self.inner.pool.connections()
    }

    /// A connection of the pool.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when none was to be had in time.
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.inner.pool.acquire().await
    }

    /// Whether a connection that a task kept for so long may be used again.
    pub(crate) async fn admits(&self, connection: &mut PgConnection, idle_for: Duration) -> bool {
        self.inner.pool.admits(connection, idle_for).await
    }

    /// The connection for signs of life and coordinator slots.
    pub(crate) async fn acquire_for_lease(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.inner.lease_pool.acquire().await
    }

    /// Takes a statement that was run anyway for a look at the server: it is there and writable, or not.
    pub(crate) fn note_look(&self, usable: bool) {
        self.inner.pool.note_look(usable);
    }

    /// What text can hold here; asked on this connection if it was not asked before.
    ///
    /// # Errors
    /// As every statement.
    pub(crate) async fn encoding(&self, connection: &mut PgConnection) -> Result<Encoding, StoreError> {
        let ask = async {
            let row =
                sqlx::query("SELECT current_setting('server_encoding') AS encoding").fetch_one(connection).await?;
            Ok::<Encoding, StoreError>(Encoding::named(row.try_get("encoding")?))
        };
        self.inner.encoding.get_or_try_init(|| ask).await.copied()
    }

    /// Closes all connections, when they are free.
    pub(crate) async fn close(&self) {
        self.inner.pool.connections().close().await;
        self.inner.lease_pool.connections().close().await;
    }
}
