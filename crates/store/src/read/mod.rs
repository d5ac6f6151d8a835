//! The fetch path: rows become record batches again.

mod bounds;
mod fetch;
mod row;
mod timestamp;

pub use fetch::{Fetched, ReadError};
pub use timestamp::OffsetAndTimestamp;
