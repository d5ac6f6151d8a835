//! What honest clients do, and what they make of the answers.

use std::collections::BTreeMap;

use bytes::Bytes;
use groups::{
    Awaiting, ClassicGroupState as State, GroupError, HeartbeatRequest, JoinReply, JoinRequest, LeaveRequest,
    LeavingMember, StoredClassicState, StoredGroup, SyncReply, SyncRequest,
};

use super::{
    client::Doing,
    world::{PARTITIONS, REBALANCE, SESSION, World},
};
use crate::driver::{commit, new_member, protocols, subscription, sync};

impl World {
    pub(super) fn client_joined(&mut self, client: usize, reply: JoinReply) {
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

    pub(super) fn client_synced(&mut self, n: usize, reply: SyncReply) {
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
            assert_eq!(saved.state, StoredClassicState::Stable);
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

    pub(super) fn step(&mut self, n: usize) {
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
        let token = self.join_token(Some(n));
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
        let token = self.sync_token(Some(n));
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
        let was = self.state();
        let outcome = self.group.sync(self.now, token, request.clone());
        if let Some(StoredGroup::Classic(stored)) = outcome.save.as_ref().filter(|_| was == State::CompletingRebalance)
        {
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
    pub(super) fn disconnect(&mut self, n: usize) {
        let (token, request) = match self.clients[n].doing {
            Doing::Joining(token) => (token.0, Awaiting::Join(token)),
            Doing::Syncing(token) => (token.0, Awaiting::Sync(token)),
            _ => return,
        };
        self.waiting.remove(&token);
        let outcome = self.group.cancel(self.now, request);
        self.clients[n].doing = Doing::Join;
        self.apply(outcome);
    }

    pub(super) fn leave(&mut self, n: usize) {
        let client = &self.clients[n];
        let member = LeavingMember { member_id: client.member_id.clone(), instance_id: client.instance_id.clone() };
        let (_, outcome) = self.group.leave(self.now, LeaveRequest { members: vec![member] });
        self.apply(outcome);
        self.crash(n);
    }

    pub(super) fn crash(&mut self, n: usize) {
        self.disconnect(n);
        self.clients[n].reset();
        self.clients[n].doing = Doing::Nothing;
    }

    pub(super) fn change_subscription(&mut self, n: usize, topic: u8) {
        self.clients[n].topic = topic;
        if self.clients[n].doing == Doing::Stable {
            self.clients[n].doing = Doing::Join;
        }
    }

    pub(super) fn commit(&mut self, n: usize) {
        let client = &self.clients[n];
        let answer = self.group.check_commit(self.now, &commit(&client.member_id, client.generation));
        if answer == Ok(()) && !client.member_id.is_empty() && client.generation >= 0 {
            assert!(
                self.group.describe().members.iter().any(|m| m.member_id == client.member_id)
                    || self.state() == State::Empty
            );
        }
    }
}
