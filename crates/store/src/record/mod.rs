//! Records as rows of the message table and back.

mod decode;
mod encode;
mod headers;

pub(crate) use decode::{RecordRow, Value, decode};
pub use encode::PayloadCompression;
pub(crate) use encode::{COLUMNS, Placement, Row, RowMaker};
pub(crate) use headers::Header;
