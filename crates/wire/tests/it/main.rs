//! One binary: linking takes longer than the tests.

// Clippy knows test functions, but not the helpers they share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod batch;
mod fuzz_entries;
mod golden;
mod messages;
mod produced;
mod recorded;
mod requests;
mod responses;
