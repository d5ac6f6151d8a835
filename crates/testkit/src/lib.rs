//! What tests of several crates need. A helper that cannot do its work fails the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod database;
mod gateway;

pub use client::{Client, Sent};
pub use database::TestDatabase;
pub use gateway::TestGateway;
