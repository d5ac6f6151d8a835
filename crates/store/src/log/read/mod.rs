//! The fetch path: rows become record batches again.

mod fetch;
mod timestamp;

pub use fetch::{Fetched, ReadError};
pub use timestamp::OffsetAndTimestamp;
