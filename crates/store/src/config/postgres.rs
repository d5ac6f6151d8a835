use std::time::Duration;

use clap::Args;

use crate::schema::{PartitionInterval, SchemaProfile};

/// How Postgres is found, and how its tables are laid out.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Postgres")]
pub struct PostgresConfig {
    /// Connection URL: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    ///
    /// With libpq's parameters, as in ?sslmode=verify-full. A pooler in transaction mode must keep track of prepared
    /// statements (PgBouncer 1.21 or newer with max_prepared_statements).
    #[arg(long, value_name = "URL", hide_env_values = true, hide_default_value = true)]
    pub database_url: Option<String>,

    /// Schema that holds the pgQueue tables
    ///
    /// Lower-case letters, digits and underscores, at most 63 of them.
    #[arg(long, default_value = "queue", value_name = "NAME")]
    pub schema: String,

    /// Prefix of every table, as in metadata_queue_message
    ///
    /// Lower-case letters, digits and underscores, at most 24 of them.
    #[arg(long, default_value = "metadata_queue", value_name = "NAME")]
    pub table_prefix: String,

    /// Keys of a newly made message table: the lean set, or DataHub's to the letter
    #[arg(long, default_value = "lean", value_name = "PROFILE")]
    pub schema_profile: SchemaProfile,

    /// Connections that are kept open
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub db_min_connections: u32,

    /// Connections at the most, beside one for the coordinator's lease and one for LISTEN; --append-writers of them
    /// write records
    ///
    /// A migration uses two more while it runs.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub db_max_connections: u32,

    /// Length of one time partition of the message table: 1 hour, 6 hours, 12 hours, 1 day, 1 week or 1 month
    #[arg(long, default_value = "1 day", value_name = "INTERVAL")]
    pub time_partition_interval: PartitionInterval,

    /// Time partitions that are made ahead
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub time_partition_premake: u32,

    /// How long a request waits for a connection before it is told to try again.
    #[arg(skip = Duration::from_secs(5))]
    pub acquire_timeout: Duration,

    /// `statement_timeout` of the pool's connections; zero is none.
    #[arg(skip = Duration::from_secs(30))]
    pub statement_timeout: Duration,

    /// `lock_timeout` of the pool's connections; zero is none.
    #[arg(skip = Duration::from_secs(10))]
    pub lock_timeout: Duration,

    /// How long a migration tries to get a lock, and waits for another gateway that migrates.
    #[arg(skip = Duration::from_secs(120))]
    pub migration_timeout: Duration,
}
