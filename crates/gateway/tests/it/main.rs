//! The gateway over its sockets, on a real Postgres.

// Clippy knows test functions, but not the helpers they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clock;
mod configs;
mod coordinators;
mod every_version;
mod expiry;
mod fifty_groups;
mod group_requests;
mod groups;
mod hostile_bytes;
mod idle;
mod idle_sessions;
mod keep_alive;
mod librdkafka;
mod lifecycle;
mod metadata;
mod ordering;
mod password;
mod records;
mod refused;
mod samples;
mod stuck_ahead;
mod topics;
mod two_gateways;
