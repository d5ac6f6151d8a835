//! LeaveGroup, single and batch.
//!
//! Different from Apache Kafka: a member that leaves while its SyncGroup waits has it answered (Kafka forgets it),
//! and a member id that was given out but never joined leaves without a rebalance.

use super::state::{Group, State};
use crate::{GroupError, LeaveReply, LeaveRequest, LeaveResult, LeavingMember, Millis, Outcome, Reply, Token};

impl Group {
    pub fn leave(&mut self, now: Millis, token: Token, request: LeaveRequest) -> Outcome {
        let mut out = Outcome::default();
        if self.state == State::Dead {
            let reply = LeaveReply { error: Some(GroupError::CoordinatorNotAvailable), members: Vec::new() };
            out.replies.push((token, Reply::Leave(reply)));
            return self.finish(out);
        }
        let size = self.members.len();
        let mut members = Vec::with_capacity(request.members.len());
        for LeavingMember { member_id, instance_id } in request.members {
            let error = self.remove_leaving(&member_id, instance_id.as_deref(), &mut out).err();
            members.push(LeaveResult { member_id, instance_id, error });
        }
        // Before the generation: it is true also if that cannot be saved now.
        out.replies.push((token, Reply::Leave(LeaveReply { error: None, members })));
        if self.members.len() < size {
            self.rebalance_or_complete_join(now, &mut out);
        } else {
            self.maybe_complete_join(now, &mut out);
        }
        self.finish(out)
    }

    fn remove_leaving(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        out: &mut Outcome,
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
