//! Every option of the gateway, once: type, default, unit and documentation.
//!
//! The cli makes flags of them, and of each flag an environment variable; a test or an embedding program takes
//! [`Config::defaults`] and changes fields.

use std::{fmt, net::SocketAddr, str::FromStr, sync::LazyLock};

use clap::{Args, ValueEnum};
use store::{MAX_PARTITIONS, PartitionInterval};

/// What the gateway needs to run.
#[derive(Debug, Clone, Args)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub server: ServerConfig,
}

/// How the gateway finds Postgres and lays out its tables.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Postgres")]
pub struct DatabaseConfig {
    /// Connection URL: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", hide_env_values = true, hide_default_value = true)]
    pub database_url: Option<String>,

    /// Schema that holds the pgQueue tables
    #[arg(long, default_value = "queue", value_name = "NAME")]
    pub schema: String,

    /// Prefix of every table, as in metadata_queue_message
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
    #[arg(long, default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub db_max_connections: u32,

    /// Length of one time partition of the message table: 1 hour, 6 hours, 12 hours, 1 day, 1 week or 1 month
    #[arg(long, default_value = "1 day", value_name = "INTERVAL")]
    pub time_partition_interval: PartitionInterval,

    /// Time partitions that are made ahead
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub time_partition_premake: u32,
}

