//! What all rooms share: connections, table names, settings.

mod handle;
pub(crate) mod pool;
pub(crate) mod retry;
mod socket;
pub(crate) mod statements;
mod tables;

pub(crate) use handle::Database;
pub use tables::Tables;
