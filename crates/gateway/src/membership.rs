//! This gateway among all gateways of the tables: its registration, and the coordinator slots that are
//! its (storage.md D8, storage.md D12).
//!
//! Every quarter of the lease time the gateway says that it lives, renews its slots and takes free ones up
//! to its fair share ([`Membership::renew`]). What a slot is used for is not known here: a coordinator
//! follows [`Membership::subscribe`], loads what belongs to a slot before it serves it, and stops to serve
//! slots that are lost. A write for a slot names its [`SlotLease`](store::SlotLease), so that one that
//! comes late changes nothing.
//!
//! A gateway that cannot reach Postgres cannot know whether another one has taken its slots. Was it alone
//! when it looked last, it goes on from memory; else it is cut off when its lease is over, until it has
//! renewed it: all its slots are lost to it, and it closes its Kafka connections, for clients stay with a
//! broker that answers, be it with nothing but errors.

mod cut_off;
mod handle;
mod registration;
mod renew;
mod tenure;

pub(crate) use self::{handle::Membership, tenure::OwnedSlots};
