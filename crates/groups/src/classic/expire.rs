//! What happens by itself: deadlines that pass and connections that are lost.

use super::member::Parked;
use super::state::{Group, State};
use crate::{GroupError, Millis, Outcome, Token};

enum Due {
    Pending(String),
    Member(String),
    Join,
    Sync,
}

impl Group {
    /// Does what is due, in the order of the deadlines. At most one save comes out of it; if more is due,
    /// `wake_at` is not in the future.
    pub fn tick(&mut self, now: Millis) -> Outcome {
        let mut out = Outcome::default();
        while out.save.is_none()
            && let Some(due) = self.next_due(now)
        {
            match due {
                Due::Pending(member_id) => self.expire_pending(now, &member_id, &mut out),
                Due::Member(member_id) => self.expire_member(now, &member_id, &mut out),
                Due::Join => self.expire_join(now, &mut out),
                Due::Sync => self.expire_sync(now, &mut out),
            }
        }
        self.recompute_wake_at();
        self.finish(out)
    }

    /// The connection of a parked request is gone; nobody would hear the reply, and none is given.
    ///
    /// Kafka does not notice. Here the member is no longer taken for one that waits: it has its session timeout to
    /// come back. A new member that the client can never name again is removed at once.
    pub fn cancel(&mut self, now: Millis, token: Token) -> Outcome {
        let mut out = Outcome::default();
        let is_parked = |parked| parked == Parked::Join(token) || parked == Parked::Sync(token);
        let found = self.members.iter_mut().find(|(_, member)| member.parked.is_some_and(is_parked));
        if let Some((member_id, member)) = found {
            member.parked = None;
            let deadline = member.refresh(now);
            let lost = (!member.can_return).then(|| member_id.clone());
            self.wake_by(deadline);
            if let Some(member_id) = lost {
                self.expire_member(now, &member_id, &mut out);
            }
        }
        self.finish(out)
    }

    fn next_due(&self, now: Millis) -> Option<Due> {
        let pending = self.pending_members.iter().map(|(id, at)| (*at, id)).min();
        let member = self.members.iter().filter_map(|(id, member)| Some((member.deadline?, id))).min();
        let join = self.join_deadline.map(|deadline| (deadline.at, Due::Join));
        let sync = self.sync_deadline.map(|at| (at, Due::Sync));
        let pending = pending.map(|(at, id)| (at, Due::Pending(id.clone())));
        let member = member.map(|(at, id)| (at, Due::Member(id.clone())));
        let all = [pending, member, join, sync].into_iter().flatten();
        all.filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at).map(|(_, due)| due)
    }

    fn expire_pending(&mut self, now: Millis, member_id: &str, out: &mut Outcome) {
        self.pending_members.remove(member_id);
        self.complete_join_if_all_joined(now, out);
    }

    fn expire_member(&mut self, now: Millis, member_id: &str, out: &mut Outcome) {
        self.remove_member(member_id, GroupError::UnknownMemberId, out);
        match self.state {
            State::Stable | State::CompletingRebalance => self.prepare_rebalance(now, out),
            _ => self.complete_join_if_all_joined(now, out),
        }
    }

    /// Kafka ends the initial delay as well when the last one that was waited for is gone.
    fn complete_join_if_all_joined(&mut self, now: Millis, out: &mut Outcome) {
        if self.state == State::PreparingRebalance && self.has_all_members_joined() {
            self.complete_join(now, out);
        }
    }

    fn expire_join(&mut self, now: Millis, out: &mut Outcome) {
        let Some(deadline) = self.join_deadline.take() else { return };
        match deadline.initial {
            // Kafka: `tryCompleteInitialRebalanceElseSchedule`.
            Some((delay, extension)) if self.new_member_added && extension > 0 => {
                self.new_member_added = false;
                let next_delay = extension.min(self.settings.initial_rebalance_delay_ms.into());
                let next_extension = (extension - delay).max(0);
                self.set_join_deadline(now.saturating_add(next_delay), Some((next_delay, next_extension)));
            }
            _ => self.complete_join(now, out),
        }
    }

    fn expire_sync(&mut self, now: Millis, out: &mut Outcome) {
        self.sync_deadline = None;
        let late = std::mem::take(&mut self.pending_sync);
        for member_id in &late {
            self.remove_member(member_id, GroupError::UnknownMemberId, out);
        }
        if !late.is_empty() {
            self.prepare_rebalance(now, out);
        }
    }
}
