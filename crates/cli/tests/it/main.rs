//! Tests of the binary as a process: what survives when it, or Postgres, is killed.

#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod chaos;
mod process;
