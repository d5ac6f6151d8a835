//! The decisions of Kafka's group protocols: a [`Group`], an event and the time go in, replies, what must be saved and
//! the next wake-up come out. No I/O, no clock, no random numbers.
//!
//! # Decide, persist, answer
//! Every event returns an [`Outcome`]. The caller
//! 1. persists [`Outcome::save`] if there is one, while no other event reaches the same group,
//! 2. sends [`Outcome::replies`]: a [`JoinToken`] or [`SyncToken`] is the caller's handle of the request that is
//!    answered,
//! 3. calls [`Group::tick`] at [`Group::wake_at`], which every event may have changed.
//!
//! When persisting failed, nothing was sent yet: [`Group::undo`] takes the outcome back and returns the replies that
//! are right in this case. A generation that could not be saved is tried again at [`Group::wake_at`], with the members
//! still waiting; a leader's SyncGroup and the replacing of a static member are refused with the error given, and the
//! client repeats them. A save that failed for the caller but is in the database nevertheless does no harm: no member
//! was told, and the next save replaces it.
//!
//! # Types of groups
//! [`Group`] and [`StoredGroup`] tell the types apart, and nothing else does. Each type has a module of its own that
//! knows nothing of the other types.
//!
//! # What survives
//! A [`StoredGroup`] is saved when a generation begins (before a member hears its number), when its assignment is
//! known, when a static member got a new id in `Stable`, and when the group became empty. [`Group::restore`] goes on
//! from there at the same generation, with fresh deadlines. Kafka saves only the last three; saving the first one as
//! well keeps a number from being given out twice and a restarted static member from being fenced by its own
//! predecessor when the gateway dies between JoinGroup and SyncGroup.
//!
//! # Time
//! Every `now` is in milliseconds since the Unix epoch, and must never go backwards within one process (take a
//! monotonic clock and add the epoch once); it is stored only as the time of the last change of state.
//!
//! The rules follow `ClassicGroup.java` and `GroupMetadataManager.java` of Apache Kafka 4.x; where one is different
//! on purpose, the comment there says so.

pub mod absent;
mod classic;
mod consumer_protocol;
mod error;
mod group;
mod group_type;
mod listed_group;
mod outcome;
mod owned_partition;
mod reply;
mod request;
mod settings;
mod stored;
mod time;

pub use self::{
    classic::{ClassicGroup, ClassicGroupState, DescribedGroup, DescribedMember},
    error::GroupError,
    group::Group,
    group_type::GroupType,
    listed_group::ListedGroup,
    outcome::Outcome,
    owned_partition::OwnedPartition,
    reply::{Awaiting, JoinMember, JoinReply, JoinToken, LeaveReply, LeaveResult, Reply, SyncReply, SyncToken},
    request::{CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, LeavingMember, Protocol, SyncRequest},
    settings::Settings,
    stored::{
        StoredClassicGroup, StoredClassicMember, StoredClassicProtocol, StoredClassicState, StoredError, StoredGroup,
    },
    time::Millis,
};
