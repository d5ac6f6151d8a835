//! A group under simulated time: requests by name, replies by token, timers that fire when they should.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use groups::{
    Awaiting, ClassicGroupState as State, CommitRequest, Group, GroupError, HeartbeatRequest, JoinReply, JoinRequest,
    JoinToken, LeaveReply, LeaveRequest, LeavingMember, Millis, Outcome, Protocol, Reply, Settings, StoredClassicGroup,
    StoredGroup, SyncReply, SyncRequest, SyncToken,
};

pub(crate) const START: Millis = 1_700_000_000_000;
pub(crate) const SESSION: i32 = 10_000;
pub(crate) const REBALANCE: i32 = 60_000;

pub(crate) struct Driver {
    pub(crate) group: Group,
    pub(crate) now: Millis,
    /// What was saved last.
    pub(crate) saved: Option<StoredClassicGroup>,
    pub(crate) saves: usize,
    joined: BTreeMap<JoinToken, JoinReply>,
    synced: BTreeMap<SyncToken, SyncReply>,
    next_token: u64,
}

impl Driver {
    pub(crate) fn new() -> Driver {
        Driver::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Driver {
        Driver::of(Group::classic("g", &settings, START), START)
    }

    pub(crate) fn of(group: Group, now: Millis) -> Driver {
        Driver { group, now, saved: None, saves: 0, joined: BTreeMap::new(), synced: BTreeMap::new(), next_token: 0 }
    }

    pub(crate) fn join_token(&mut self) -> JoinToken {
        self.next_token += 1;
        JoinToken(self.next_token)
    }

    pub(crate) fn sync_token(&mut self) -> SyncToken {
        self.next_token += 1;
        SyncToken(self.next_token)
    }

    pub(crate) fn state(&self) -> State {
        self.group.describe().state
    }

    pub(crate) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.group.check_offset_delete_of(topic) == Err(GroupError::GroupSubscribedToTopic)
    }

    /// Saves, then hands the replies out.
    pub(crate) fn apply(&mut self, outcome: Outcome) {
        if let Some(stored) = outcome.save {
            let StoredGroup::Classic(stored) = StoredGroup::from_json(&stored.to_json().unwrap()).unwrap();
            self.saved = Some(stored);
            self.saves += 1;
        }
        self.answer(outcome.replies);
    }

    pub(crate) fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            let is_first = match reply {
                Reply::Join(token, reply) => self.joined.insert(token, reply).is_none(),
                Reply::Sync(token, reply) => self.synced.insert(token, reply).is_none(),
            };
            assert!(is_first, "answered twice");
        }
    }

    pub(crate) fn join(&mut self, request: JoinRequest) -> JoinToken {
        let token = self.join_token();
        let outcome = self.group.join(self.now, token, request);
        self.apply(outcome);
        token
    }

    pub(crate) fn sync(&mut self, request: SyncRequest) -> SyncToken {
        let token = self.sync_token();
        let outcome = self.group.sync(self.now, token, request);
        self.apply(outcome);
        token
    }

    pub(crate) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> LeaveReply {
        let leaving = |(member_id, instance_id): &(&str, Option<&str>)| LeavingMember {
            member_id: (*member_id).into(),
            instance_id: instance_id.map(Into::into),
        };
        let request = LeaveRequest { members: members.iter().map(leaving).collect() };
        let (reply, outcome) = self.group.leave(self.now, request);
        self.apply(outcome);
        reply
    }

    pub(crate) fn heartbeat(&mut self, member_id: &str, generation: i32) -> Result<(), GroupError> {
        self.group.heartbeat(self.now, &heartbeat(member_id, generation))
    }

    pub(crate) fn commit(&mut self, member_id: &str, generation: i32) -> Result<(), GroupError> {
        self.group.check_commit(self.now, &commit(member_id, generation))
    }

    pub(crate) fn cancel(&mut self, token: impl Token) {
        let outcome = self.group.cancel(self.now, token.awaiting());
        self.apply(outcome);
    }

    /// Time passes; timers fire at their time.
    pub(crate) fn pass(&mut self, ms: Millis) {
        let end = self.now + ms;
        while let Some(at) = self.group.wake_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let outcome = self.group.tick(self.now);
            self.apply(outcome);
        }
        self.now = end;
    }

    /// The same for members that go on sending heartbeats at this generation meanwhile.
    pub(crate) fn pass_alive(&mut self, ms: Millis, members: &[&str], generation: i32) {
        let end = self.now + ms;
        while self.now < end {
            for member in members {
                let _ = self.heartbeat(member, generation);
            }
            self.pass((end - self.now).min(3_000));
        }
    }

    pub(crate) fn is_answered(&self, token: impl Token) -> bool {
        match token.awaiting() {
            Awaiting::Join(token) => self.joined.contains_key(&token),
            Awaiting::Sync(token) => self.synced.contains_key(&token),
        }
    }

    pub(crate) fn joined(&mut self, token: JoinToken) -> JoinReply {
        self.joined.remove(&token).unwrap_or_else(|| panic!("{token:?} waits"))
    }

    pub(crate) fn synced(&mut self, token: SyncToken) -> SyncReply {
        self.synced.remove(&token).unwrap_or_else(|| panic!("{token:?} waits"))
    }

    pub(crate) fn join_error(&mut self, token: JoinToken) -> Option<GroupError> {
        self.joined(token).error
    }

    pub(crate) fn sync_error(&mut self, token: SyncToken) -> Option<GroupError> {
        self.synced(token).error
    }

    /// Both steps of a version 5 join; the member is parked or was answered.
    pub(crate) fn join_new(&mut self, name: &str) -> (String, JoinToken) {
        let first = self.join(new_member(name));
        let reply = self.joined(first);
        assert_eq!(reply.error, Some(GroupError::MemberIdRequired));
        let token = self.join(JoinRequest { member_id: reply.member_id.clone(), ..new_member(name) });
        (reply.member_id, token)
    }

    /// A stable group of dynamic members at generation 1, each assigned its own id. The first is the leader.
    pub(crate) fn stable(names: &[&str]) -> (Driver, Vec<String>) {
        let mut driver = Driver::new();
        let mut joins: Vec<_> = names.iter().map(|name| driver.join_new(name)).collect();
        let ids = joins.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        driver.pass(6_000);
        joins.retain(|(_, token)| driver.joined(*token).error.is_none());
        assert_eq!(joins.len(), names.len());
        driver.sync_all(&ids, 1);
        (driver, ids)
    }

    /// Everybody syncs, the leader last, and gets what the leader handed in: the member's own id.
    pub(crate) fn sync_all(&mut self, ids: &[String], generation: i32) {
        let leader = self.leader();
        let followers: Vec<_> = ids
            .iter()
            .filter(|id| **id != leader)
            .map(|id| (id.clone(), self.sync(sync(id, generation, &[]))))
            .collect();
        let assignments: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), id.as_str())).collect();
        let token = self.sync(sync(&leader, generation, &assignments));
        assert_eq!(self.synced(token).assignment, leader);
        for (id, token) in followers {
            assert_eq!(self.synced(token).assignment, id);
        }
    }

    pub(crate) fn stored(&self) -> StoredGroup {
        StoredGroup::Classic(self.saved.clone().unwrap())
    }

    pub(crate) fn leader(&self) -> String {
        self.saved.as_ref().unwrap().leader.clone().unwrap()
    }
}

