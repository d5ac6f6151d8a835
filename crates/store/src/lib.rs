//! Everything that speaks SQL. Domain types in and out, no wire messages.
//!
//! [`Store`] is the handle: one pool of connections and what is remembered of the database, shared
//! by all clones.

mod append;
mod catalog;
mod config;
mod contention;
mod ddl;
mod error;
mod groups;
mod headers;
mod hub;
mod leases;
mod ledger;
mod maintenance;
mod migrate;

mod nodes;
mod notify;
mod offsets;
mod partition;
mod pool;
mod producers;
mod read;
mod registrations;
mod slots;
mod socket;
mod statements;
mod tables;
mod tail;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::sync::Notify;

pub use append::{Append, AppendConfig, AppendError, AppendReply, Appended, PayloadCompression, Reservation};
pub use catalog::{MAX_PARTITIONS, NewTopic, Topic};
pub use config::StoreConfig;
pub use error::{Backoff, StoreError};
pub use groups::{DeletedGroup, StoredGroup};
pub use hub::{Bounds, Subscription};
pub use leases::PartitionHold;
pub use maintenance::{PartitionInterval, PartitionManager, TimePartitions};
pub use migrate::{MigrateOptions, MigrateReport, SchemaProfile, SchemaStatus};
pub use nodes::{Heartbeat, Leadership, Node};
pub use offsets::{Committed, LiveGroup, NewOffset, OffsetCommit, OffsetQuery, StoredOffset, StuckAhead};
pub use partition::PartitionKey;
pub use read::{Fetched, OffsetAndTimestamp, ReadError, ReadLimit};
pub use registrations::Registration;
pub use slots::{Slot, SlotLease, Slots};
pub use tables::Tables;

use append::Batcher;
use catalog::Catalog;
use hub::Hub;
use pool::Pool;
use statements::Statements;
use tail::TailCache;

/// Handle of the tables in one database; cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    config: StoreConfig,
    tables: Tables,
    pool: Pool,
    /// For the signs of life of a gateway and its coordinator slots: under load they would wait for
    /// a connection until others take the gateway for dead.
    lease_pool: Pool,
    catalog: Catalog,
    statements: Statements,
    batcher: Batcher,
    hub: Arc<Hub>,
    tail: TailCache,
    /// Somebody began to wait for a partition.
    watch_wake: Notify,
    known: nodes::Known,
    hints: notify::Hints,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the configuration: the URL in it holds a password.
        f.debug_struct("Store").field("message", &self.inner.tables.message).finish_non_exhaustive()
    }
}

impl Store {
    /// Checks the settings. Connects when first used, so that it succeeds while Postgres is down.
    /// Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] with the reason.
    pub fn connect(config: StoreConfig) -> Result<Store, StoreError> {
        config.check()?;
        let tables = Tables::new(&config.schema, &config.table_prefix)?;
        let pool = Pool::new(&config)?;
        let lease_pool = pool.reserved(&config)?;
        pool::for_listening(&config)?; // only to see that its URL is one
        let catalog = Catalog::new(config.catalog_ttl);
        let inner = Inner {
            statements: Statements::new(&tables),
            batcher: Batcher::default(),
            hub: Arc::default(),
            tail: TailCache::new(config.tail_cache_bytes),
            watch_wake: Notify::new(),
            known: nodes::Known::default(),
            hints: notify::Hints::new(&tables),
            config,
            tables,
            pool,
            lease_pool,
            catalog,
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    /// The qualified names.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    /// The bare pool. [`Store::acquire`] is better where a request waits for an answer: it fails
    /// at once while Postgres is known to be down.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.inner.pool.connections()
    }

    /// A connection of the pool.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when none was to be had in time.
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
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

    /// Closes all connections, when they are free; nothing can be done with the store after that.
    pub async fn close(&self) {
        self.inner.pool.connections().close().await;
        self.inner.lease_pool.connections().close().await;
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    pub(crate) fn statements(&self) -> &Statements {
        &self.inner.statements
    }

    pub(crate) fn batcher(&self) -> &Batcher {
        &self.inner.batcher
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.inner.hub
    }

    pub(crate) fn tail(&self) -> &TailCache {
        &self.inner.tail
    }

    pub(crate) fn watch_wake(&self) -> &Notify {
        &self.inner.watch_wake
    }

    pub(crate) fn known(&self) -> &nodes::Known {
        &self.inner.known
    }

    pub(crate) fn hints(&self) -> &notify::Hints {
        &self.inner.hints
    }
}
