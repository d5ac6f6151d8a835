//! From one generation to the next: when the joining ends, and what happens then.

use super::{
    group::ClassicGroup,
    member::Member,
    outcome::{AfterUndo, ClassicOutcome, ClassicSave, ClassicUndo},
    state::ClassicGroupState as State,
};
use crate::{
    error::GroupError,
    reply::{Awaiting, SyncReply},
    time::Millis,
};

/// Not sooner is a rebalance tried again that none of the (static) members joined.
const NONE_JOINED_RETRY_MS: Millis = 1_000;

impl ClassicGroup {
    /// The membership changed.
    pub(super) fn rebalance_or_complete_join(&mut self, now: Millis, out: &mut ClassicOutcome) {
        if self.state == State::PreparingRebalance {
            self.maybe_complete_join(now, out);
        } else {
            self.prepare_rebalance(now, out);
        }
    }

    pub(super) fn prepare_rebalance(&mut self, now: Millis, out: &mut ClassicOutcome) {
        if self.state == State::CompletingRebalance {
            self.take_assignments_back(now, out);
        }
        self.pending_sync.clear();
        self.sync_deadline = None;
        self.is_initial = self.state == State::Empty;
        self.enter(State::PreparingRebalance, now);
        if self.is_initial {
            self.new_member_added = false;
            let delay = Millis::from(self.settings.initial_rebalance_delay_ms);
            let extension = (self.rebalance_timeout_ms() - delay).max(0);
            self.set_join_deadline(now.saturating_add(delay), Some((delay, extension)));
        } else if self.has_all_members_joined() {
            self.complete_join(now, out);
        } else {
            self.set_join_deadline(now.saturating_add(self.rebalance_timeout_ms()), None);
        }
    }

    /// An initial rebalance waits for its delay even if every member is there.
    pub(super) fn maybe_complete_join(&mut self, now: Millis, out: &mut ClassicOutcome) {
        if self.state == State::PreparingRebalance && !self.is_initial && self.has_all_members_joined() {
            self.complete_join(now, out);
        }
    }

    /// The joining is over: dynamic members that did not come are out, the other members get the next generation.
    /// Static ones stay until their session ends.
    pub(super) fn complete_join(&mut self, now: Millis, out: &mut ClassicOutcome) {
        self.join_deadline = None;
        let is_late = |member: &Member| !member.is_static() && !member.is_awaiting_join();
        let late: Vec<String> =
            self.members.iter().filter(|(_, member)| is_late(member)).map(|(id, _)| id.clone()).collect();
        for member_id in late {
            self.remove_member(&member_id, GroupError::UnknownMemberId, out);
        }
        if !self.elect_leader_that_joined() && !self.members.is_empty() {
            let pause = self.rebalance_timeout_ms().max(NONE_JOINED_RETRY_MS);
            return self.set_join_deadline(now.saturating_add(pause), None);
        }
        let before = Box::new(self.clone());
        let undo = ClassicUndo { before, keep: out.replies.len(), then: AfterUndo::CompleteLater };
        self.begin_generation(now);
        self.announce_generation(now, out);
        out.save = Some(ClassicSave { group: self.stored(), undo });
    }

    /// The leader stays if it joined; otherwise the first member that did leads. `false`: none joined.
    fn elect_leader_that_joined(&mut self) -> bool {
        let has_joined = |id: &String| self.members.get(id).is_some_and(Member::is_awaiting_join);
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| member.is_awaiting_join()).map(|(id, _)| id.clone());
        let found = joined.is_some();
        if found {
            self.leader = joined;
        }
        found
    }

    fn begin_generation(&mut self, now: Millis) {
        // i32::MAX rebalances do not happen; a stored row may say so nevertheless.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.compute_subscribed_topics();
        self.pending_sync.clear();
        self.enter(if self.members.is_empty() { State::Empty } else { State::CompletingRebalance }, now);
    }

    fn announce_generation(&mut self, now: Millis, out: &mut ClassicOutcome) {
        if self.state == State::Empty {
            return;
        }
        let member_ids: Vec<String> = self.members.keys().cloned().collect();
        for member_id in member_ids {
            let Some(member) = self.members.get_mut(&member_id) else { continue };
            member.is_new = false;
            member.can_return = true;
            member.start_session(now);
            if let Some(Awaiting::Join(token)) = member.awaiting.take() {
                out.reply_join(token, self.current_generation(&member_id));
            }
            self.pending_sync.insert(member_id);
        }
        self.recompute_wake_at();
        self.expect_syncs(now);
    }

    /// The generation ends before its assignment was known: members that wait for it join again.
    fn take_assignments_back(&mut self, now: Millis, out: &mut ClassicOutcome) {
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(Awaiting::Sync(token)) = member.awaiting {
                member.awaiting = None;
                member.start_session(now);
                out.reply_sync(token, SyncReply::error(GroupError::RebalanceInProgress));
            }
        }
        self.recompute_wake_at();
    }
}
