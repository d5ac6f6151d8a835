//! The types of groups (Kafka: `Group.GroupType`).

/// Which protocol the members of a group speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// JoinGroup and SyncGroup.
    Classic,
}

impl GroupType {
    /// Kafka's name, as in ListGroups.
    pub const fn name(self) -> &'static str {
        match self {
            GroupType::Classic => "classic",
        }
    }
}
