//! The broker options that the decisions depend on.

/// Defaults are Kafka's (`GroupCoordinatorConfig.java`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long the first members of an empty group wait for more.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`.
    pub max_size: usize,
    /// How long a new member may wait in JoinGroup: it has no member id yet and cannot send heartbeats.
    pub new_member_join_timeout_ms: i32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            max_size: i32::MAX as usize,
            new_member_join_timeout_ms: 300_000,
        }
    }
}
