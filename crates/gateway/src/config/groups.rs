use ::groups::Settings;
use clap::Args;

use super::Contradiction;

/// Consumer groups and their committed offsets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Groups")]
pub struct GroupsConfig {
    /// Milliseconds of the shortest session timeout that a group member may have
    /// [group.min.session.timeout.ms]
    #[arg(long, default_value_t = 6_000, value_name = "MS", value_parser = clap::value_parser!(i32).range(1..))]
    pub group_min_session_timeout_ms: i32,

    /// Milliseconds of the longest session timeout that a group member may have
    /// [group.max.session.timeout.ms]
    #[arg(long, default_value_t = 1_800_000, value_name = "MS", value_parser = clap::value_parser!(i32).range(1..))]
    pub group_max_session_timeout_ms: i32,

    /// Milliseconds that the first members of an empty group wait for more
    /// [group.initial.rebalance.delay.ms]
    #[arg(long, default_value_t = 3_000, value_name = "MS", value_parser = clap::value_parser!(i32).range(0..))]
    pub group_initial_rebalance_delay_ms: i32,

    /// Members of one group at the most [group.max.size]
    #[arg(long, default_value_t = 2_147_483_647, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub group_max_size: i32,

    /// Minutes that committed offsets are kept after their group has lost its last member
    /// [offsets.retention.minutes]
    #[arg(long, default_value_t = 10_080, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub offsets_retention_minutes: u32,

    /// Milliseconds between two looks for offsets whose retention is over
    /// [offsets.retention.check.interval.ms]
    #[arg(long, default_value_t = 600_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
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
}

impl GroupsConfig {
    /// Those that decisions depend on.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            min_session_timeout_ms: self.group_min_session_timeout_ms,
            max_session_timeout_ms: self.group_max_session_timeout_ms,
            initial_rebalance_delay_ms: self.group_initial_rebalance_delay_ms,
            max_size: self.group_max_size as usize,
            ..Settings::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), Contradiction> {
        let (min, max) = (self.group_min_session_timeout_ms, self.group_max_session_timeout_ms);
        Contradiction::unless(min <= max, || {
            format!("--group-min-session-timeout-ms {min} is more than --group-max-session-timeout-ms {max}")
        })
    }
}
