//! The produce path: group commit.
//!
//! Requests of many connections and partitions wait in [`batcher`] and are written together by a
//! few writers ([`writer`]), each with a connection of its own, in one COPY and one commit, or a few
//! records in one statement. A partition is with one writer at a time, so its batches keep the order
//! of their arrival and its lock is never contended within a gateway.

mod batcher;
mod insert;
mod memory;
mod placing;
mod queue;
mod sequence;
mod stored_batches;
mod tail_ranges;
mod transaction;
mod types;
mod writer;

pub(super) use batcher::Batcher;
pub use types::{Append, AppendError, AppendReply, Appended, Reservation};