/// Of a request that may wait.
pub(crate) trait Token {
    fn awaiting(self) -> Awaiting;
}

impl Token for JoinToken {
    fn awaiting(self) -> Awaiting {
        Awaiting::Join(self)
    }
}

impl Token for SyncToken {
    fn awaiting(self) -> Awaiting {
        Awaiting::Sync(self)
    }
}

/// A consumer's subscription to `topics`.
pub(crate) fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(1);
    bytes.put_i32(topics.len() as i32);
    for topic in topics {
        bytes.put_i16(topic.len() as i16);
        bytes.put_slice(topic.as_bytes());
    }
    bytes.put_i32(-1);
    bytes.put_i32(0);
    bytes.freeze()
}

pub(crate) fn protocols(names: &[&str]) -> Vec<Protocol> {
    names.iter().map(|name| Protocol { name: (*name).into(), metadata: subscription(&["t"]) }).collect()
}

/// JoinGroup 5 of a dynamic consumer without member id.
pub(crate) fn new_member(name: &str) -> JoinRequest {
    JoinRequest {
        version: 5,
        member_id: String::new(),
        instance_id: None,
        client_id: name.into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: SESSION,
        rebalance_timeout_ms: REBALANCE,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range", "roundrobin"]),
        fresh_uuid: "uuid".into(),
    }
}

/// JoinGroup 5 of a static consumer without member id.
pub(crate) fn static_member(instance: &str, uuid: &str) -> JoinRequest {
    JoinRequest { instance_id: Some(instance.into()), fresh_uuid: uuid.into(), ..new_member("client") }
}

/// The same member again.
pub(crate) fn rejoin(member_id: &str) -> JoinRequest {
    JoinRequest { member_id: member_id.into(), ..new_member("client") }
}

pub(crate) fn rejoin_with(member_id: &str, topics: &[&str]) -> JoinRequest {
    let protocols = vec![
        Protocol { name: "range".into(), metadata: subscription(topics) },
        Protocol { name: "roundrobin".into(), metadata: subscription(topics) },
    ];
    JoinRequest { protocols, ..rejoin(member_id) }
}

pub(crate) fn sync(member_id: &str, generation: i32, assignments: &[(&str, &str)]) -> SyncRequest {
    let assignment = |(id, bytes): &(&str, &str)| ((*id).to_owned(), Bytes::copy_from_slice(bytes.as_bytes()));
    SyncRequest {
        version: 5,
        member_id: member_id.into(),
        instance_id: None,
        generation,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: assignments.iter().map(assignment).collect(),
    }
}

pub(crate) fn heartbeat(member_id: &str, generation: i32) -> HeartbeatRequest {
    HeartbeatRequest { member_id: member_id.into(), instance_id: None, generation }
}

pub(crate) fn commit(member_id: &str, generation: i32) -> CommitRequest {
    CommitRequest { member_id: member_id.into(), instance_id: None, generation, transactional: false }
}
