//! The logs of partitions: appends, reads, their ends, and waking who waits for them.

mod append;
mod ends;
mod handle;
mod hints;
mod ledger;
mod log_end;
mod pending_hints;
mod range;
mod read;
mod statements;
mod tail;
mod waiters;
mod watch;

pub use append::{Append, AppendError, AppendReply, Appended, Reservation};
pub use handle::Log;
pub use log_end::LogEnd;
pub use range::ReadLimit;
pub use read::{Fetched, OffsetAndTimestamp, ReadError};
pub use waiters::Subscription;
