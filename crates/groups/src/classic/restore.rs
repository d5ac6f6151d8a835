//! To the stored form and back.

use super::member::Member;
use super::state::{Group, State};
use crate::stored::StoredProtocol;
use crate::{Millis, Outcome, Protocol, Settings, StoredGroup, StoredMember, StoredState};

impl Group {
    /// Goes on from what was saved last: same generation, members and assignment; every member has its whole
    /// session timeout to be heard of. Ask [`Group::wake_at`] for the first wake-up.
    pub fn restore(id: impl Into<String>, settings: &Settings, stored: StoredGroup, now: Millis) -> Group {
        let mut group = Group::new(id, settings, stored.state_since);
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
            StoredState::CompletingRebalance => State::CompletingRebalance,
            StoredState::Stable | StoredState::Empty => State::Stable,
        };
        if group.state == State::CompletingRebalance {
            group.pending_sync = group.members.keys().cloned().collect();
            group.expect_syncs(now);
        }
        if group.members.len() > settings.max_size {
            // The limit was lowered: joining again sorts it out. Nobody waits, so there is nothing to answer or save.
            let mut out = Outcome::default();
            group.prepare_rebalance(now, &mut out);
        }
        group.recompute_wake_at();
        group
    }

    /// Of a generation (CompletingRebalance or Stable) or of an empty group.
    pub(crate) fn stored(&self) -> StoredGroup {
        let state = match self.state {
            State::Stable => StoredState::Stable,
            State::Empty | State::Dead => StoredState::Empty,
            State::PreparingRebalance | State::CompletingRebalance => StoredState::CompletingRebalance,
        };
        StoredGroup {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            members: self.members.iter().map(|(member_id, member)| store_member(member_id, member)).collect(),
            ..StoredGroup::new(state, self.state_since, self.generation)
        }
    }
}

fn store_member(member_id: &str, member: &Member) -> StoredMember {
    let protocol = |own: &Protocol| StoredProtocol { name: own.name.clone(), metadata: own.metadata.clone() };
    StoredMember {
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

fn restore_member(stored: StoredMember, now: Millis) -> Member {
    let protocol = |stored: StoredProtocol| Protocol { name: stored.name, metadata: stored.metadata };
    let mut member = Member {
        instance_id: stored.instance_id,
        client_id: stored.client_id,
        client_host: stored.client_host,
        session_timeout_ms: stored.session_timeout_ms.max(0),
        rebalance_timeout_ms: stored.rebalance_timeout_ms.max(0),
        protocols: stored.protocols.into_iter().map(protocol).collect(),
        assignment: stored.assignment,
        parked: None,
        is_new: false,
        can_return: true,
        deadline: None,
    };
    member.refresh(now);
    member
}
