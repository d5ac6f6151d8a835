//! What all rooms share: connections, table names, settings.

mod encoding;
mod handle;
pub(crate) mod pool;
pub(crate) mod retry;
mod socket;
mod statements;
mod tables;

pub(crate) use handle::Database;
#[cfg(test)]
pub(crate) use statements::token;
pub(crate) use statements::{Statement, fill, prepared, statements};
pub use tables::Tables;
