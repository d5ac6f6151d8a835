//! To the stored form and back.

use super::{group::ClassicGroup, member::Member, outcome::ClassicOutcome, state::ClassicGroupState as State};
use crate::{
    request::Protocol,
    settings::Settings,
    stored::{CLASSIC_VERSION, StoredClassicGroup, StoredClassicMember, StoredClassicProtocol, StoredClassicState},
    time::Millis,
};

impl ClassicGroup {
    pub(crate) fn restore(id: &str, settings: &Settings, stored: StoredClassicGroup, now: Millis) -> ClassicGroup {
        let mut group = ClassicGroup::new(id, settings, stored.state_since);
        group.generation = stored.generation;
        group.protocol_type = stored.protocol_type;
        group.protocol_name = stored.protocol_name;
        for stored in stored.members {
            let member_id = stored.member_id.clone();
            let member = restore_member(stored, now);
            if let Some(instance_id) = &member.instance_id {
                group.static_members.insert(instance_id.clone(), member_id.clone());
            }
            group.members.insert(member_id, member);
        }
        let leader = stored.leader.filter(|leader| group.members.contains_key(leader));
        group.leader = leader.or_else(|| group.members.keys().next().cloned());
        group.subscribed_topics = group.compute_subscribed_topics();
        group.state = match stored.state {
            _ if group.members.is_empty() => State::Empty,
            StoredClassicState::CompletingRebalance => State::CompletingRebalance,
            StoredClassicState::Stable | StoredClassicState::Empty => State::Stable,
        };
        if group.state == State::CompletingRebalance {
            group.pending_sync = group.members.keys().cloned().collect();
            group.expect_syncs(now);
        }
        if group.members.len() > settings.max_size {
            // The limit was lowered: joining again sorts it out. No request waits, so there is nothing to answer
            // or save.
            let mut out = ClassicOutcome::default();
            group.prepare_rebalance(now, &mut out);
        }
        group.recompute_wake_at();
        group
    }

    /// Of a generation (CompletingRebalance or Stable) or of an empty group.
    pub(super) fn stored(&self) -> StoredClassicGroup {
        let state = match self.state {
            State::Stable => StoredClassicState::Stable,
            State::Empty | State::Dead => StoredClassicState::Empty,
            State::PreparingRebalance | State::CompletingRebalance => StoredClassicState::CompletingRebalance,
        };
        StoredClassicGroup {
            version: CLASSIC_VERSION,
            state,
            state_since: self.state_since,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            members: self.members.iter().map(|(member_id, member)| store_member(member_id, member)).collect(),
        }
    }
}

fn store_member(member_id: &str, member: &Member) -> StoredClassicMember {
    let protocol = |own: &Protocol| StoredClassicProtocol { name: own.name.clone(), metadata: own.metadata.clone() };
    StoredClassicMember {
        member_id: member_id.to_owned(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        session_timeout_ms: member.session_timeout_ms,
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        protocols: member.protocols.iter().map(protocol).collect(),
        assignment: member.assignment.clone(),
    }
}

fn restore_member(stored: StoredClassicMember, now: Millis) -> Member {
    let protocol = |stored: StoredClassicProtocol| Protocol { name: stored.name, metadata: stored.metadata };
    let mut member = Member {
        instance_id: stored.instance_id,
        client_id: stored.client_id,
        client_host: stored.client_host,
        session_timeout_ms: stored.session_timeout_ms.max(0),
        rebalance_timeout_ms: stored.rebalance_timeout_ms.max(0),
        protocols: stored.protocols.into_iter().map(protocol).collect(),
        assignment: stored.assignment,
        awaiting: None,
        is_new: false,
        can_return: true,
        deadline: None,
    };
    member.start_session(now);
    member
}
