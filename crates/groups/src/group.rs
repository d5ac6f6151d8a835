//! A group of any type: the one place that tells them apart.
//!
//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the offsets' APIs name a group by its id alone, so every type of
//! group answers each of them.

use std::collections::BTreeSet;

use crate::{
    classic::{ClassicGroup, DescribedGroup},
    error::GroupError,
    group_type::GroupType,
    listed_group::ListedGroup,
    outcome::{Outcome, Undo},
    reply::{Awaiting, JoinToken, LeaveReply, Reply, SyncToken},
    request::{CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, SyncRequest},
    settings::Settings,
    stored::StoredGroup,
    time::Millis,
};

/// A group that a coordinator has in memory.
#[derive(Debug, Clone)]
pub enum Group {
    Classic(ClassicGroup),
}

impl Group {
    /// A classic group that no member has joined yet.
    pub fn classic(id: &str, settings: &Settings, now: Millis) -> Group {
        Group::Classic(ClassicGroup::new(id, settings, now))
    }

    /// Goes on from what was saved last: same generation, members and assignment; every member has its whole
    /// session timeout to be heard of. Ask [`Group::wake_at`] for the first wake-up.
    pub fn restore(id: &str, settings: &Settings, stored: StoredGroup, now: Millis) -> Group {
        match stored {
            StoredGroup::Classic(stored) => Group::Classic(ClassicGroup::restore(id, settings, stored, now)),
        }
    }

    /// JoinGroup: a member wants to be in the next generation. The reply often comes with a later event.
    pub fn join(&mut self, now: Millis, token: JoinToken, request: JoinRequest) -> Outcome {
        match self {
            Group::Classic(group) => group.join(now, token, request).into(),
        }
    }

    /// SyncGroup: the leader hands the assignment in, the other members wait for it.
    pub fn sync(&mut self, now: Millis, token: SyncToken, request: SyncRequest) -> Outcome {
        match self {
            Group::Classic(group) => group.sync(now, token, request).into(),
        }
    }

    /// Heartbeat. Never changes anything that must be saved.
    pub fn heartbeat(&mut self, now: Millis, request: &HeartbeatRequest) -> Result<(), GroupError> {
        match self {
            Group::Classic(group) => group.heartbeat(now, request),
        }
    }

    /// LeaveGroup. The reply is true whether or not the outcome can be saved.
    pub fn leave(&mut self, now: Millis, request: LeaveRequest) -> (LeaveReply, Outcome) {
        match self {
            Group::Classic(group) => {
                let (reply, outcome) = group.leave(now, request);
                (reply, outcome.into())
            }
        }
    }

    /// OffsetCommit and TxnOffsetCommit: checks the member and refreshes its session. No event may come between the
    /// check and the writing of the offsets that makes another generation.
    pub fn check_commit(&mut self, now: Millis, request: &CommitRequest) -> Result<(), GroupError> {
        match self {
            Group::Classic(group) => group.check_commit(now, request),
        }
    }

    /// Does what is due, in the order of the deadlines. At most one save comes out of it; if more is due,
    /// `wake_at` is not in the future.
    pub fn tick(&mut self, now: Millis) -> Outcome {
        match self {
            Group::Classic(group) => group.tick(now).into(),
        }
    }

    /// When [`Group::tick`] is due; it may find nothing to do. `None`: nothing is waited for.
    pub fn wake_at(&self) -> Option<Millis> {
        match self {
            Group::Classic(group) => group.wake_at(),
        }
    }

    /// The connection of a request that waits is gone: no reply is given.
    pub fn cancel(&mut self, now: Millis, request: Awaiting) -> Outcome {
        match self {
            Group::Classic(group) => group.cancel(now, request).into(),
        }
    }

    /// Takes `outcome` back, whose `save` could not be persisted. No other event may have reached the group in
    /// between. `error` answers the request that cannot be kept waiting. Returns the replies that are right in this
    /// case; there is nothing to save.
    pub fn undo(&mut self, now: Millis, outcome: Outcome, error: GroupError) -> Vec<Reply> {
        let Outcome { mut replies, undo, .. } = outcome;
        if let Some(undo) = undo {
            *self = match undo {
                Undo::Classic(undo) => Group::Classic(undo.take_back(now, &mut replies, error)),
            };
        }
        replies
    }

    /// Ends the group here: it was deleted (`CoordinatorNotAvailable`) or another gateway coordinates it
    /// (`NotCoordinator`). The requests that wait hear `error`, later ones COORDINATOR_NOT_AVAILABLE.
    #[must_use = "the replies are to be sent"]
    pub fn close(&mut self, error: GroupError) -> Vec<Reply> {
        match self {
            Group::Classic(group) => group.close(error),
        }
    }

    /// Nothing is lost when the group is dropped from memory: no members, and no member id given out.
    pub fn is_idle(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_idle(),
        }
    }

    /// Neither members nor a rebalance; or the group was closed here.
    pub fn is_empty(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_empty(),
        }
    }

    /// Closed here.
    pub fn is_dead(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_dead(),
        }
    }

    pub fn generation(&self) -> i32 {
        match self {
            Group::Classic(group) => group.generation(),
        }
    }

    /// DescribeGroups.
    pub fn describe(&self) -> DescribedGroup {
        match self {
            Group::Classic(group) => group.describe(),
        }
    }

    /// ListGroups.
    pub fn list(&self) -> ListedGroup {
        match self {
            Group::Classic(group) => ListedGroup {
                group_id: group.id().to_owned(),
                group_type: GroupType::Classic,
                state: group.state().name(),
                protocol_type: group.protocol_type().to_owned(),
            },
        }
    }

    /// DeleteGroups: only a group without members can be deleted.
    pub fn check_delete(&self) -> Result<(), GroupError> {
        match self {
            Group::Classic(group) => group.check_delete(),
        }
    }

    /// OffsetDelete, for the whole request.
    pub fn check_offset_delete(&self) -> Result<(), GroupError> {
        match self {
            Group::Classic(group) => group.check_offset_delete(),
        }
    }

    /// OffsetDelete, for one topic.
    pub fn check_offset_delete_of(&self, topic: &str) -> Result<(), GroupError> {
        match self {
            Group::Classic(group) => group.check_offset_delete_of(topic),
        }
    }

    /// Topics whose offsets do not expire, however old, since the group has members that read them; `None`: all
    /// topics, as long as it is not known which (KIP-211). The offsets of other topics expire as those of a simple
    /// group.
    pub fn needed_topics(&self) -> Option<&BTreeSet<String>> {
        match self {
            Group::Classic(group) => group.needed_topics(),
        }
    }
}
