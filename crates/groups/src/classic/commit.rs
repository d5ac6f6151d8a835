//! Which commits of offsets are let through (OffsetCommit and TxnOffsetCommit).

use super::{group::ClassicGroup, state::ClassicGroupState as State};
use crate::{error::GroupError, request::CommitRequest, time::Millis};

impl ClassicGroup {
    /// Kafka: `ClassicGroup.validateOffsetCommit`. TxnOffsetCommit checks the member only when it names one, and is
    /// let through while the group rebalances.
    pub(crate) fn check_commit(&mut self, now: Millis, request: &CommitRequest) -> Result<(), GroupError> {
        if self.state == State::Dead {
            return Err(GroupError::CoordinatorNotAvailable);
        }
        if request.generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if request.generation >= 0 || !request.member_id.is_empty() || request.instance_id.is_some() {
            self.validate_member(&request.member_id, request.instance_id.as_deref())?;
            if request.generation != self.generation {
                return Err(GroupError::IllegalGeneration);
            }
        } else if !request.transactional && self.state != State::Empty {
            return Err(GroupError::UnknownMemberId);
        }
        if request.transactional {
            return Ok(());
        }
        if self.state == State::CompletingRebalance {
            return Err(GroupError::RebalanceInProgress);
        }
        self.refresh_session(now, &request.member_id);
        Ok(())
    }
}