/// The Kafka port, the HTTP port and what they allow. Where Apache Kafka has the option too, its
/// name stands in brackets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerConfig {
    /// Address of the Kafka port [listeners]; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:9092", value_name = "IP:PORT")]
    pub listen: SocketAddr,

    /// Host and port that clients are told to connect to [advertised.listeners]; default: --listen
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<HostPort>,

    // Not 8081, where clients expect a schema registry beside their Kafka.
    /// Address of the HTTP port (health, groups past the end)
    #[arg(long, default_value = "127.0.0.1:9644", value_name = "IP:PORT")]
    pub http_listen: SocketAddr,

    /// Id of this broker [node.id]
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(i32).range(0..))]
    pub node_id: i32,

    /// Do not change the schema at start; refuse one that is not up to date
    #[arg(long)]
    pub no_migrate: bool,

    /// Kafka connections at the same time [max.connections]
    #[arg(long, default_value_t = 10_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,

    /// Milliseconds without a byte in either direction until a connection is closed
    /// [connections.max.idle.ms]
    #[arg(long, default_value_t = 600_000, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(1_000..))]
    pub connection_idle_ms: u64,

    /// Requests of one connection that may wait for their answers; more are left in the socket
    #[arg(long, default_value_t = 128, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_pipelined_requests: u32,

    /// Bytes of one Produce request [socket.request.max.bytes]
    #[arg(long, default_value_t = 104_857_600, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_024..=1_073_741_824))]
    pub max_request_bytes: u32,

    /// Bytes of one request of any other API; far smaller, because many small fields take up
    /// many times their bytes when decoded
    #[arg(long, default_value_t = 2_097_152, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_024..=104_857_600))]
    pub max_other_request_bytes: u32,

    /// Bytes of all Produce requests that are being read or answered, whole process
    #[arg(long, default_value_t = 268_435_456, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1_024..=1_099_511_627_776))]
    pub produce_memory_bytes: u64,

    /// Bytes of all other requests that are being read or answered, whole process
    #[arg(long, default_value_t = 67_108_864, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1_024..=1_099_511_627_776))]
    pub other_memory_bytes: u64,

    /// Bytes of all Fetch answers that are being made or written, whole process
    #[arg(long, default_value_t = 268_435_456, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(16_777_216..=1_099_511_627_776))]
    pub fetch_memory_bytes: u64,

    /// Milliseconds that running requests get to finish at shutdown
    #[arg(long, default_value_t = 5_000, value_name = "MS")]
    pub drain_ms: u64,

    /// Whether Metadata requests may create topics [auto.create.topics.enable]
    #[arg(long, default_value_t = true, value_name = "BOOL",
          action = clap::ArgAction::Set)]
    pub auto_create_topics: bool,

    /// Whether DeleteTopics is allowed [delete.topic.enable]
    #[arg(long, default_value_t = true, value_name = "BOOL",
          action = clap::ArgAction::Set)]
    pub delete_topics: bool,

    /// Partitions of a topic whose creator names no number [num.partitions]
    #[arg(long, default_value_t = 2, value_name = "N",
          value_parser = clap::value_parser!(i32).range(1..=MAX_PARTITIONS as i64))]
    pub num_partitions: i32,

    /// Bytes of one record batch, as sent, for topics without max.message.bytes
    /// [message.max.bytes]
    #[arg(long, default_value_t = 1_048_588, value_name = "BYTES",
          value_parser = clap::value_parser!(i32).range(0..))]
    pub message_max_bytes: i32,

    /// Bytes of records in one Fetch answer [fetch.max.bytes]
    #[arg(long, default_value_t = 57_671_680, value_name = "BYTES",
          value_parser = clap::value_parser!(i32).range(1_024..))]
    pub fetch_max_bytes: i32,

    /// Milliseconds of the shortest session timeout that a group member may have
    /// [group.min.session.timeout.ms]
    #[arg(long, default_value_t = 6_000, value_name = "MS",
          value_parser = clap::value_parser!(i32).range(1..))]
    pub group_min_session_timeout_ms: i32,

    /// Milliseconds of the longest session timeout that a group member may have
    /// [group.max.session.timeout.ms]
    #[arg(long, default_value_t = 1_800_000, value_name = "MS",
          value_parser = clap::value_parser!(i32).range(1..))]
    pub group_max_session_timeout_ms: i32,

    /// Milliseconds that the first members of an empty group wait for more
    /// [group.initial.rebalance.delay.ms]
    #[arg(long, default_value_t = 3_000, value_name = "MS",
          value_parser = clap::value_parser!(i32).range(0..))]
    pub group_initial_rebalance_delay_ms: i32,

    /// Members of one group at the most [group.max.size]
    #[arg(long, default_value_t = 2_147_483_647, value_name = "N",
          value_parser = clap::value_parser!(i32).range(1..))]
    pub group_max_size: i32,

    /// Minutes that committed offsets are kept after their group has lost its last member
    /// [offsets.retention.minutes]
    #[arg(long, default_value_t = 10_080, value_name = "MINUTES",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub offsets_retention_minutes: u32,

    /// Milliseconds between two looks for offsets whose retention is over
    /// [offsets.retention.check.interval.ms]
    #[arg(long, default_value_t = 600_000,
          value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub offsets_retention_check_interval_ms: u64,

    /// Bytes of metadata with a committed offset [offset.metadata.max.bytes]
    #[arg(long, default_value_t = 4_096, value_name = "BYTES",
          value_parser = clap::value_parser!(i32).range(0..=1_048_576))]
    pub offset_metadata_max_bytes: i32,

    /// Milliseconds without a sign of life after which other gateways take over the groups of this
    /// one
    #[arg(long, default_value_t = 6_000, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(500..=600_000))]
    pub coordinator_lease_ms: u64,

    /// Compression of stored payloads, in pgQueue's own format
    #[arg(long, default_value = "none", value_name = "CODEC")]
    pub payload_compression: PayloadCompression,

    /// Connections that write records, each with one transaction at a time
    #[arg(long, default_value_t = 2, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub append_writers: u32,

    /// Bytes of records that one write transaction takes, unless a single batch is larger
    #[arg(long, default_value_t = 8_388_608, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_024..))]
    pub append_transaction_bytes: u32,

    /// Bytes of records at the ends of partitions that are kept in memory for their readers; 0 keeps none
    #[arg(long, default_value_t = 33_554_432, value_name = "BYTES",
          value_parser = clap::value_parser!(u32))]
    pub tail_cache_bytes: u32,

    /// URL of the same database past a pooler in transaction mode, which LISTEN does not get through;
    /// for one connection while other gateways live; default: --database-url
    #[arg(long, value_name = "URL", hide_env_values = true, help_heading = "Postgres")]
    pub direct_database_url: Option<String>,
}

/// Which keys a message table made by the gateway gets (storage.md, D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaProfile {
    /// Only the keys that clients need; writes more than twice as fast
    Lean,
    /// The set that DataHub itself makes
    Datahub,
}

/// How a payload is stored; readers of both kinds get the plain value either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadCompression {
    None,
    /// Raw snappy blocks, pgQueue's codec 1
    Snappy,
}

