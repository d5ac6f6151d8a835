//! Tests of the binary as a process.

// Clippy knows test functions, but not the helpers they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod audit;
mod chaos;
mod chaos_groups;
mod commands;
mod cut_off;
mod link;
mod load;
mod members;
mod open_files;
mod process;
mod work_for_all;

/// Held by a test that kills things under load: two of them at once are only slow.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
