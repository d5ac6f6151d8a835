//! An honest client: what it does next, and what it knows.

use bytes::Bytes;
use groups::{GroupError, JoinReply, JoinToken, SyncToken};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Doing {
    Nothing,
    Join,
    Joining(JoinToken),
    Sync,
    Syncing(SyncToken),
    Stable,
}

/// An honest client: 0 and 1 dynamic and new, 2 and 3 static, 4 of version 3, 5 of version 0.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) version: i16,
    pub(super) instance_id: Option<String>,
    pub(super) member_id: String,
    pub(super) doing: Doing,
    pub(super) generation: i32,
    pub(super) joined: Option<JoinReply>,
    pub(super) owned: Bytes,
    pub(super) topic: u8,
}

impl Client {
    pub(super) fn new(n: usize) -> Client {
        Client {
            version: [9, 5, 9, 7, 3, 0][n],
            instance_id: matches!(n, 2 | 3).then(|| format!("instance{n}")),
            member_id: String::new(),
            doing: Doing::Nothing,
            generation: -1,
            joined: None,
            owned: Bytes::new(),
            topic: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        self.member_id.clear();
        self.generation = -1;
        self.owned.clear();
        self.doing = Doing::Join;
    }

    /// What a client does about an error.
    pub(super) fn failed(&mut self, error: GroupError) {
        match error {
            GroupError::UnknownMemberId | GroupError::FencedInstanceId => self.reset(),
            GroupError::RebalanceInProgress
            | GroupError::IllegalGeneration
            | GroupError::MemberIdRequired
            | GroupError::CoordinatorNotAvailable => self.doing = Doing::Join,
            other => panic!("an honest client hears {other}"),
        }
    }
}
