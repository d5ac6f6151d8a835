//! A client that does not keep to the protocol, on behalf of a member or of nobody.

use groups::{HeartbeatRequest, JoinRequest, LeaveRequest, LeavingMember, SyncRequest};

use super::world::{REBALANCE, SESSION, World};
use crate::driver::{commit, new_member, protocols, rejoin, sync};

impl World {
    /// `n`: the client whose member is named; `off`: how far the generation is off.
    pub(super) fn lie(&mut self, kind: u8, n: usize, off: i32) {
        let generation = self.group.generation() + off;
        match kind {
            0..=5 => self.join_with_a_lie(kind, n),
            6 => self.sync_with_a_lie(n, generation),
            7 => self.leave_with_a_lie(n),
            _ => {
                let victim = self.clients[n].member_id.clone();
                let request = HeartbeatRequest { member_id: victim.clone(), instance_id: None, generation };
                let _ = self.group.heartbeat(self.now, &request);
                let _ = self.group.check_commit(self.now, &commit(&victim, generation));
            }
        }
    }

    fn join_with_a_lie(&mut self, kind: u8, n: usize) {
        let victim = self.clients[n].member_id.clone();
        let instance_id = self.clients[n].instance_id.clone();
        let token = self.join_token(None);
        let liar = JoinRequest {
            version: 3,
            session_timeout_ms: SESSION,
            rebalance_timeout_ms: REBALANCE,
            fresh_uuid: format!("liar{}", token.0),
            ..new_member("liar")
        };
        let request = match kind {
            0 => JoinRequest { version: 9, ..liar },
            1 => liar,
            2 => JoinRequest { protocols: protocols(&["roundrobin"]), ..liar },
            3 => JoinRequest { member_id: victim, instance_id, ..liar },
            4 => JoinRequest { version: 9, instance_id, ..liar },
            _ => JoinRequest { rebalance_timeout_ms: -5, ..rejoin("nobody") },
        };
        let outcome = self.group.join(self.now, token, request);
        self.apply(outcome);
    }

    fn sync_with_a_lie(&mut self, n: usize, generation: i32) {
        let victim = self.clients[n].member_id.clone();
        let token = self.sync_token(None);
        let request = SyncRequest { version: 3, protocol_name: None, ..sync(&victim, generation, &[("x", "y")]) };
        let outcome = self.group.sync(self.now, token, request);
        if outcome.save.is_some() {
            self.spoilt.insert(generation);
        }
        self.apply(outcome);
    }

    fn leave_with_a_lie(&mut self, n: usize) {
        let victim = self.clients[n].member_id.clone();
        let instance_id = self.clients[n].instance_id.clone();
        let members = vec![
            LeavingMember { member_id: String::new(), instance_id },
            LeavingMember { member_id: victim, instance_id: Some("none".into()) },
        ];
        let (_, outcome) = self.group.leave(self.now, LeaveRequest { members });
        self.apply(outcome);
    }
}
