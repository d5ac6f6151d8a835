//! Records as rows of the message table and back (storage.md D4). What a record becomes is decided
//! here and nowhere else.

mod column;
mod columns;
mod copy;
mod decode;
mod encode;
mod headers;

pub(crate) use columns::{ENQUEUED_MS, RECORD_COLUMNS, ROW_ARRAYS, ROW_COLUMNS, RecordColumns, RowArrays};
pub(crate) use copy::CopyEncoder;
pub(crate) use decode::{RecordRow, Value};
pub use encode::PayloadCompression;
pub(crate) use encode::{Placement, RowMaker};
pub(crate) use headers::Header;
