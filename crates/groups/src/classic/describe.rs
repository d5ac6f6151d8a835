//! What DescribeGroups tells of a group.

use bytes::Bytes;

use super::{group::ClassicGroup, member::Member, state::ClassicGroupState as State};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    pub group_id: String,
    pub state: State,
    pub protocol_type: String,
    /// The protocol that was chosen; "" unless `Stable`.
    pub protocol_data: String,
    pub members: Vec<DescribedMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    /// Of the protocol that was chosen; empty unless `Stable`.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl ClassicGroup {
    pub(crate) fn describe(&self) -> DescribedGroup {
        let protocol = self.protocol_name.as_deref().filter(|_| self.state == State::Stable);
        let member = |(member_id, member): (&String, &Member)| DescribedMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: protocol.map(|name| member.metadata(name)).unwrap_or_default(),
            assignment: member.assignment.clone(),
        };
        DescribedGroup {
            group_id: self.id.clone(),
            state: self.state,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: self.members.iter().map(member).collect(),
        }
    }
}