/// A host name or address with a port, as a client would write it: `host:9092`, `[::1]:9092`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port: u16 = port.parse().map_err(|_| format!("{port:?} is not a port number"))?;
        if host.is_empty() || host.contains(['/', ' ', '[', ']']) {
            return Err(format!("{host:?} is not a host name or address"));
        }
        if port == 0 {
            return Err("clients cannot connect to port 0".to_owned());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Two options that cannot both be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(String);

impl Config {
    /// Every option as its documentation says.
    pub fn defaults() -> Self {
        static DEFAULTS: LazyLock<Config> = LazyLock::new(Config::parse_nothing);
        DEFAULTS.clone()
    }

    fn parse_nothing() -> Self {
        let command = Self::augment_args(clap::Command::new("defaults"));
        let parsed = command
            .try_get_matches_from(["defaults"])
            .and_then(|matches| clap::FromArgMatches::from_arg_matches(&matches));
        #[expect(clippy::expect_used, reason = "no option is required; the test below parses the defaults")]
        parsed.expect("the defaults are valid")
    }

    /// Refuses settings that are each fine but contradict one another.
    pub fn check(&self) -> Result<(), Contradiction> {
        let refuse = |reason: String| Err(Contradiction(reason));
        let (server, database) = (&self.server, &self.database);
        if server.listen.ip().is_unspecified() && server.advertise.is_none() {
            return refuse(format!(
                "--listen {} names no address that clients can connect to; add --advertise HOST:PORT",
                server.listen
            ));
        }
        if server.listen.port() != 0 && server.listen == server.http_listen {
            return refuse(format!("--listen and --http-listen are both {}", server.listen));
        }
        if database.db_min_connections > database.db_max_connections {
            return refuse(format!(
                "--db-min-connections {} is more than --db-max-connections {}",
                database.db_min_connections, database.db_max_connections
            ));
        }
        if server.append_writers >= database.db_max_connections {
            return refuse(format!(
                "--append-writers {} leaves no connection of --db-max-connections {} for anything else",
                server.append_writers, database.db_max_connections
            ));
        }
        if server.group_min_session_timeout_ms > server.group_max_session_timeout_ms {
            return refuse(format!(
                "--group-min-session-timeout-ms {} is more than --group-max-session-timeout-ms {}",
                server.group_min_session_timeout_ms, server.group_max_session_timeout_ms
            ));
        }
        if server.max_other_request_bytes > server.max_request_bytes {
            return refuse(format!(
                "--max-other-request-bytes {} is more than --max-request-bytes {}",
                server.max_other_request_bytes, server.max_request_bytes
            ));
        }
        if server.produce_memory_bytes < u64::from(server.max_request_bytes) {
            return refuse(format!(
                "--produce-memory-bytes {} cannot hold one request of --max-request-bytes {}",
                server.produce_memory_bytes, server.max_request_bytes
            ));
        }
        if server.other_memory_bytes < u64::from(server.max_other_request_bytes) {
            return refuse(format!(
                "--other-memory-bytes {} cannot hold one request of --max-other-request-bytes {}",
                server.other_memory_bytes, server.max_other_request_bytes
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_parse_and_agree_with_each_other() {
        let config = Config::defaults();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.server.num_partitions, 2);
        assert_eq!(config.database.schema, "queue");
    }

    #[test]
    fn contradictions_name_both_options() {
        let mut config = Config::defaults();
        config.server.listen = "0.0.0.0:9092".parse().unwrap();
        assert!(config.check().unwrap_err().to_string().contains("--advertise"));
        let mut config = Config::defaults();
        config.database.db_min_connections = 17;
        assert!(config.check().unwrap_err().to_string().contains("--db-max-connections"));
        let mut config = Config::defaults();
        config.server.produce_memory_bytes = 1_024;
        assert!(config.check().unwrap_err().to_string().contains("--max-request-bytes"));
    }

    #[test]
    fn host_port_takes_names_and_addresses() {
        let parsed: HostPort = "kafka.example:9092".parse().unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), ("kafka.example", 9092));
        let parsed: HostPort = "[::1]:9092".parse().unwrap();
        assert_eq!(parsed.host, "::1");
        assert_eq!(parsed.to_string(), "[::1]:9092");
        for wrong in ["kafka", "kafka:", ":9092", "kafka:0", "kafka:70000", "http://kafka:9092"] {
            assert!(wrong.parse::<HostPort>().is_err(), "{wrong}");
        }
    }
}
