//! What can go wrong in Postgres, told apart by what the caller can do about it. The only place
//! that looks at SQLSTATEs.

mod backoff;
mod from_driver;
mod sqlstate;
mod store_error;

pub use backoff::Backoff;
pub use store_error::StoreError;
