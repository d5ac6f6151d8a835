//! One binary: linking takes longer than the tests.

mod batch;
mod messages;
mod requests;
mod responses;
