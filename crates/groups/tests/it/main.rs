//! The decisions from outside: events in, replies and saves out, under simulated time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // so do the helpers of tests

mod driver;
mod faults;
mod join;
mod leave_and_expiry;
mod random;
mod save;
mod static_members;
mod stored;
mod sync;
mod transitions;
mod views;
