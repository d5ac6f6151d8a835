//! Every option of the gateway, once: type, default, unit and documentation. Those of the store are with the store.
//!
//! The cli makes flags of them, and of each flag an environment variable; a test or an embedding program takes
//! [`Config::defaults`] and changes fields.

mod contradiction;
mod groups;
mod host_port;
mod limits;
mod server;
mod topics;

use std::sync::LazyLock;

use clap::Args;
use store::StoreConfig;

pub use contradiction::Contradiction;
pub use groups::GroupsConfig;
pub use host_port::HostPort;
pub use limits::LimitsConfig;
pub use server::ServerConfig;
pub use topics::TopicsConfig;

/// What the gateway needs to run.
#[derive(Debug, Clone, Args)]
pub struct Config {
    #[command(flatten)]
    pub store: StoreConfig,

    #[command(flatten)]
    pub server: ServerConfig,
}

impl Config {
    /// Every option as its documentation says.
    pub fn defaults() -> Self {
        static DEFAULTS: LazyLock<Config> = LazyLock::new(Config::parse_nothing);
        DEFAULTS.clone()
    }

    fn parse_nothing() -> Self {
        let parsed = Self::augment_args(clap::Command::new("defaults"))
            .try_get_matches_from(["defaults"])
            .and_then(|matches| clap::FromArgMatches::from_arg_matches(&matches));
        #[expect(clippy::expect_used, reason = "no option is required; the test below parses the defaults")]
        parsed.expect("the defaults are valid")
    }

    /// Refuses settings that are each fine but contradict one another.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        self.server.check()?;
        self.store.check().map_err(|error| Contradiction::new(error.to_string()))?;
        let (writers, connections) = (self.store.append.append_writers, self.store.postgres.db_max_connections);
        Contradiction::unless(writers < connections, || {
            format!(
                "--append-writers {writers} leaves no connection of --db-max-connections {connections} for anything else"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_parse_and_agree_with_each_other() {
        let config = Config::defaults();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.server.topics.num_partitions, 2);
        assert_eq!(config.store.postgres.schema, "queue");
    }

    #[test]
    fn contradictions_name_both_options() {
        type Change = fn(&mut Config);
        let contradictions: [(Change, [&str; 2]); 8] = [
            (|c| c.server.listen = ([0, 0, 0, 0], 9092).into(), ["--listen", "--advertise"]),
            (|c| c.server.http_listen = c.server.listen, ["--listen", "--http-listen"]),
            (|c| c.store.postgres.db_min_connections = 17, ["--db-min-connections", "--db-max-connections"]),
            (|c| c.store.append.append_writers = 16, ["--append-writers", "--db-max-connections"]),
            (
                |c| c.server.groups.group_max_session_timeout_ms = 1,
                ["--group-min-session-timeout-ms", "--group-max-session-timeout-ms"],
            ),
            (|c| c.server.limits.max_request_bytes = 1_024, ["--max-other-request-bytes", "--max-request-bytes"]),
            (|c| c.server.limits.produce_memory_bytes = 1_024, ["--produce-memory-bytes", "--max-request-bytes"]),
            (|c| c.server.limits.other_memory_bytes = 1_024, ["--other-memory-bytes", "--max-other-request-bytes"]),
        ];
        for (contradict, options) in contradictions {
            let mut config = Config::defaults();
            contradict(&mut config);
            let reason = config.check().unwrap_err().to_string();
            assert!(options.iter().all(|option| reason.contains(option)), "{options:?}: {reason}");
        }
    }
}
