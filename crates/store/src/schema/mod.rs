//! The tables themselves: migrations, and the time partitions of message.

mod advisory;
mod ddl;
mod handle;
mod interval;
mod migrate;
mod time_partitions;

pub use handle::Schema;
pub use interval::PartitionInterval;
pub use migrate::{MigrateReport, SchemaProfile, SchemaStatus};
pub use time_partitions::{PartitionManager, TimePartitions};
