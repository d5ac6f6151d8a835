//! What members ask: to join, their assignment, whether all is well, to leave.

use std::sync::Arc;

use groups::{
    Awaiting, GroupError, HeartbeatRequest, JoinReply, JoinRequest, LeaveReply, LeaveRequest, SyncReply, SyncRequest,
    absent,
};
use tokio::sync::oneshot::Receiver;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::{active_group::ActiveGroup, handle::Coordinator, lock::LockedGroup, slot::SlotGroups};
use crate::error::ApiError;

impl Coordinator {
    /// JoinGroup; waits until the generation is there.
    pub(crate) async fn join(
        self: &Arc<Self>,
        disconnected: &CancellationToken,
        group_id: &str,
        request: JoinRequest,
    ) -> Result<JoinReply, ApiError> {
        request.validate(group_id, &self.settings)?;
        let mut locked = match absent::join(&request) {
            None => self.lock_or_make(group_id).await?,
            Some(refusal) => match self.lock(group_id).await? {
                Some(locked) => locked,
                None => return Ok(refusal),
            },
        };
        let (token, reply) = locked.state.waiting.join();
        let outcome = locked.state.group.join(self.clock.now(), token, request);
        self.carry_out(&mut locked, outcome).await;
        self.wait(disconnected, locked, Awaiting::Join(token), reply).await
    }

    /// SyncGroup; waits until the leader has handed the assignment in.
    ///
    /// While the group is loaded the member is sent back to JoinGroup: clients take
    /// COORDINATOR_LOAD_IN_PROGRESS for fatal here (Java: `SyncGroupResponseHandler`).
    pub(crate) async fn sync(
        self: &Arc<Self>,
        disconnected: &CancellationToken,
        group_id: &str,
        request: SyncRequest,
    ) -> Result<SyncReply, ApiError> {
        let mut locked = match self.lock_named(group_id).await {
            Ok(Some(locked)) => locked,
            Ok(None) => return Ok(absent::sync()),
            Err(ErrorCode::CoordinatorLoadInProgress) => return Err(ErrorCode::RebalanceInProgress.into()),
            Err(code) => return Err(code.into()),
        };
        let (token, reply) = locked.state.waiting.sync();
        let outcome = locked.state.group.sync(self.clock.now(), token, request);
        self.carry_out(&mut locked, outcome).await;
        self.wait(disconnected, locked, Awaiting::Sync(token), reply).await
    }

    /// Heartbeat. While the group is loaded every member is taken to be one, as its session begins
    /// anew with the loaded group (Kafka: `GroupCoordinatorService.heartbeat`).
    pub(crate) async fn heartbeat(
        self: &Arc<Self>,
        group_id: &str,
        request: &HeartbeatRequest,
    ) -> Result<(), ApiError> {
        match self.lock_named(group_id).await {
            Ok(Some(mut locked)) => Ok(locked.state.group.heartbeat(self.clock.now(), request)?),
            Ok(None) => Err(absent::heartbeat().into()),
            Err(ErrorCode::CoordinatorLoadInProgress) => Ok(()),
            Err(code) => Err(code.into()),
        }
    }

    /// LeaveGroup.
    pub(crate) async fn leave(self: &Arc<Self>, group_id: &str, request: LeaveRequest) -> Result<LeaveReply, ApiError> {
        let Some(mut locked) = self.lock_named(group_id).await? else { return Ok(absent::leave(&request)) };
        let (reply, outcome) = locked.state.group.leave(self.clock.now(), request);
        self.carry_out(&mut locked, outcome).await;
        Ok(reply)
    }

    /// The id of a group that has members is not empty, while offsets alone may be stored under an empty one
    /// (Kafka: `GroupCoordinatorService.isGroupIdNotEmpty`).
    async fn lock_named(self: &Arc<Self>, group_id: &str) -> Result<Option<LockedGroup>, ErrorCode> {
        if group_id.is_empty() { Err(ErrorCode::InvalidGroupId) } else { self.lock(group_id).await }
    }

    /// Waits for the reply to a request that has reached the group.
    async fn wait<R>(
        &self,
        disconnected: &CancellationToken,
        locked: LockedGroup,
        request: Awaiting,
        mut reply: Receiver<R>,
    ) -> Result<R, ApiError> {
        let (slot, group) = (locked.slot.clone(), locked.group.clone());
        drop(locked);
        tokio::select! {
            biased;
            reply = &mut reply => return reply.map_err(|_| GroupError::CoordinatorNotAvailable.into()),
            () = disconnected.cancelled() => {}
        }
        // A gateway that goes leaves the group as it is: the members go on with the next one.
        if !self.shutdown.is_draining() {
            self.cancel(slot, group, request).await;
        }
        reply.try_recv().map_err(|_| GroupError::CoordinatorNotAvailable.into())
    }

    async fn cancel(&self, slot: Arc<SlotGroups>, group: Arc<ActiveGroup>, request: Awaiting) {
        let mut locked = LockedGroup::again(slot, group).await;
        if locked.state.waiting.forget(request) && !locked.state.is_dropped {
            let outcome = locked.state.group.cancel(self.clock.now(), request);
            self.carry_out(&mut locked, outcome).await;
        }
    }
}
