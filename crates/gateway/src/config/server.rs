use std::net::SocketAddr;

use clap::Args;

use super::{Contradiction, GroupsConfig, HostPort, LimitsConfig, TopicsConfig};

/// Everything but the store: the ports, and what is served on them. Where Apache Kafka has an option too, its name
/// stands in brackets.
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
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub node_id: i32,

    /// Do not change the schema at start; refuse one that is not up to date
    #[arg(long)]
    pub no_migrate: bool,

    /// Milliseconds that running requests get to finish at shutdown
    #[arg(long, default_value_t = 5_000, value_name = "MS")]
    pub drain_ms: u64,

    #[command(flatten)]
    pub topics: TopicsConfig,

    #[command(flatten)]
    pub groups: GroupsConfig,

    #[command(flatten)]
    pub limits: LimitsConfig,
}

impl ServerConfig {
    pub(super) fn check(&self) -> Result<(), Contradiction> {
        let listen = self.listen;
        Contradiction::unless(!listen.ip().is_unspecified() || self.advertise.is_some(), || {
            format!("--listen {listen} names no address that clients can connect to; add --advertise HOST:PORT")
        })?;
        Contradiction::unless(listen.port() == 0 || listen != self.http_listen, || {
            format!("--listen and --http-listen are both {listen}")
        })?;
        self.groups.check()?;
        self.limits.check()
    }
}
