//! Tests of the binary as a process: what survives when it, or Postgres, is killed.

mod chaos;
mod process;
