//! The states of a classic group.

/// Kafka: `ClassicGroupState.java`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassicGroupState {
    /// No members; offsets may be there.
    Empty,
    /// Members are joining.
    PreparingRebalance,
    /// The generation is known, the leader's assignment is awaited.
    CompletingRebalance,
    Stable,
    /// Closed here: deleted, or coordinated by another gateway.
    Dead,
}

impl ClassicGroupState {
    /// Kafka's name, as in ListGroups and DescribeGroups.
    pub const fn name(self) -> &'static str {
        match self {
            ClassicGroupState::Empty => "Empty",
            ClassicGroupState::PreparingRebalance => "PreparingRebalance",
            ClassicGroupState::CompletingRebalance => "CompletingRebalance",
            ClassicGroupState::Stable => "Stable",
            ClassicGroupState::Dead => "Dead",
        }
    }
}
