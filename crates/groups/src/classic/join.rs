//! JoinGroup.
//!
//! Different from Apache Kafka: a request that a second one of the same member replaces is answered with
//! REBALANCE_IN_PROGRESS (Kafka forgets it); when the group is full and a member is turned away, the other
//! members go on at once if they are complete (Kafka waits for the rebalance timeout); a static member that uses the id of a
//! pending dynamic one is unknown (Kafka answers UNKNOWN_SERVER_ERROR).

use super::{group::ClassicGroup, member::Member, outcome::ClassicOutcome, state::ClassicGroupState as State};
use crate::{
    error::GroupError,
    reply::{Awaiting, JoinMember, JoinReply, JoinToken},
    request::JoinRequest,
    time::Millis,
};

impl ClassicGroup {
    pub(crate) fn join(&mut self, now: Millis, token: JoinToken, request: JoinRequest) -> ClassicOutcome {
        let mut out = ClassicOutcome::default();
        if let Err(error) = self.check_join(&request) {
            out.reply_join(token, JoinReply::error(&request.member_id, error));
        } else if !self.accepts(&request.member_id) {
            self.turn_away(now, token, &request.member_id, &mut out);
        } else if !self.supports_protocols(&request.protocol_type, &request.protocols) {
            out.reply_join(token, JoinReply::error(&request.member_id, GroupError::InconsistentGroupProtocol));
        } else if request.member_id.is_empty() {
            self.join_unknown(now, token, request, &mut out);
        } else {
            self.join_known(now, token, request, &mut out);
        }
        self.finish(out)
    }

    fn check_join(&self, request: &JoinRequest) -> Result<(), GroupError> {
        request.validate(&self.id, &self.settings)?;
        if self.state == State::Dead { Err(GroupError::CoordinatorNotAvailable) } else { Ok(()) }
    }

    /// `group.max.size`. While members join, only those that have joined count, so that a limit that was lowered turns
    /// away the last ones (Kafka: `acceptJoiningMember`).
    fn accepts(&self, member_id: &str) -> bool {
        let member = self.members.get(member_id);
        match self.state {
            State::Empty | State::Dead => true,
            State::PreparingRebalance => {
                member.is_some_and(Member::is_awaiting_join)
                    || self.members.values().filter(|member| member.is_awaiting_join()).count() < self.settings.max_size
            }
            State::CompletingRebalance | State::Stable => {
                member.is_some() || self.members.len() < self.settings.max_size
            }
        }
    }

    fn turn_away(&mut self, now: Millis, token: JoinToken, member_id: &str, out: &mut ClassicOutcome) {
        self.remove_member(member_id, GroupError::GroupMaxSizeReached, out);
        out.reply_join(token, JoinReply::error("", GroupError::GroupMaxSizeReached));
        self.maybe_complete_join(now, out);
    }

    fn join_unknown(&mut self, now: Millis, token: JoinToken, request: JoinRequest, out: &mut ClassicOutcome) {
        let member_id = request.new_member_id();
        if let Some(instance_id) = &request.instance_id {
            match self.static_members.get(instance_id).cloned() {
                Some(old_id) => self.replace_static_member(now, token, &old_id, member_id, request, out),
                None => self.add_member(now, token, member_id, request, out),
            }
        } else if request.requires_known_member_id() {
            let deadline = now.saturating_add(request.session_timeout_ms.into());
            self.pending_members.insert(member_id.clone(), deadline);
            self.wake_by(deadline);
            out.reply_join(token, JoinReply::error(&member_id, GroupError::MemberIdRequired));
        } else {
            self.add_member(now, token, member_id, request, out);
        }
    }

    fn join_known(&mut self, now: Millis, token: JoinToken, request: JoinRequest, out: &mut ClassicOutcome) {
        let member_id = request.member_id.clone();
        if request.instance_id.is_none() && self.pending_members.contains_key(&member_id) {
            return self.add_member(now, token, member_id, request, out);
        }
        if let Err(error) = self.validate_member(&member_id, request.instance_id.as_deref()) {
            return out.reply_join(token, JoinReply::error(&member_id, error));
        }
        let is_unchanged = self.members.get(&member_id).is_some_and(|member| member.protocols == request.protocols);
        match self.state {
            // The member missed the answer: it hears it again.
            State::CompletingRebalance if is_unchanged => out.reply_join(token, self.current_generation(&member_id)),
            // A leader joins again to have the assignment done anew, for instance when a topic got partitions.
            State::Stable if is_unchanged && !self.is_leader(&member_id) => {
                out.reply_join(token, self.current_generation(&member_id));
            }
            State::PreparingRebalance | State::CompletingRebalance | State::Stable => {
                self.rejoin_member(now, token, &member_id, &request, out);
            }
            State::Empty | State::Dead => {
                out.reply_join(token, JoinReply::error(&member_id, GroupError::UnknownMemberId));
            }
        }
    }

    fn add_member(
        &mut self,
        now: Millis,
        token: JoinToken,
        member_id: String,
        request: JoinRequest,
        out: &mut ClassicOutcome,
    ) {
        if self.state == State::PreparingRebalance && self.is_initial {
            self.new_member_added = true;
        }
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        self.pending_members.remove(&member_id);
        self.leader.get_or_insert_with(|| member_id.clone());
        if let Some(instance_id) = &request.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.clone());
        }
        let can_return = !request.member_id.is_empty() || request.instance_id.is_some();
        self.members.insert(member_id.clone(), Member::new(request, can_return));
        self.await_join(now, token, &member_id, out);
        self.rebalance_or_complete_join(now, out);
    }

    fn rejoin_member(
        &mut self,
        now: Millis,
        token: JoinToken,
        member_id: &str,
        request: &JoinRequest,
        out: &mut ClassicOutcome,
    ) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.update(request);
        }
        self.await_join(now, token, member_id, out);
        self.rebalance_or_complete_join(now, out);
    }

    /// A new member may wait only so long: it has no id to send heartbeats with, and a client that gave up and came
    /// back as another member would otherwise leave its predecessors behind.
    pub(super) fn await_join(&mut self, now: Millis, token: JoinToken, member_id: &str, out: &mut ClassicOutcome) {
        let new_member_deadline = now.saturating_add(self.settings.new_member_join_timeout_ms.into());
        let Some(member) = self.members.get_mut(member_id) else { return };
        out.refuse_awaiting(member, member_id, GroupError::RebalanceInProgress);
        member.awaiting = Some(Awaiting::Join(token));
        member.deadline = member.is_new.then_some(new_member_deadline);
        if member.is_new {
            self.wake_by(new_member_deadline);
        }
    }

    /// The answer to a member of the current generation; only the leader gets the list.
    pub(super) fn current_generation(&self, member_id: &str) -> JoinReply {
        JoinReply {
            error: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: if self.is_leader(member_id) { self.member_list() } else { Vec::new() },
        }
    }

    fn member_list(&self) -> Vec<JoinMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let member = |(member_id, member): (&String, &Member)| JoinMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.iter().map(member).collect()
    }
}
