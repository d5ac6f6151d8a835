//! The rooms of this crate, put together.

use std::fmt;

use sqlx::{PgPool, Postgres, pool::PoolConnection};

use crate::{
    catalog::Catalog,
    cluster::Cluster,
    config::StoreConfig,
    database::{Database, Tables},
    error::StoreError,
    groups::Groups,
    log::Log,
    schema::Schema,
};

/// Handle of the tables in one database; cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub log: Log,
    pub groups: Groups,
    pub cluster: Cluster,
    pub catalog: Catalog,
    pub schema: Schema,
    db: Database,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the configuration: the URL in it holds a password.
        f.debug_struct("Store").field("message", &self.db.tables().message).finish_non_exhaustive()
    }
}

impl Store {
    /// Checks the settings. Connects when first used, so that it succeeds while Postgres is down.
    /// Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] with the reason.
    pub fn connect(config: StoreConfig) -> Result<Store, StoreError> {
        let db = Database::new(config)?;
        let cluster = Cluster::new(db.clone());
        Ok(Store {
            log: Log::new(db.clone(), cluster.clone()),
            groups: Groups::new(db.clone()),
            cluster,
            catalog: Catalog::new(db.clone()),
            schema: Schema::new(db.clone()),
            db,
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        self.db.config()
    }

    /// The qualified names.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        self.db.tables()
    }

    /// The bare pool. [`Store::acquire`] is better where a request waits for an answer.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    /// A connection of the pool.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when none was to be had in time; at once while Postgres is known to
    /// be down.
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.db.acquire().await
    }

    /// Removes the topic with everything that is of it; `false` if there is none. See
    /// [`Catalog::delete_topic`].
    ///
    /// # Errors
    /// As [`Catalog::delete_topic`].
    pub async fn delete_topic(&self, name: &str) -> Result<bool, StoreError> {
        let Some(topic_id) = self.catalog.delete_topic(name).await? else { return Ok(false) };
        self.log.forget_topic(topic_id);
        Ok(true)
    }

    /// Closes all connections, when they are free; nothing can be done with the store after that.
    pub async fn close(&self) {
        self.db.close().await;
    }
}
