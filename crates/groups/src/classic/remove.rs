//! Members that are out, one or all.

use super::{group::ClassicGroup, outcome::ClassicOutcome, state::ClassicGroupState as State};
use crate::{error::GroupError, reply::Reply};

impl ClassicGroup {
    /// Removes a member with everything that waits for it; its own request that waits hears `error`.
    pub(super) fn remove_member(&mut self, member_id: &str, error: GroupError, out: &mut ClassicOutcome) {
        self.pending_members.remove(member_id);
        self.pending_sync.remove(member_id);
        let Some(mut member) = self.members.remove(member_id) else { return };
        out.refuse_awaiting(&mut member, "", error);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    pub(crate) fn close(&mut self, error: GroupError) -> Vec<Reply> {
        let mut out = ClassicOutcome::default();
        for (member_id, member) in &mut self.members {
            out.refuse_awaiting(member, member_id, error);
        }
        let closed = ClassicGroup::new(&self.id, &self.settings, self.state_since);
        *self = ClassicGroup { state: State::Dead, ..closed };
        self.finish(out).replies
    }
}
