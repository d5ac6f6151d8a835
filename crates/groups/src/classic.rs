//! The classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): one file per event.

mod cancel;
mod commit;
mod deadlines;
mod delete;
mod describe;
mod expire;
mod group;
mod heartbeat;
mod invariants;
mod join;
mod leave;
mod member;
mod outcome;
mod protocol;
mod rebalance;
mod remove;
mod restore;
mod state;
mod static_member;
mod subscription;
mod sync;

pub(crate) use self::outcome::{ClassicOutcome, ClassicUndo};
pub use self::{
    describe::{DescribedGroup, DescribedMember},
    group::ClassicGroup,
    state::ClassicGroupState,
};
