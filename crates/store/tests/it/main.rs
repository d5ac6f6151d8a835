//! The store against a real Postgres; every test has a database of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // so do the helpers of tests
#![allow(unreachable_pub)] // modules of one test binary

mod append;
mod catalog;
mod ends;
mod groups;
mod leases;
mod maintenance;
mod migrate;
mod nodes;
mod offsets;
mod pgqueue;
mod pool;
mod producers;
mod read;
mod records;
mod refused;
mod registrations;
mod slots;
mod tail;
mod texts;

use sqlx::{AssertSqlSafe, PgConnection};

/// How many advisory locks are held in this database; other tests hold some in theirs.
const ADVISORY_LOCKS: &str = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
     WHERE l.locktype = 'advisory' AND d.datname = current_database()";

/// Runs statements that a test has no further question about.
async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.expect(sql);
}

/// The first column of all rows.
async fn texts(connection: &mut PgConnection, sql: &str) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await.expect(sql)
}

/// A number: a count, mostly.
async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await.expect(sql)
}
