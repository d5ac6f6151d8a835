//! Random sequences of events: honest members, dishonest ones, lost connections, failing saves, restarts.
//!
//! After every event: no request answered twice or after its connection is gone; the generation that members hear
//! of never falls; an assignment is what the leader handed in and what is saved; no partition is owned twice in a
//! generation; nobody waits beyond the deadlines; what is restored equals what was there. At the end of every
//! sequence the honest members come to rest with every partition owned once, and after they fall silent nothing is
//! left: no member without a timer, no timer without a member.

mod client;
mod events;
mod honest;
mod liar;
mod world;

use proptest::prelude::*;

use self::{events::op, world::World};

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
