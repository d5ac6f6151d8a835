//! What the store needs to know. The gateway fills it from its options.

use std::time::Duration;

use crate::{database::Tables, error::StoreError, log::AppendConfig, schema::PartitionInterval};

/// Settings of a [`Store`](crate::Store); [`StoreConfig::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `postgres://user:password@host:port/database`, with libpq's parameters (`sslmode`, …).
    /// A pooler in transaction mode must keep track of prepared statements (B053; PgBouncer 1.21 or
    /// later), and the time-outs below stay behind on the connections that it shares.
    pub database_url: String,
    /// The same database past such a pooler, for LISTEN; `None`: `database_url`.
    pub direct_database_url: Option<String>,
    /// Postgres schema of the queue tables: `[a-z_][a-z0-9_]*`, at most 63 bytes.
    pub schema: String,
    /// Their names' first part: `[a-z_][a-z0-9_]*`, at most [`Tables::LONGEST_PREFIX`] bytes.
    pub table_prefix: String,
    /// Connections of the pool at the most, at least 1: the gateway never holds more, whatever the
    /// number of Kafka connections, beside one for its lease on coordinator slots and, where there are
    /// several gateways, one for LISTEN. A migration uses two more while it runs.
    pub max_connections: u32,
    /// Connections that are kept open when idle; 0 is allowed.
    pub min_connections: u32,
    /// How long a request waits for a connection before it is told to try again.
    pub acquire_timeout: Duration,
    /// `statement_timeout` of the pool's connections; zero is none.
    pub statement_timeout: Duration,
    /// `lock_timeout` of the pool's connections; zero is none.
    pub lock_timeout: Duration,
    /// Length of the time partitions of message.
    pub partition_interval: PartitionInterval,
    /// How many time partitions are kept ahead of the present one, 1..=1000.
    pub partition_premake: u32,
    /// How long a topic is believed to be as it was last seen.
    pub catalog_ttl: Duration,
    /// How often rows that others append are looked for while somebody waits for them.
    pub poll_interval: Duration,
    /// Bytes of records at the ends of partitions that are kept for readers; 0 keeps none.
    pub tail_cache_bytes: usize,
    pub append: AppendConfig,
}

impl StoreConfig {
    /// The defaults, for one database.
    #[must_use]
    pub fn new(database_url: impl Into<String>) -> StoreConfig {
        StoreConfig {
            database_url: database_url.into(),
            direct_database_url: None,
            schema: "queue".to_owned(),
            table_prefix: "metadata_queue".to_owned(),
            max_connections: 16,
            min_connections: 0,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            partition_interval: PartitionInterval::Day,
            partition_premake: 4,
            catalog_ttl: Duration::from_secs(1),
            poll_interval: Duration::from_millis(125),
            tail_cache_bytes: 32 * 1024 * 1024,
            append: AppendConfig::default(),
        }
    }

    /// Refuses what cannot work, in words.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        Tables::new(&self.schema, &self.table_prefix)?;
        let refuse = |reason: String| Err(StoreError::InvalidConfig(reason));
        if self.max_connections == 0 {
            return refuse("at least 1 database connection is needed".to_owned());
        }
        if self.min_connections > self.max_connections {
            return refuse(format!(
                "the minimum of database connections ({}) is above the maximum ({})",
                self.min_connections, self.max_connections
            ));
        }
        if !(1..=1000).contains(&self.partition_premake) {
            return refuse(format!("{} time partitions ahead: must be 1 to 1000", self.partition_premake));
        }
        Ok(())
    }
}
