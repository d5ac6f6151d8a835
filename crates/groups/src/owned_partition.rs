//! The partitions of members.

/// A partition that a member of protocol type `consumer` was assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedPartition {
    pub member_id: String,
    /// ≥ 0
    pub session_timeout_ms: i32,
    /// As the leader named it: there need not be such a topic.
    pub topic: String,
    pub partition: i32,
}
