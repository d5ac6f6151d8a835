//! The deadlines that move a group on, and the time to look at them.

use super::group::{ClassicGroup, JoinDeadline};
use crate::time::Millis;

impl ClassicGroup {
    pub(crate) fn wake_at(&self) -> Option<Millis> {
        self.wake_at
    }

    /// `tick` is wanted at `at`, or before.
    pub(super) fn wake_by(&mut self, at: Millis) {
        self.wake_at = Some(self.wake_at.map_or(at, |wake_at| wake_at.min(at)));
    }

    /// The exact time after deadlines went away. Elsewhere `wake_at` only comes nearer: refreshing a session, which
    /// is what happens most, then costs nothing, and the tick that comes too early sets it right.
    pub(super) fn recompute_wake_at(&mut self) {
        self.wake_at = self.first_deadline();
    }

    pub(super) fn first_deadline(&self) -> Option<Millis> {
        let members = self.members.values().filter_map(|member| member.deadline);
        let pending = self.pending_members.values().copied();
        let join = self.join_deadline.map(|deadline| deadline.at);
        members.chain(pending).chain(join).chain(self.sync_deadline).min()
    }

    pub(super) fn set_join_deadline(&mut self, at: Millis, initial: Option<(Millis, Millis)>) {
        self.join_deadline = Some(JoinDeadline { at, initial });
        self.wake_by(at);
    }

    pub(super) fn expect_syncs(&mut self, now: Millis) {
        let deadline = now.saturating_add(self.rebalance_timeout_ms());
        self.sync_deadline = Some(deadline);
        self.wake_by(deadline);
    }

    /// The member was heard of, or got an answer: it has its session timeout until the next sign of life.
    pub(super) fn start_session(&mut self, now: Millis, member_id: &str) {
        if let Some(deadline) = self.members.get_mut(member_id).map(|member| member.start_session(now)) {
            self.wake_by(deadline);
        }
    }

    /// A sign of life. A member whose request waits is alive by that, and has no session deadline to move.
    pub(super) fn refresh_session(&mut self, now: Millis, member_id: &str) {
        if self.members.get(member_id).is_some_and(|member| member.awaiting.is_none()) {
            self.start_session(now, member_id);
        }
    }
}
