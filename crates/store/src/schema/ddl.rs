//! Statements that need strong locks, without making others wait behind them (B056): each in a
//! short transaction with a lock time-out, repeated with pauses.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::Instant;

use crate::error::{Backoff, StoreError};

/// While a statement waits for its lock, everybody after it waits too; so not for long.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DdlLimits {
    pub(crate) give_up_after: Duration,
}

impl Default for DdlLimits {
    fn default() -> DdlLimits {
        DdlLimits { give_up_after: Duration::from_secs(60) }
    }
}

/// Runs `statements` in one transaction, again and again until they get their locks.
///
/// # Errors
/// [`StoreError::Contended`] after `limits`, naming the statement's first line; others at once.
pub(crate) async fn in_transaction(
    connection: &mut PgConnection,
    statements: &str,
    limits: DdlLimits,
) -> Result<(), StoreError> {
    let deadline = Instant::now() + limits.give_up_after;
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        match attempt(connection, statements).await {
            Err(StoreError::Contended(reason)) => {
                let pause = backoff.next_delay();
                if Instant::now() + pause > deadline {
                    let reason = format!("gave up after {:?}: {reason}", limits.give_up_after);
                    return Err(StoreError::Contended(reason));
                }
                tracing::info!(%reason, ?pause, "a change of the schema waits for others");
                tokio::time::sleep(pause).await;
            }
            result => return result,
        }
    }
}

async fn attempt(connection: &mut PgConnection, statements: &str) -> Result<(), StoreError> {
    let mut transaction = connection.begin().await?;
    let script =
        format!("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {}; {statements}", LOCK_TIMEOUT.as_millis());
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}
