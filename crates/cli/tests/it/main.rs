//! Tests of the binary as a process.

// Clippy knows test functions, but not the helpers they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod audit;
mod chaos;
mod chaos_groups;
mod commands;
mod cut_off;

mod link;
mod load;
mod members;
mod process;
