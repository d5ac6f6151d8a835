//! Sockets: accepting them, reading requests, writing answers in order.

pub(crate) mod budget;
pub(crate) mod connection;
mod keep_alive;
pub(crate) mod listener;
pub(crate) mod log_limit;
pub(crate) mod open_files;
pub(crate) mod shutdown;
