//! The classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): one file per event.

mod commit;
mod expire;
mod heartbeat;
mod invariants;
mod join;
mod leave;
mod member;
mod rebalance;
mod restore;
mod state;
mod static_member;
mod sync;

pub(crate) use member::Member;
pub use state::{Group, State};
