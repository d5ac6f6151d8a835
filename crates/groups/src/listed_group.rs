//! What ListGroups tells of a group.

use crate::group_type::GroupType;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    pub group_id: String,
    pub group_type: GroupType,
    /// Kafka's name of the state.
    pub state: &'static str,
    /// "" when no member ever joined (a simple group).
    pub protocol_type: String,
}

impl ListedGroup {
    /// A group that has no members.
    pub fn empty(group_id: &str, group_type: GroupType, protocol_type: &str) -> ListedGroup {
        ListedGroup {
            group_id: group_id.to_owned(),
            group_type,
            state: "Empty",
            protocol_type: protocol_type.to_owned(),
        }
    }

    /// ListGroups 4 and later filter by state, 5 and later by type: an empty filter lets every group pass; case does
    /// not matter.
    pub fn passes(&self, states: &[String], types: &[String]) -> bool {
        let is_in = |filter: &[String], own: &str| {
            filter.is_empty() || filter.iter().any(|name| name.eq_ignore_ascii_case(own))
        };
        is_in(states, self.state) && is_in(types, self.group_type.name())
    }
}
