//! What an event leads to, and how it is taken back when it could not be saved.

use crate::{Group, GroupError, JoinReply, Millis, Reply, StoredGroup, SyncReply};

/// The caller's handle of a request that waits for its reply. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What to do after an event: save, then answer, then wake up. See the head of this crate.
#[derive(Debug, Default)]
#[must_use = "replies are to be sent, and what survives is to be saved"]
pub struct Outcome {
    /// Each token of the group's requests appears once, in this or in a later outcome.
    pub replies: Vec<(Token, Reply)>,
    /// To be persisted before any reply is sent.
    pub save: Option<StoredGroup>,
    /// When [`Group::tick`] is due; it may find nothing to do. `None`: nothing is waited for.
    pub wake_at: Option<Millis>,
    pub(crate) undo: Option<Undo>,
}

#[derive(Debug)]
pub(crate) struct Undo {
    /// The group before what had to be saved.
    pub(crate) before: Box<Group>,
    /// So many replies are true whether or not the save succeeded.
    pub(crate) keep: usize,
    pub(crate) then: AfterUndo,
}

#[derive(Debug)]
pub(crate) enum AfterUndo {
    /// Everybody goes on waiting; the generation is completed by the next tick.
    CompleteLater,
    RefuseJoin(Token),
    RefuseSync(Token),
}

/// How long to wait before a generation that could not be saved is tried again.
const SAVE_RETRY_MS: Millis = 1_000;

impl Outcome {
    pub(crate) fn reply_join(&mut self, token: Token, reply: JoinReply) {
        self.replies.push((token, Reply::Join(reply)));
    }

    pub(crate) fn reply_sync(&mut self, token: Token, reply: SyncReply) {
        self.replies.push((token, Reply::Sync(reply)));
    }
}

impl Group {
    /// Takes `outcome` back, whose `save` could not be persisted. No other event may have reached the group in
    /// between. `error` answers the request that cannot be kept waiting. The outcome returned has nothing to save.
    pub fn undo(&mut self, now: Millis, outcome: Outcome, error: GroupError) -> Outcome {
        let Outcome { mut replies, undo, .. } = outcome;
        if let Some(undo) = undo {
            *self = *undo.before;
            replies.truncate(undo.keep);
            match undo.then {
                AfterUndo::CompleteLater => self.complete_join_at(now.saturating_add(SAVE_RETRY_MS)),
                AfterUndo::RefuseJoin(token) => replies.push((token, Reply::Join(JoinReply::error("", error)))),
                AfterUndo::RefuseSync(token) => replies.push((token, Reply::Sync(SyncReply::error(error)))),
            }
            self.recompute_wake_at();
        }
        self.finish(Outcome { replies, ..Outcome::default() })
    }
}
