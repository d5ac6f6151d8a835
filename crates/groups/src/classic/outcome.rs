//! What an event of a classic group leads to, and how it is taken back when it could not be saved.

use super::{group::ClassicGroup, member::Member};
use crate::{
    error::GroupError,
    reply::{Awaiting, JoinReply, JoinToken, Reply, SyncReply, SyncToken},
    stored::StoredClassicGroup,
    time::Millis,
};

#[derive(Debug, Default)]
pub(crate) struct ClassicOutcome {
    pub(crate) replies: Vec<Reply>,
    pub(crate) save: Option<ClassicSave>,
}

#[derive(Debug)]
pub(crate) struct ClassicSave {
    pub(crate) group: StoredClassicGroup,
    pub(crate) undo: ClassicUndo,
}

#[derive(Debug)]
pub(crate) struct ClassicUndo {
    /// The group before what had to be saved.
    pub(super) before: Box<ClassicGroup>,
    /// So many replies are true whether or not the save succeeded.
    pub(super) keep: usize,
    pub(super) then: AfterUndo,
}

#[derive(Debug)]
pub(super) enum AfterUndo {
    /// Every request goes on waiting; the generation is completed by the next tick.
    CompleteLater,
    RefuseJoin(JoinToken),
    RefuseSync(SyncToken),
}

/// How long to wait before a generation that could not be saved is tried again.
const SAVE_RETRY_MS: Millis = 1_000;

impl ClassicOutcome {
    pub(super) fn reply_join(&mut self, token: JoinToken, reply: JoinReply) {
        self.replies.push(Reply::Join(token, reply));
    }

    pub(super) fn reply_sync(&mut self, token: SyncToken, reply: SyncReply) {
        self.replies.push(Reply::Sync(token, reply));
    }

    /// Answers the request of the member that waits, if there is one, with an error.
    pub(super) fn refuse_awaiting(&mut self, member: &mut Member, member_id: &str, error: GroupError) {
        match member.awaiting.take() {
            Some(Awaiting::Join(token)) => self.reply_join(token, JoinReply::error(member_id, error)),
            Some(Awaiting::Sync(token)) => self.reply_sync(token, SyncReply::error(error)),
            None => {}
        }
    }
}

impl ClassicUndo {
    /// The group as it goes on, without what could not be saved; leaves of `replies` those that are true then.
    pub(crate) fn take_back(self, now: Millis, replies: &mut Vec<Reply>, error: GroupError) -> ClassicGroup {
        let mut group = *self.before;
        replies.truncate(self.keep);
        match self.then {
            AfterUndo::CompleteLater => group.set_join_deadline(now.saturating_add(SAVE_RETRY_MS), None),
            AfterUndo::RefuseJoin(token) => replies.push(Reply::Join(token, JoinReply::error("", error))),
            AfterUndo::RefuseSync(token) => replies.push(Reply::Sync(token, SyncReply::error(error))),
        }
        group.recompute_wake_at();
        group
    }
}

impl ClassicGroup {
    /// Every event ends here.
    pub(super) fn finish(&self, out: ClassicOutcome) -> ClassicOutcome {
        debug_assert_eq!(self.broken_invariant(), None, "{self:?}");
        out
    }
}
