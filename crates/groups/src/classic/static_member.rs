//! A static member (KIP-345) that restarted: same instance id, no member id.
//!
//! Different from Apache Kafka: client id and host are the new process's as well, and a SyncGroup that was still
//! due is then due from the new member id.

use super::{
    group::ClassicGroup,
    outcome::{AfterUndo, ClassicOutcome, ClassicSave, ClassicUndo},
    state::ClassicGroupState as State,
};
use crate::{
    error::GroupError,
    reply::{JoinReply, JoinToken},
    request::JoinRequest,
    time::Millis,
};

impl ClassicGroup {
    /// Kafka: `updateStaticMemberThenRebalanceOrCompleteJoin`.
    pub(super) fn replace_static_member(
        &mut self,
        now: Millis,
        token: JoinToken,
        old_id: &str,
        new_id: String,
        request: JoinRequest,
        out: &mut ClassicOutcome,
    ) {
        let before = (self.state == State::Stable).then(|| Box::new(self.clone()));
        let old_leader = self.leader.clone().unwrap_or_default();
        self.take_over(old_id, &new_id, &request, out);
        match (self.state, before) {
            (State::Stable, Some(before)) if self.select_protocol() == self.protocol_name => {
                let keep = out.replies.len();
                self.answer_without_rebalance(now, token, &new_id, old_leader, &request, out);
                let undo = ClassicUndo { before, keep, then: AfterUndo::RefuseJoin(token) };
                out.save = Some(ClassicSave { group: self.stored(), undo });
            }
            // In CompletingRebalance the leader may already assign to the old id, and the new one would get nothing.
            (State::Stable | State::CompletingRebalance, _) => {
                self.await_join(now, token, &new_id, out);
                self.prepare_rebalance(now, out);
            }
            (State::PreparingRebalance | State::Empty | State::Dead, _) => {
                self.await_join(now, token, &new_id, out);
                self.maybe_complete_join(now, out);
            }
        }
    }

    /// The new id steps into the place of the old one, with the assignment; a request that waits under the old
    /// id is fenced.
    fn take_over(&mut self, old_id: &str, new_id: &str, request: &JoinRequest, out: &mut ClassicOutcome) {
        let Some(mut member) = self.members.remove(old_id) else { return };
        out.refuse_awaiting(&mut member, old_id, GroupError::FencedInstanceId);
        member.update(request);
        member.client_id.clone_from(&request.client_id);
        member.client_host.clone_from(&request.client_host);
        member.is_new = false;
        member.can_return = true;
        if self.is_leader(old_id) {
            self.leader = Some(new_id.to_owned());
        }
        if self.pending_sync.remove(old_id) {
            self.pending_sync.insert(new_id.to_owned());
        }
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), new_id.to_owned());
        }
        self.members.insert(new_id.to_owned(), member);
    }

    /// Same protocol in Stable: the member goes on with its assignment. A returning leader must not assign anew,
    /// since a Stable group ignores it: since version 9 it is told so (KIP-814), before it is shown the id of its
    /// predecessor as the leader.
    fn answer_without_rebalance(
        &mut self,
        now: Millis,
        token: JoinToken,
        new_id: &str,
        old_leader: String,
        request: &JoinRequest,
        out: &mut ClassicOutcome,
    ) {
        self.subscribed_topics = self.compute_subscribed_topics();
        self.start_session(now, new_id);
        let mut reply: JoinReply = self.current_generation(new_id);
        if request.supports_skipping_assignment() {
            reply.skip_assignment = self.is_leader(new_id);
        } else {
            reply.leader = old_leader;
            reply.members.clear();
        }
        out.reply_join(token, reply);
    }
}
