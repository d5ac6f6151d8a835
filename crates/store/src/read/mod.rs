//! The fetch path: rows become record batches again.

mod bounds;
mod fetch;
mod row;
mod timestamp;

pub use fetch::{Fetched, ReadError, ReadLimit};
pub use timestamp::OffsetAndTimestamp;
