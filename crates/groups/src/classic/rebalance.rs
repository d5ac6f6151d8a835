//! From one generation to the next: who has joined, when the joining ends, and what happens then.

use std::collections::BTreeSet;

use super::member::{Member, Parked};
use super::state::{Group, JoinDeadline, State};
use crate::outcome::{AfterUndo, Undo};
use crate::{CONSUMER_PROTOCOL_TYPE, GroupError, Millis, Outcome, SyncReply, subscribed_topics};

/// Not sooner is a rebalance tried again that none of the (static) members joined.
const NOBODY_JOINED_RETRY_MS: Millis = 1_000;

impl Group {
    /// The membership changed.
    pub(crate) fn rebalance_or_complete_join(&mut self, now: Millis, out: &mut Outcome) {
        if self.state == State::PreparingRebalance {
            self.maybe_complete_join(now, out);
        } else {
            self.prepare_rebalance(now, out);
        }
    }

    pub(crate) fn prepare_rebalance(&mut self, now: Millis, out: &mut Outcome) {
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

    /// An initial rebalance waits for its delay even if everyone is there.
    pub(crate) fn maybe_complete_join(&mut self, now: Millis, out: &mut Outcome) {
        if self.state == State::PreparingRebalance && !self.is_initial && self.has_all_members_joined() {
            self.complete_join(now, out);
        }
    }

    pub(crate) fn has_all_members_joined(&self) -> bool {
        self.pending_members.is_empty() && self.members.values().all(Member::awaits_join)
    }

    /// The joining is over: dynamic members that did not come are out, the others get the next generation. Static
    /// ones stay until their session ends.
    pub(crate) fn complete_join(&mut self, now: Millis, out: &mut Outcome) {
        self.join_deadline = None;
        let is_late = |member: &Member| !member.is_static() && !member.awaits_join();
        let late: Vec<String> =
            self.members.iter().filter(|(_, member)| is_late(member)).map(|(id, _)| id.clone()).collect();
        for member_id in late {
            self.remove_member(&member_id, GroupError::UnknownMemberId, out);
        }
        if !self.elect_leader_that_joined() && !self.members.is_empty() {
            let pause = self.rebalance_timeout_ms().max(NOBODY_JOINED_RETRY_MS);
            return self.complete_join_at(now.saturating_add(pause));
        }
        let undo = Undo { before: Box::new(self.clone()), keep: out.replies.len(), then: AfterUndo::CompleteLater };
        self.begin_generation(now);
        self.announce_generation(now, out);
        out.save = Some(self.stored());
        out.undo = Some(undo);
    }

    pub(crate) fn complete_join_at(&mut self, at: Millis) {
        self.set_join_deadline(at, None);
    }

    pub(crate) fn set_join_deadline(&mut self, at: Millis, initial: Option<(Millis, Millis)>) {
        self.join_deadline = Some(JoinDeadline { at, initial });
        self.wake_by(at);
    }

    /// The leader stays if it joined; otherwise the first who did leads. `false`: nobody joined.
    fn elect_leader_that_joined(&mut self) -> bool {
        let has_joined = |id: &String| self.members.get(id).is_some_and(Member::awaits_join);
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| member.awaits_join()).map(|(id, _)| id.clone());
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

    fn announce_generation(&mut self, now: Millis, out: &mut Outcome) {
        if self.state == State::Empty {
            return;
        }
        let member_ids: Vec<String> = self.members.keys().cloned().collect();
        for member_id in member_ids {
            let Some(member) = self.members.get_mut(&member_id) else { continue };
            member.is_new = false;
            member.can_return = true;
            let deadline = member.refresh(now);
            if let Some(Parked::Join(token)) = member.parked.take() {
                out.reply_join(token, self.current_generation(&member_id));
            }
            self.wake_by(deadline);
            self.pending_sync.insert(member_id);
        }
        self.expect_syncs(now);
    }

    pub(crate) fn expect_syncs(&mut self, now: Millis) {
        let deadline = now.saturating_add(self.rebalance_timeout_ms());
        self.sync_deadline = Some(deadline);
        self.wake_by(deadline);
    }

    /// The generation ends before its assignment was known: whoever waits for it joins again.
    fn take_assignments_back(&mut self, now: Millis, out: &mut Outcome) {
        let mut deadlines = Vec::new();
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(Parked::Sync(token)) = member.parked {
                member.parked = None;
                deadlines.push(member.refresh(now));
                out.reply_sync(token, SyncReply::error(GroupError::RebalanceInProgress));
            }
        }
        deadlines.into_iter().for_each(|deadline| self.wake_by(deadline));
    }

    pub(crate) fn enter(&mut self, state: State, now: Millis) {
        self.state = state;
        self.state_since = now;
    }

    /// `None`: other protocol type (never parsed), or a subscription that is not one.
    pub(crate) fn compute_subscribed_topics(&self) -> Option<BTreeSet<String>> {
        if self.protocol_type.as_deref() != Some(CONSUMER_PROTOCOL_TYPE) {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.append(&mut subscribed_topics(&member.metadata(protocol))?);
        }
        Some(topics)
    }
}
