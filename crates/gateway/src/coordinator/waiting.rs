//! The requests of a group that wait for their replies.

use std::collections::HashMap;

use groups::{Awaiting, JoinReply, JoinToken, Reply, SyncReply, SyncToken};
use tokio::sync::oneshot::{Receiver, Sender, channel};

/// What answers each token that was given out and is still awaited.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    last_token: u64,
    joins: HashMap<JoinToken, Sender<JoinReply>>,
    syncs: HashMap<SyncToken, Sender<SyncReply>>,
}

impl Waiting {
    pub(super) fn join(&mut self) -> (JoinToken, Receiver<JoinReply>) {
        let token = JoinToken(self.next_token());
        let (sender, receiver) = channel();
        self.joins.insert(token, sender);
        (token, receiver)
    }

    pub(super) fn sync(&mut self) -> (SyncToken, Receiver<SyncReply>) {
        let token = SyncToken(self.next_token());
        let (sender, receiver) = channel();
        self.syncs.insert(token, sender);
        (token, receiver)
    }

    /// Sends the replies; those of requests whose connections are gone are lost.
    pub(super) fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            match reply {
                Reply::Join(token, reply) => send(self.joins.remove(&token), reply),
                Reply::Sync(token, reply) => send(self.syncs.remove(&token), reply),
            }
        }
    }

    /// `false`: it was answered before.
    pub(super) fn forget(&mut self, request: Awaiting) -> bool {
        match request {
            Awaiting::Join(token) => self.joins.remove(&token).is_some(),
            Awaiting::Sync(token) => self.syncs.remove(&token).is_some(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.syncs.is_empty()
    }

    fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }
}

fn send<R>(sender: Option<Sender<R>>, reply: R) {
    if let Some(sender) = sender {
        // A request whose connection is gone does not listen any more.
        let _ = sender.send(reply);
    }
}
