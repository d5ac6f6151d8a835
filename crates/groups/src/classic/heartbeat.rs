//! Heartbeat.

use super::{group::ClassicGroup, state::ClassicGroupState as State};
use crate::{error::GroupError, request::HeartbeatRequest, time::Millis};

impl ClassicGroup {
    /// REBALANCE_IN_PROGRESS keeps the session alive as well.
    pub(crate) fn heartbeat(&mut self, now: Millis, request: &HeartbeatRequest) -> Result<(), GroupError> {
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
}
