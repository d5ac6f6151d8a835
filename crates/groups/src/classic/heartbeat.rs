//! Heartbeat.

use super::state::{Group, State};
use crate::{GroupError, HeartbeatRequest, Millis};

impl Group {
    /// Never changes anything that must be saved. REBALANCE_IN_PROGRESS keeps the session alive as well.
    pub fn heartbeat(&mut self, now: Millis, request: &HeartbeatRequest) -> Result<(), GroupError> {
        if self.state == State::Dead {
            return Err(GroupError::CoordinatorNotAvailable);
        }
        self.validate_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        self.refresh_session(now, &request.member_id);
        if self.state == State::PreparingRebalance { Err(GroupError::RebalanceInProgress) } else { Ok(()) }
    }

    /// A member with a parked request is alive by that, and has no session deadline to move.
    pub(crate) fn refresh_session(&mut self, now: Millis, member_id: &str) {
        let member = self.members.get_mut(member_id).filter(|member| member.parked.is_none());
        if let Some(deadline) = member.map(|member| member.refresh(now)) {
            self.wake_by(deadline);
        }
    }
}
