//! Record batches of format 2, read and written without losing anything a producer may send:
//! null and empty keys, duplicate headers, null header values, far-apart timestamps.
//!
//! Reading borrows and does not allocate per record. The layout is that of Kafka's
//! `DefaultRecordBatch.java` and `DefaultRecord.java` (KIP-98, KIP-82).

mod build;
mod compression;
mod error;
mod format;
mod header;
mod lz4_frame;
mod produced;
mod record;
mod varint;
mod view;

pub use build::{BatchBuilder, BatchFull, ProducerFields};
pub use compression::compress;
pub use error::BatchError;
pub use format::{Compression, MAGIC, TimestampType};
pub use header::{BatchHeader, HEADER_LEN};
pub use produced::{ProduceLimits, ProducedBatch, RecordSummary};
pub use record::{HeaderIter, Headers, Record, Records};
pub use view::BatchView;
