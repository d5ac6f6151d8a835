//! Groups: decide, persist, answer.
//!
//! The decisions are the crate `groups`. They are carried out here: an event reaches a group under the
//! group's own mutex, what must survive is saved, and only then the replies go out. A request that waits
//! has a token and a oneshot channel; a group in memory has one timer task, which sleeps until the
//! group's next deadline or until that comes nearer.
//!
//! Groups without members are kept in their stored form, and those that were never stored not at all.
//! Which slots are this gateway's, the [membership](crate::membership) tells; a slot is served when its
//! groups are loaded, and until then clients hear COORDINATOR_LOAD_IN_PROGRESS. Groups of a slot that was
//! lost are closed: their members hear NOT_COORDINATOR and look the coordinator up again.
//!
//! While Postgres is away members keep their places: heartbeats are answered from memory, commits and new
//! generations wait or fail with retriable errors. Everything that is written is fenced by its slot, so a
//! gateway that lost a slot unknowingly cannot write for it.
//!
//! Lock order: a group's mutex, then the map of its slot. The slots served, a slot's map and the tenure are
//! locked for moments and never over an await.

mod active_group;
mod admin;
mod clock;
mod expire;
mod handle;
mod lock;
mod members;
mod offsets;
mod partition_leases;
mod save;
mod slot;
mod slots;
mod stuck;
mod timer;
mod waiting;
mod written;

pub(crate) use self::handle::Coordinator;
