//! The fetch path: rows become record batches again.

mod bounds;
mod fetch;
mod range;
mod row;
mod timestamp;

pub use fetch::{Fetched, ReadError, ReadLimit};
pub(crate) use range::{Range, RangeBuilder};
pub(crate) use row::{RecordRow, Value};
pub use timestamp::OffsetAndTimestamp;
