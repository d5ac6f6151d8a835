//! The protocol (the assignor, for consumers) that the members of a generation share.

use std::collections::BTreeSet;

use super::{group::ClassicGroup, state::ClassicGroupState as State};
use crate::request::Protocol;

impl ClassicGroup {
    /// The protocol type is the group's, and one of the protocols is offered by all members (including, if it
    /// rejoins, what this member offered before: so Kafka).
    pub(super) fn supports_protocols(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let by_all = |protocol: &Protocol| self.members.values().all(|member| member.supports(&protocol.name));
        self.protocol_type.as_deref() == Some(protocol_type) && protocols.iter().any(by_all)
    }

    /// Of the protocols that all members offer, the one most of them like best; the leader's vote breaks a tie
    /// (Kafka leaves that to the order of a hash map). `None` without members.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let first = self.leader.as_ref().and_then(|leader| self.members.get(leader))?;
        let names = first.protocols.iter().map(|protocol| protocol.name.as_str());
        let candidates: BTreeSet<&str> =
            names.filter(|name| self.members.values().all(|member| member.supports(name))).collect();
        let votes = |name: &str| self.members.values().filter(|m| m.vote(&candidates) == Some(name)).count();
        // The last of equal maxima wins, so the leader's favourite comes last.
        let by_preference = first.protocols.iter().rev().map(|protocol| protocol.name.as_str());
        by_preference.filter(|name| candidates.contains(name)).max_by_key(|name| votes(name)).map(str::to_owned)
    }
}
