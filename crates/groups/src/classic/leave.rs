//! LeaveGroup, single and batch.
//!
//! Different from Apache Kafka: a member that leaves while its SyncGroup waits has it answered (Kafka forgets it),
//! and a member id that was given out but never joined leaves without a rebalance.

use super::{group::ClassicGroup, outcome::ClassicOutcome, state::ClassicGroupState as State};
use crate::{
    error::GroupError,
    reply::{LeaveReply, LeaveResult},
    request::{LeaveRequest, LeavingMember},
    time::Millis,
};

impl ClassicGroup {
    pub(crate) fn leave(&mut self, now: Millis, request: LeaveRequest) -> (LeaveReply, ClassicOutcome) {
        let mut out = ClassicOutcome::default();
        if self.state == State::Dead {
            let reply = LeaveReply { error: Some(GroupError::CoordinatorNotAvailable), members: Vec::new() };
            return (reply, self.finish(out));
        }
        let size = self.members.len();
        let mut members = Vec::with_capacity(request.members.len());
        for LeavingMember { member_id, instance_id } in request.members {
            let error = self.remove_leaving(&member_id, instance_id.as_deref(), &mut out).err();
            members.push(LeaveResult { member_id, instance_id, error });
        }
        if self.members.len() < size {
            self.rebalance_or_complete_join(now, &mut out);
        } else {
            self.maybe_complete_join(now, &mut out);
        }
        (LeaveReply { error: None, members }, self.finish(out))
    }

    fn remove_leaving(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        out: &mut ClassicOutcome,
    ) -> Result<(), GroupError> {
        let member_id = if member_id.is_empty() {
            let current = instance_id.and_then(|instance_id| self.static_members.get(instance_id));
            current.cloned().ok_or(GroupError::UnknownMemberId)?
        } else {
            if !self.pending_members.contains_key(member_id) {
                self.validate_member(member_id, instance_id)?;
            }
            member_id.to_owned()
        };
        self.remove_member(&member_id, GroupError::UnknownMemberId, out);
        Ok(())
    }
}
