//! The group with its clients, its row in the database and the clock; what must hold after every event.

use std::collections::{BTreeMap, BTreeSet};

use groups::{
    ClassicGroupState as State, Group, GroupError, JoinReply, JoinToken, Millis, Outcome, Reply, Settings,
    StoredClassicGroup, StoredGroup, SyncToken,
};

use super::client::{Client, Doing};
use crate::driver::{START, heartbeat};

pub(super) const SESSION: i32 = 8_000;
pub(super) const REBALANCE: i32 = 20_000;
pub(super) const PARTITIONS: u8 = 8;
/// The joining ends after the rebalance timeout, or after the initial delay and its extensions.
const LONGEST_WAIT: Millis = REBALANCE as Millis + 3_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) client: Option<usize>,
    pub(super) since: Millis,
}

pub(super) struct World {
    pub(super) group: Group,
    pub(super) now: Millis,
    pub(super) clients: Vec<Client>,
    /// By the number of the token.
    pub(super) waiting: BTreeMap<u64, Waiting>,
    pub(super) next_token: u64,
    pub(super) saved: Option<StoredClassicGroup>,
    /// What is in memory is behind what is in the database.
    pub(super) in_doubt: bool,
    pub(super) fail_save: Option<bool>,
    /// Time lost to saves that failed.
    pub(super) delayed: Millis,
    pub(super) heard_generation: i32,
    /// Generation and partition to instance or member id.
    pub(super) owners: BTreeMap<(i32, u8), String>,
    /// Generations in which a lie was accepted from the leader.
    pub(super) spoilt: BTreeSet<i32>,
}

impl World {
    pub(super) fn new() -> World {
        World {
            group: Group::classic("g", &Settings::default(), START),
            now: START,
            clients: (0..6).map(Client::new).collect(),
            waiting: BTreeMap::new(),
            next_token: 0,
            saved: None,
            in_doubt: false,
            fail_save: None,
            delayed: 0,
            heard_generation: 0,
            owners: BTreeMap::new(),
            spoilt: BTreeSet::new(),
        }
    }

    pub(super) fn join_token(&mut self, client: Option<usize>) -> JoinToken {
        JoinToken(self.waits(client))
    }

    pub(super) fn sync_token(&mut self, client: Option<usize>) -> SyncToken {
        SyncToken(self.waits(client))
    }

    fn waits(&mut self, client: Option<usize>) -> u64 {
        self.next_token += 1;
        self.waiting.insert(self.next_token, Waiting { client, since: self.now });
        self.next_token
    }

    pub(super) fn state(&self) -> State {
        self.group.describe().state
    }

    /// Saves, unless that fails, and delivers the replies that are true then.
    pub(super) fn apply(&mut self, outcome: Outcome) {
        let Some(stored) = &outcome.save else { return self.deliver(outcome.replies) };
        let StoredGroup::Classic(stored) = StoredGroup::from_json(&stored.to_json().unwrap()).unwrap();
        assert!(stored.generation >= self.saved.as_ref().map_or(0, |saved| saved.generation));
        let failed = self.fail_save.take();
        self.in_doubt = failed.is_some();
        if failed != Some(false) {
            self.saved = Some(stored);
        }
        let replies = match failed {
            None => outcome.replies,
            Some(_) => {
                self.delayed += 1_000;
                self.group.undo(self.now, outcome, GroupError::CoordinatorNotAvailable)
            }
        };
        self.deliver(replies);
    }

    fn deliver(&mut self, replies: Vec<Reply>) {
        let answered = "answered twice, or after the connection was gone";
        for reply in replies {
            match reply {
                Reply::Join(token, reply) => {
                    let waiting = self.waiting.remove(&token.0).expect(answered);
                    self.check_joined(&reply);
                    if let Some(client) = waiting.client {
                        self.client_joined(client, reply);
                    }
                }
                Reply::Sync(token, reply) => {
                    let waiting = self.waiting.remove(&token.0).expect(answered);
                    if let Some(client) = waiting.client {
                        self.client_synced(client, reply);
                    }
                }
            }
        }
    }

    fn check_joined(&mut self, reply: &JoinReply) {
        if reply.error.is_none() {
            assert!(reply.generation >= self.heard_generation, "generations only rise");
            self.heard_generation = reply.generation;
            assert!(self.saved.as_ref().is_some_and(|saved| saved.generation >= reply.generation), "not saved");
        }
    }

    pub(super) fn restart(&mut self) {
        let restored = match self.saved.clone() {
            Some(stored) => Group::restore("g", &Settings::default(), StoredGroup::Classic(stored), self.now),
            None => Group::classic("g", &Settings::default(), self.now),
        };
        let is_kept = !matches!(self.state(), State::PreparingRebalance) && !self.in_doubt;
        if is_kept {
            assert_eq!(restored.describe(), self.group.describe());
            assert_eq!(restored.generation(), self.group.generation());
            let mut restored = restored.clone();
            for member in restored.describe().members {
                let request = heartbeat(&member.member_id, restored.generation());
                assert_eq!(restored.heartbeat(self.now, &request), Ok(()));
            }
        }
        self.group = restored;
        self.in_doubt = false;
        for client in &mut self.clients {
            if matches!(client.doing, Doing::Joining(_) | Doing::Syncing(_)) {
                client.doing = Doing::Join;
            }
        }
        self.waiting.clear();
    }

    pub(super) fn pass(&mut self, ms: Millis) {
        let end = self.now + ms;
        let mut ticks = 0;
        while let Some(at) = self.group.wake_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let outcome = self.group.tick(self.now);
            self.apply(outcome);
            ticks += 1;
            assert!(ticks < 10_000, "the timers never come to rest");
        }
        self.now = end;
    }

    pub(super) fn check(&mut self) {
        let longest = LONGEST_WAIT + self.delayed;
        for (token, waiting) in &self.waiting {
            let waited = self.now - waiting.since;
            assert!(waited <= longest, "request {token} of {:?} waits for {waited} ms", waiting.client);
        }
        if self.waiting.is_empty() {
            self.delayed = 0;
        }
    }
}
