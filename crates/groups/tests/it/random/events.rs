//! Events, and how a sequence of them ends.

use groups::{ClassicGroupState as State, Millis};
use proptest::prelude::*;

use super::{
    client::Doing,
    world::{PARTITIONS, REBALANCE, SESSION, World},
};

#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
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

pub(super) fn op() -> impl Strategy<Value = Op> {
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

impl World {
    pub(super) fn happen(&mut self, op: Op) {
        match op {
            Op::Step(n) => self.step(n),
            Op::Pass(ms) => self.pass(ms),
            Op::Leave(n) => self.leave(n),
            Op::Crash(n) => self.crash(n),
            Op::Disconnect(n) => self.disconnect(n),
            Op::ChangeSubscription(n, topic) => self.change_subscription(n, topic),
            Op::Commit(n) => self.commit(n),
            Op::Lie(kind, n, off) => self.lie(kind, n, off),
            Op::FailSave(reached_database) => self.fail_save = Some(reached_database),
            Op::Restart => self.restart(),
        }
        self.check();
    }

    /// Left alone, the honest members find together.
    pub(super) fn settle(&mut self) {
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
        assert_eq!(self.state(), State::Stable, "{:?}", self.clients);
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
    pub(super) fn fall_silent(&mut self) {
        self.pass(Millis::from(2 * REBALANCE + 2 * SESSION));
        assert_eq!((self.state(), self.group.wake_at()), (State::Empty, None));
        assert!(self.waiting.is_empty() && self.group.is_idle());
        assert!(self.group.describe().members.is_empty());
    }
}
