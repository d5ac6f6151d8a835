//! Deadlines that pass.

use super::{group::ClassicGroup, outcome::ClassicOutcome, state::ClassicGroupState as State};
use crate::{error::GroupError, time::Millis};

enum Due {
    Pending(String),
    Member(String),
    Join,
    Sync,
}

impl ClassicGroup {
    pub(crate) fn tick(&mut self, now: Millis) -> ClassicOutcome {
        let mut out = ClassicOutcome::default();
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

    fn expire_pending(&mut self, now: Millis, member_id: &str, out: &mut ClassicOutcome) {
        self.pending_members.remove(member_id);
        self.complete_join_if_all_joined(now, out);
    }

    pub(super) fn expire_member(&mut self, now: Millis, member_id: &str, out: &mut ClassicOutcome) {
        self.remove_member(member_id, GroupError::UnknownMemberId, out);
        match self.state {
            State::Stable | State::CompletingRebalance => self.prepare_rebalance(now, out),
            _ => self.complete_join_if_all_joined(now, out),
        }
    }

    /// Kafka ends the initial delay as well when the last one that was waited for is gone.
    fn complete_join_if_all_joined(&mut self, now: Millis, out: &mut ClassicOutcome) {
        if self.state == State::PreparingRebalance && self.has_all_members_joined() {
            self.complete_join(now, out);
        }
    }

    fn expire_join(&mut self, now: Millis, out: &mut ClassicOutcome) {
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

    fn expire_sync(&mut self, now: Millis, out: &mut ClassicOutcome) {
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
