//! A static member (KIP-345) that restarted: same instance id, no member id.
//!
//! Different from Apache Kafka: client id and host are the new process's as well, and a SyncGroup that was still
//! due is then due from the new member id.

use super::state::{Group, State, answer_parked};
use crate::outcome::{AfterUndo, Undo};
use crate::{GroupError, JoinReply, JoinRequest, Millis, Outcome, Token};

impl Group {
    /// Kafka: `updateStaticMemberThenRebalanceOrCompleteJoin`.
    pub(crate) fn replace_static_member(
        &mut self,
        now: Millis,
        token: Token,
        old_id: &str,
        new_id: String,
        request: JoinRequest,
        out: &mut Outcome,
    ) {
        let before = (self.state == State::Stable).then(|| Box::new(self.clone()));
        let old_leader = self.leader.clone().unwrap_or_default();
        self.take_over(old_id, &new_id, &request, out);
        match self.state {
            State::Stable if self.select_protocol() == self.protocol_name => {
                self.answer_without_rebalance(now, token, &new_id, old_leader, &request, out);
                out.save = Some(self.stored());
                let keep = out.replies.len() - 1;
                out.undo = before.map(|before| Undo { before, keep, then: AfterUndo::RefuseJoin(token) });
            }
            // In CompletingRebalance the leader may already assign to the old id, and the new one would get nothing.
            State::Stable | State::CompletingRebalance => {
                self.park_join(now, token, &new_id, out);
                self.prepare_rebalance(now, out);
            }
            State::PreparingRebalance | State::Empty | State::Dead => {
                self.park_join(now, token, &new_id, out);
                self.maybe_complete_join(now, out);
            }
        }
    }

    /// The new id steps into the place of the old one, with the assignment; whoever waits under the old id is
    /// fenced.
    fn take_over(&mut self, old_id: &str, new_id: &str, request: &JoinRequest, out: &mut Outcome) {
        let Some(mut member) = self.members.remove(old_id) else { return };
        answer_parked(&mut member, old_id, GroupError::FencedInstanceId, out);
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
        token: Token,
        new_id: &str,
        old_leader: String,
        request: &JoinRequest,
        out: &mut Outcome,
    ) {
        self.subscribed_topics = self.compute_subscribed_topics();
        if let Some(deadline) = self.members.get_mut(new_id).map(|member| member.refresh(now)) {
            self.wake_by(deadline);
        }
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
