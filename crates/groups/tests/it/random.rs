//! Random sequences of events: honest members, dishonest ones, lost connections, failing saves, restarts.
//!
//! After every event: no request answered twice or after its connection is gone; the generation that members hear
//! of never falls; an assignment is what the leader handed in and what is saved; no partition is owned twice in a
//! generation; nobody waits beyond the deadlines; what is restored equals what was there. At the end of every
//! sequence the honest members come to rest with every partition owned once, and after they fall silent nothing is
//! left: no member without a timer, no timer without a member.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use groups::{
    Group, GroupError, HeartbeatRequest, JoinReply, JoinRequest, LeaveRequest, LeavingMember, Millis, Outcome, Reply,
    Settings, State, StoredGroup, StoredState, SyncReply, SyncRequest, Token,
};
use proptest::prelude::*;

use crate::driver::{START, commit, new_member, protocols, rejoin, subscription, sync};

const SESSION: i32 = 8_000;
const REBALANCE: i32 = 20_000;
const PARTITIONS: u8 = 8;
/// The joining ends after the rebalance timeout, or after the initial delay and its extensions.
const LONGEST_WAIT: Millis = REBALANCE as Millis + 3_000;

#[derive(Debug, Clone, Copy)]
enum Op {
    /// What an honest client does next: join, sync, heartbeat.
    Step(usize),
    Pass(Millis),
    Leave(usize),
    /// The process is gone without a word; its successor starts with the next step.
    Crash(usize),
    /// The connection is lost, the client comes back.
    Disconnect(usize),
    ChangeSubscription(usize, u8),
    Commit(usize),
    /// A client that does not keep to the protocol, on behalf of a member or of nobody.
    Lie(u8, usize, i32),
    /// The next save fails; `true`: although it reached the database.
    FailSave(bool),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let client = 0..6_usize;
    prop_oneof![
        12 => client.clone().prop_map(Op::Step),
        6 => (1..6_000_i64).prop_map(Op::Pass),
        1 => client.clone().prop_map(Op::Leave),
        1 => client.clone().prop_map(Op::Crash),
        1 => client.clone().prop_map(Op::Disconnect),
        1 => (client.clone(), 0..4_u8).prop_map(|(client, topic)| Op::ChangeSubscription(client, topic)),
        1 => client.clone().prop_map(Op::Commit),
        3 => (0..10_u8, client, -1..2_i32).prop_map(|(kind, client, off)| Op::Lie(kind, client, off)),
        1 => any::<bool>().prop_map(Op::FailSave),
        1 => Just(Op::Restart),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    Nothing,
    Join,
    Joining(Token),
    Sync,
    Syncing(Token),
    Stable,
}

/// An honest client: 0 and 1 dynamic and new, 2 and 3 static, 4 of version 3, 5 of version 0.
#[derive(Debug, Clone)]
struct Client {
    version: i16,
    instance_id: Option<String>,
    member_id: String,
    doing: Doing,
    generation: i32,
    joined: Option<JoinReply>,
    owned: Bytes,
    topic: u8,
}

impl Client {
    fn new(n: usize) -> Client {
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

    fn reset(&mut self) {
        self.member_id.clear();
        self.generation = -1;
        self.owned.clear();
        self.doing = Doing::Join;
    }

    /// What a client does about an error.
    fn failed(&mut self, error: GroupError) {
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

#[derive(Debug, Clone, Copy)]
struct Waiting {
    client: Option<usize>,
    since: Millis,
}

struct World {
    group: Group,
    now: Millis,
    clients: Vec<Client>,
    waiting: BTreeMap<Token, Waiting>,
    next_token: u64,
    saved: Option<StoredGroup>,
    /// What is in memory is behind what is in the database.
    in_doubt: bool,
    fail_save: Option<bool>,
    /// Time lost to saves that failed.
    delayed: Millis,
    heard_generation: i32,
    /// Generation and partition to instance or member id.
    owners: BTreeMap<(i32, u8), String>,
    /// Generations in which a lie was accepted from the leader.
    spoilt: BTreeSet<i32>,
}

impl World {
    fn new() -> World {
        World {
            group: Group::new("g", &Settings::default(), START),
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

    fn token(&mut self, client: Option<usize>) -> Token {
        self.next_token += 1;
        let token = Token(self.next_token);
        self.waiting.insert(token, Waiting { client, since: self.now });
        token
    }

    fn apply(&mut self, outcome: Outcome) {
        let mut outcome = outcome;
        if let Some(stored) = &outcome.save {
            let stored = StoredGroup::from_json(&stored.to_json().unwrap()).unwrap();
            assert!(stored.generation >= self.saved.as_ref().map_or(0, |saved| saved.generation));
            match self.fail_save.take() {
                None => {
                    self.saved = Some(stored);
                    self.in_doubt = false;
                }
                Some(reached_database) => {
                    if reached_database {
                        self.saved = Some(stored);
                    }
                    self.in_doubt = true;
                    self.delayed += 1_000;
                    outcome = self.group.undo(self.now, outcome, GroupError::CoordinatorNotAvailable);
                    assert!(outcome.save.is_none());
                }
            }
        }
        assert_eq!(outcome.wake_at, self.group.wake_at());
        assert_eq!(self.group.broken_invariant(), None);
        for (token, reply) in outcome.replies {
            let waiting = self.waiting.remove(&token).expect("answered twice, or after the connection was gone");
            self.deliver(waiting.client, reply);
        }
    }

    fn deliver(&mut self, client: Option<usize>, reply: Reply) {
        match reply {
            Reply::Join(reply) => {
                if reply.error.is_none() {
                    assert!(reply.generation >= self.heard_generation, "generations only rise");
                    self.heard_generation = reply.generation;
                    assert!(self.saved.as_ref().is_some_and(|saved| saved.generation >= reply.generation), "not saved");
                }
                if let Some(client) = client {
                    self.client_joined(client, reply);
                }
            }
            Reply::Sync(reply) => {
                if let Some(client) = client {
                    self.client_synced(client, reply);
                }
            }
            Reply::Leave(_) => {}
        }
    }

    fn client_joined(&mut self, client: usize, reply: JoinReply) {
        let client = &mut self.clients[client];
        match reply.error {
            None => {
                assert!(client.member_id.is_empty() || client.member_id == reply.member_id);
                let leads = reply.leader == reply.member_id;
                assert_eq!(leads, !reply.members.is_empty(), "{reply:?}");
                client.member_id.clone_from(&reply.member_id);
                client.generation = reply.generation;
                client.joined = Some(reply);
                client.doing = Doing::Sync;
            }
            Some(error) => {
                if error == GroupError::MemberIdRequired {
                    client.member_id = reply.member_id;
                }
                client.failed(error);
            }
        }
    }

    fn client_synced(&mut self, n: usize, reply: SyncReply) {
        let client = &mut self.clients[n];
        if let Some(error) = reply.error {
            client.owned.clear();
            return client.failed(error);
        }
        client.doing = Doing::Stable;
        client.owned = reply.assignment.clone();
        let generation = client.generation;
        let owner = client.instance_id.clone().unwrap_or_else(|| client.member_id.clone());
        let saved = self.saved.as_ref().expect("saved before anybody hears of it");
        if saved.generation == generation && !self.in_doubt {
            assert_eq!(saved.state, StoredState::Stable);
            let own = saved.members.iter().find(|member| member.member_id == client.member_id).unwrap();
            assert_eq!(own.assignment, reply.assignment);
        }
        if !self.spoilt.contains(&generation) {
            for partition in &reply.assignment {
                let first = self.owners.entry((generation, *partition)).or_insert_with(|| owner.clone());
                assert_eq!(*first, owner, "partition {partition} owned twice in generation {generation}");
            }
        }
    }

    fn step(&mut self, n: usize) {
        match self.clients[n].doing {
            Doing::Nothing => self.clients[n].reset(),
            Doing::Joining(_) | Doing::Syncing(_) => return,
            Doing::Join | Doing::Sync | Doing::Stable => {}
        }
        match self.clients[n].doing {
            Doing::Sync => self.client_sync(n),
            Doing::Stable => self.client_heartbeat(n),
            _ => self.client_join(n),
        }
    }

    fn client_join(&mut self, n: usize) {
        let token = self.token(Some(n));
        let client = &mut self.clients[n];
        client.doing = Doing::Joining(token);
        let topic = format!("t{}", client.topic);
        let mut protocols = protocols(&["range", "roundrobin"]);
        protocols.iter_mut().for_each(|protocol| protocol.metadata = subscription(&[&topic]));
        let request = JoinRequest {
            version: client.version,
            member_id: client.member_id.clone(),
            instance_id: client.instance_id.clone(),
            session_timeout_ms: SESSION,
            rebalance_timeout_ms: REBALANCE,
            protocols,
            fresh_uuid: token.0.to_string(),
            ..new_member(&format!("client{n}"))
        };
        let outcome = self.group.join(self.now, token, request);
        self.apply(outcome);
    }

    /// A leader deals the partitions out, beginning somewhere.
    fn client_sync(&mut self, n: usize) {
        let token = self.token(Some(n));
        let client = &mut self.clients[n];
        client.doing = Doing::Syncing(token);
        let joined = client.joined.clone().unwrap();
        let mut dealt: Vec<(String, Vec<u8>)> =
            joined.members.iter().map(|member| (member.member_id.clone(), Vec::new())).collect();
        if joined.skip_assignment {
            dealt.clear();
        }
        for partition in 0..PARTITIONS {
            if !dealt.is_empty() {
                let to = (usize::from(partition) + self.next_token as usize) % dealt.len();
                dealt[to].1.push(partition);
            }
        }
        let request = SyncRequest {
            version: if client.version >= 7 { 5 } else { 3 },
            instance_id: client.instance_id.clone(),
            protocol_type: joined.protocol_type,
            protocol_name: joined.protocol_name,
            assignments: dealt.into_iter().map(|(id, bytes)| (id, Bytes::from(bytes))).collect(),
            ..sync(&client.member_id, client.generation, &[])
        };
        let was = self.group.state();
        let outcome = self.group.sync(self.now, token, request.clone());
        if let Some(stored) = outcome.save.as_ref().filter(|_| was == State::CompletingRebalance) {
            let handed_in: BTreeMap<_, _> = request.assignments.into_iter().collect();
            for member in &stored.members {
                assert_eq!(Some(&member.assignment), handed_in.get(&member.member_id), "every member was listed");
            }
        }
        self.apply(outcome);
    }

    fn client_heartbeat(&mut self, n: usize) {
        let client = &mut self.clients[n];
        let request = HeartbeatRequest {
            member_id: client.member_id.clone(),
            instance_id: client.instance_id.clone(),
            generation: client.generation,
        };
        if let Err(error) = self.group.heartbeat(self.now, &request) {
            client.failed(error);
        }
    }

    /// Forgets the client's request; its connection is gone.
    fn disconnect(&mut self, n: usize) {
        if let Doing::Joining(token) | Doing::Syncing(token) = self.clients[n].doing {
            self.waiting.remove(&token);
            let outcome = self.group.cancel(self.now, token);
            self.clients[n].doing = Doing::Join;
            self.apply(outcome);
        }
    }

    fn lie(&mut self, kind: u8, n: usize, off: i32) {
        let victim = self.clients[n].member_id.clone();
        let instance_id = self.clients[n].instance_id.clone();
        let generation = self.group.generation() + off;
        let token = self.token(None);
        let fresh_uuid = format!("liar{}", token.0);
        let liar = JoinRequest {
            version: 3,
            session_timeout_ms: SESSION,
            rebalance_timeout_ms: REBALANCE,
            fresh_uuid,
            ..new_member("liar")
        };
        let outcome = match kind {
            0 => self.group.join(self.now, token, JoinRequest { version: 9, ..liar }),
            1 => self.group.join(self.now, token, liar),
            2 => self.group.join(self.now, token, JoinRequest { protocols: protocols(&["roundrobin"]), ..liar }),
            3 => {
                let request = JoinRequest { member_id: victim, instance_id, ..liar };
                self.group.join(self.now, token, request)
            }
            4 => self.group.join(self.now, token, JoinRequest { version: 9, instance_id, ..liar }),
            5 => self.group.join(self.now, token, JoinRequest { rebalance_timeout_ms: -5, ..rejoin("nobody") }),
            6 => {
                let request =
                    SyncRequest { version: 3, protocol_name: None, ..sync(&victim, generation, &[("x", "y")]) };
                let outcome = self.group.sync(self.now, token, request);
                if outcome.save.is_some() {
                    self.spoilt.insert(generation);
                }
                outcome
            }
            7 => {
                let members = vec![
                    LeavingMember { member_id: String::new(), instance_id },
                    LeavingMember { member_id: victim, instance_id: Some("none".into()) },
                ];
                self.group.leave(self.now, token, LeaveRequest { members })
            }
            _ => {
                self.waiting.remove(&token);
                let request = HeartbeatRequest { member_id: victim.clone(), instance_id: None, generation };
                let _ = self.group.heartbeat(self.now, &request);
                let _ = self.group.check_commit(self.now, &commit(&victim, generation));
                return;
            }
        };
        self.apply(outcome);
    }

    fn restart(&mut self) {
        let restored = match self.saved.clone() {
            Some(stored) => Group::restore("g", &Settings::default(), stored, self.now),
            None => Group::new("g", &Settings::default(), self.now),
        };
        let is_kept = !matches!(self.group.state(), State::PreparingRebalance) && !self.in_doubt;
        if is_kept {
            assert_eq!(restored.describe(), self.group.describe());
            assert_eq!(restored.generation(), self.group.generation());
            let mut restored = restored.clone();
            for member in restored.describe().members {
                let request = crate::driver::heartbeat(&member.member_id, restored.generation());
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

    fn pass(&mut self, ms: Millis) {
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

    fn happen(&mut self, op: Op) {
        match op {
            Op::Step(n) => self.step(n),
            Op::Pass(ms) => self.pass(ms),
            Op::Leave(n) => {
                let client = &self.clients[n];
                let member =
                    LeavingMember { member_id: client.member_id.clone(), instance_id: client.instance_id.clone() };
                let token = self.token(None);
                let outcome = self.group.leave(self.now, token, LeaveRequest { members: vec![member] });
                self.apply(outcome);
                self.disconnect(n);
                self.clients[n].reset();
                self.clients[n].doing = Doing::Nothing;
            }
            Op::Crash(n) => {
                self.disconnect(n);
                self.clients[n].reset();
                self.clients[n].doing = Doing::Nothing;
            }
            Op::Disconnect(n) => self.disconnect(n),
            Op::ChangeSubscription(n, topic) => {
                self.clients[n].topic = topic;
                if self.clients[n].doing == Doing::Stable {
                    self.clients[n].doing = Doing::Join;
                }
            }
            Op::Commit(n) => {
                let client = &self.clients[n];
                let answer = self.group.check_commit(self.now, &commit(&client.member_id, client.generation));
                if answer == Ok(()) && !client.member_id.is_empty() && client.generation >= 0 {
                    assert!(
                        self.group.describe().members.iter().any(|m| m.member_id == client.member_id)
                            || self.group.state() == State::Empty
                    );
                }
            }
            Op::Lie(kind, n, off) => self.lie(kind, n, off),
            Op::FailSave(reached_database) => self.fail_save = Some(reached_database),
            Op::Restart => self.restart(),
        }
        self.check();
    }

    fn check(&mut self) {
        let longest = LONGEST_WAIT + self.delayed;
        for (token, waiting) in &self.waiting {
            let waited = self.now - waiting.since;
            assert!(waited <= longest, "{token:?} of {:?} waits for {waited} ms", waiting.client);
        }
        if self.waiting.is_empty() {
            self.delayed = 0;
        }
        assert_eq!(self.group.broken_invariant(), None);
    }

    /// Left alone, the honest members find together.
    fn settle(&mut self) {
        self.fail_save = None;
        for _ in 0..90 {
            for n in 0..self.clients.len() {
                self.happen(Op::Step(n));
            }
            self.happen(Op::Pass(1_000));
        }
        for n in 0..self.clients.len() {
            self.happen(Op::Step(n));
        }
        assert_eq!(self.group.state(), State::Stable, "{:?}", self.clients);
        let generation = self.group.generation();
        let mut owned: Vec<u8> = Vec::new();
        for client in &self.clients {
            assert_eq!((client.doing, client.generation), (Doing::Stable, generation), "{client:?}");
            owned.extend(&client.owned);
        }
        assert_eq!(self.group.describe().members.len(), self.clients.len());
        if !self.spoilt.contains(&generation) {
            owned.sort_unstable();
            assert_eq!(owned, (0..PARTITIONS).collect::<Vec<_>>(), "every partition is owned once");
        }
    }

    /// Without a sign of life nothing is left.
    fn fall_silent(&mut self) {
        self.pass(Millis::from(2 * REBALANCE + 2 * SESSION));
        assert_eq!((self.group.state(), self.group.wake_at()), (State::Empty, None));
        assert!(self.waiting.is_empty() && self.group.is_idle());
        assert!(self.group.describe().members.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn members_of_all_kinds(ops in proptest::collection::vec(op(), 0..200), settles in any::<bool>()) {
        let mut world = World::new();
        for op in ops {
            world.happen(op);
        }
        if settles {
            world.settle();
        }
        world.fall_silent();
    }
}
