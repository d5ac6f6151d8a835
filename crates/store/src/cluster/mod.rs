//! The gateways on one database: who lives, who leads partitions, who coordinates groups, and the ids
//! that are given out once for all of them.

mod channel;
mod handle;
mod nodes;
mod producers;
mod slots;

pub(crate) use channel::Channel;
pub use handle::Cluster;
pub use nodes::{Heartbeat, Leadership, Node};
pub(crate) use slots::FENCE;
pub use slots::{Slot, SlotLease, Slots};
