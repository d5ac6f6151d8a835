//! Every setting of the store, once: type, default, unit and documentation. Those with a flag are options of the
//! gateway; the others have one value everywhere but in tests.

mod append;
mod postgres;

use std::time::Duration;

use clap::{Args, Command, FromArgMatches};

use crate::{database::Tables, error::StoreError};
pub use append::AppendConfig;
pub use postgres::PostgresConfig;

/// Settings of a [`Store`](crate::Store).
#[derive(Debug, Clone, Args)]
pub struct StoreConfig {
    #[command(flatten)]
    pub postgres: PostgresConfig,

    #[command(flatten)]
    pub append: AppendConfig,

    /// Bytes of records at the ends of partitions that are kept in memory for their readers; 0 keeps none
    #[arg(long, default_value_t = 33_554_432, value_name = "BYTES", help_heading = "Records")]
    pub tail_cache_bytes: u32,

    /// URL of the same database past a pooler in transaction mode, which LISTEN does not get through;
    /// for one connection while other gateways live; default: --database-url
    #[arg(long, value_name = "URL", hide_env_values = true, help_heading = "Postgres")]
    pub direct_database_url: Option<String>,

    /// How long a topic is believed to be as it was last seen.
    #[arg(skip = Duration::from_secs(1))]
    pub catalog_ttl: Duration,

    /// How often rows of pgQueue clients and of SQL are looked for while somebody waits for them.
    #[arg(skip = Duration::from_millis(125))]
    pub poll_interval: Duration,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        let parsed = StoreConfig::augment_args(Command::new("defaults"))
            .try_get_matches_from(["defaults"])
            .and_then(|matches| StoreConfig::from_arg_matches(&matches));
        #[expect(clippy::expect_used, reason = "no option is required; every test of the store parses the defaults")]
        parsed.expect("the defaults are valid")
    }
}

impl StoreConfig {
    /// The defaults, for one database.
    #[must_use]
    pub fn new(database_url: impl Into<String>) -> StoreConfig {
        let mut config = StoreConfig::default();
        config.postgres.database_url = Some(database_url.into());
        config
    }

    /// Refuses what each flag allows and cannot work together.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] with the reason.
    pub fn check(&self) -> Result<(), StoreError> {
        let PostgresConfig { schema, table_prefix, db_min_connections: min, db_max_connections: max, .. } =
            &self.postgres;
        Tables::new(schema, table_prefix)?;
        if min > max {
            let reason = format!("--db-min-connections {min} is more than --db-max-connections {max}");
            return Err(StoreError::InvalidConfig(reason));
        }
        Ok(())
    }
}
