//! The caller's clock.

/// A point in time, in milliseconds since the Unix epoch; in sums also a duration in milliseconds.
pub type Millis = i64;
