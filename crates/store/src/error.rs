//! What can go wrong in Postgres, told apart by what the caller can do about it. The only place
//! that looks at SQLSTATEs.

use std::time::Duration;

use rand::Rng;

/// A failed operation of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No usable connection, or it was lost: trying again later helps. If it was lost during a
    /// commit, nobody knows whether the transaction took effect.
    #[error("Postgres is not available: {0}")]
    Unavailable(String),
    /// Lost against another transaction (deadlock, serialization, lock time-out): nothing was
    /// changed, trying again at once helps.
    #[error("contended in Postgres: {0}")]
    Contended(String),
    /// Schema, tables or columns are missing, in words. Helped by `migrate`.
    #[error("{0}")]
    SchemaNotReady(String),
    /// No time partition of message takes a row of now: until the next maintenance.
    #[error("no time partition for the row: {0}")]
    NoTimePartition(String),
    /// A row with this key is there already.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// The database user may not do this.
    #[error("the database user lacks a privilege: {0}")]
    Denied(String),
    /// A setting that cannot work.
    #[error("{0}")]
    InvalidConfig(String),
    /// A row that nobody can read.
    #[error("corrupt row: {0}")]
    Corrupt(String),
    /// Anything else: a bug here or a database that somebody changed.
    #[error("unexpected answer of Postgres: {0}")]
    Other(String),
}

impl StoreError {
    /// Would the same request succeed later without anybody doing anything?
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Contended(_) | StoreError::NoTimePartition(_))
    }

    /// The same error, saying where it happened.
    pub(crate) fn in_context(self, place: &str) -> StoreError {
        let add = |reason: String| format!("{place}: {reason}");
        match self {
            StoreError::Unavailable(reason) => StoreError::Unavailable(add(reason)),
            StoreError::Contended(reason) => StoreError::Contended(add(reason)),
            StoreError::SchemaNotReady(reason) => StoreError::SchemaNotReady(add(reason)),
            StoreError::NoTimePartition(reason) => StoreError::NoTimePartition(add(reason)),
            StoreError::AlreadyExists(reason) => StoreError::AlreadyExists(add(reason)),
            StoreError::Denied(reason) => StoreError::Denied(add(reason)),
            StoreError::InvalidConfig(reason) => StoreError::InvalidConfig(add(reason)),
            StoreError::Corrupt(reason) => StoreError::Corrupt(add(reason)),
            StoreError::Other(reason) => StoreError::Other(add(reason)),
        }
    }

    /// Was nothing changed, and would the same transaction succeed if it were repeated at once?
    #[must_use]
    pub fn is_contended(&self) -> bool {
        matches!(self, StoreError::Contended(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match &error {
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default();
                from_sqlstate(&code, format!("{} (SQLSTATE {code})", database.message()))
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            // A connection that ended in the middle of a message.
            | sqlx::Error::Protocol(_) => StoreError::Unavailable(error.to_string()),
            sqlx::Error::Configuration(_) => StoreError::InvalidConfig(error.to_string()),
            _ => StoreError::Other(error.to_string()),
        }
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn from_sqlstate(code: &str, message: String) -> StoreError {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available; foreign_key_violation: a
        // statement joins what its rows refer to, so that was deleted in the same moment
        "40001" | "40P01" | "55P03" | "23503" => StoreError::Contended(message),
        // read_only_sql_transaction: a demoted primary (B027)
        "25006"
        // query_canceled (statement_timeout), admin_shutdown, crash_shutdown, cannot_connect_now
        | "57014" | "57P01" | "57P02" | "57P03"
        // idle_in_transaction_session_timeout, transaction_timeout
        | "25P03" | "25P04"
        => StoreError::Unavailable(message),
        // Prepared statement unknown or there already: a pooler changed the session (B053)
        "26000" | "42P05" => StoreError::Unavailable(format!(
            "{message}; a pooler in transaction mode must keep track of prepared statements \
             (PgBouncer 1.21 or later with max_prepared_statements above 0)"
        )),
        // invalid_schema_name, undefined_table, undefined_column, undefined_function
        "3F000" | "42P01" | "42703" | "42883" => StoreError::SchemaNotReady(message),
        // check_violation is also what a row without a partition is
        "23514" if message.starts_with("no partition of relation") => {
            StoreError::NoTimePartition(message)
        }
        "23505" => StoreError::AlreadyExists(message),
        // insufficient_privilege, invalid_authorization_specification, invalid_password,
        // invalid_catalog_name
        "42501" | "28000" | "28P01" | "3D000" => StoreError::Denied(message),
        // data_corrupted, index_corrupted
        "XX001" | "XX002" => StoreError::Corrupt(message),
        // connection_exception; insufficient_resources (53300 too_many_connections, disk, memory)
        _ if code.starts_with("08") || code.starts_with("53") => StoreError::Unavailable(message),
        _ => StoreError::Other(message),
    }
}

/// Growing, jittered waits between attempts, so that many who failed together do not try together.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// Starts at `initial`, doubles up to `max`.
    #[must_use]
    pub fn new(initial: Duration, max: Duration) -> Backoff {
        Backoff { next: initial, max }
    }

    /// Half to one and a half of the present step, then the step doubles.
    pub fn next_delay(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.max);
        step.mul_f64(rand::rng().random_range(0.5..1.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_are_told_apart_by_what_the_caller_can_do() {
        let kind = |code: &str| from_sqlstate(code, "no partition of relation \"m\"".to_owned());
        for code in ["25006", "57P01", "57P03", "53300", "08006", "57014"] {
            assert!(matches!(kind(code), StoreError::Unavailable(_)), "{code}");
        }
        for code in ["40P01", "40001", "55P03"] {
            assert!(matches!(kind(code), StoreError::Contended(_)), "{code}");
        }
        for code in ["3F000", "42P01", "42703"] {
            assert!(matches!(kind(code), StoreError::SchemaNotReady(_)), "{code}");
        }
        assert!(matches!(kind("23514"), StoreError::NoTimePartition(_)));
        let other = from_sqlstate("23514", "new row violates check".to_owned());
        assert!(matches!(other, StoreError::Other(_)) && !other.is_retriable());
        assert!(matches!(kind("23505"), StoreError::AlreadyExists(_)));
        assert!(matches!(kind("42501"), StoreError::Denied(_)));
    }

    #[test]
    fn back_off_doubles_up_to_its_maximum_with_jitter() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for step in [100, 200, 300, 300] {
            let delay = backoff.next_delay().as_millis();
            assert!((step / 2..=step * 3 / 2).contains(&delay), "{delay} for {step}");
        }
    }
}
