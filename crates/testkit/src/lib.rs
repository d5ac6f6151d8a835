//! What tests of several crates need. A helper that cannot do its work fails the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod database;

pub use database::TestDatabase;
