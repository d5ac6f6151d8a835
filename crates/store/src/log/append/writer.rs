//! One writer: takes what waits, writes it in one transaction, answers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{Postgres, pool::PoolConnection};
use tokio::time::timeout;

use super::{
    batcher::Work,
    insert::insert,
    transaction::{Placed, transaction},
    types::AppendError,
};
use crate::{
    error::{Backoff, StoreError},
    log::Log,
};

/// How often a transaction is tried again after a deadlock, a serialization failure or a lock
/// time-out.
const MAX_CONTENDED_ROUNDS: u32 = 8;

/// Pauses between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(75);
const LONGEST_PAUSE: Duration = Duration::from_millis(600);

pub(super) async fn run(log: Log) {
    let mut writer = Writer { log, connection: None, backoff: None };
    let max_bytes = writer.log.db.config().append.append_transaction_bytes as usize;
    while let Some(work) = writer.log.state.batcher.take(max_bytes).await {
        writer.write(work).await;
    }
}

struct Writer {
    log: Log,
    /// With the time of its last use.
    connection: Option<(PoolConnection<Postgres>, Instant)>,
    /// Pauses between attempts to connect; `None` while the last one succeeded.
    backoff: Option<Backoff>,
}

impl Writer {
    /// Writes `work` and answers every batch of it, or gives back what has to wait.
    async fn write(&mut self, mut work: Vec<Work>) {
        work.sort_by_key(|item| item.partition);
        let limit = self.log.db.config().append.append_timeout;
        for round in 0.. {
            let mut connection = match self.connect().await {
                Ok(connection) => connection,
                Err(error) => return self.refuse(work, &Arc::new(error)),
            };
            let written = async {
                match insert(&self.log, &mut connection, &mut work).await? {
                    Some(placed) => Ok(placed),
                    None => transaction(&self.log, &mut connection, &mut work).await,
                }
            };
            let outcome = timeout(limit, written).await;
            match outcome.unwrap_or_else(|_| Err(StoreError::Unavailable("the append timed out".into()))) {
                Ok(placed) => {
                    self.connection = Some((connection, Instant::now()));
                    return self.answer(work, placed);
                }
                Err(error) if error.is_contended() && round < MAX_CONTENDED_ROUNDS => {
                    self.connection = Some((connection, Instant::now()));
                    forget(&mut work);
                }
                Err(error) => {
                    tracing::warn!(%error, "append failed; its producers are told to try again");
                    // The state of the session is unknown, so it is closed and not given back.
                    drop(connection.detach());
                    forget(&mut work);
                    return self.refuse(work, &Arc::new(error));
                }
            }
        }
    }

    /// The writer's connection, made anew after an error or if the server has gone meanwhile. Where
    /// that fails, everything queued is refused, so that producers wait on their side and not in our
    /// memory.
    async fn connect(&mut self) -> Result<PoolConnection<Postgres>, StoreError> {
        if let Some((mut connection, since)) = self.connection.take() {
            if self.log.db.admits(&mut connection, since.elapsed()).await {
                return Ok(connection);
            }
            drop(connection.detach());
        }
        match self.writing_connection().await {
            Ok(connection) => {
                self.backoff = None;
                Ok(connection)
            }
            Err(error) => {
                if self.backoff.is_none() {
                    tracing::warn!(%error, "a writer has no connection to Postgres");
                }
                let shared = Arc::new(StoreError::Unavailable(error.to_string()));
                for pending in self.log.state.batcher.take_pending() {
                    let _ = pending.reply.send(Err(AppendError::Store(Arc::clone(&shared))));
                }
                let backoff = self.backoff.get_or_insert_with(|| Backoff::new(FIRST_PAUSE, LONGEST_PAUSE));
                tokio::time::sleep(backoff.next_delay()).await;
                Err(error)
            }
        }
    }

    async fn writing_connection(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let mut connection = self.log.db.acquire().await?;
        // A statement time-out can hit the COMMIT while it waits for a synchronous standby, and
        // Postgres then reports success for what is not replicated. Our own limit drops the session
        // instead.
        sqlx::raw_sql("SET statement_timeout = 0").execute(&mut *connection).await?;
        Ok(connection)
    }

    fn refuse(&self, work: Vec<Work>, error: &Arc<StoreError>) {
        for mut item in work {
            for pending in item.pending.drain(..) {
                let _ = pending.reply.send(Err(AppendError::Store(Arc::clone(error))));
            }
            self.log.state.batcher.put_back(item, false);
        }
    }

    /// Publishes and answers what was committed; partitions whose lock was not free go back.
    fn answer(&self, work: Vec<Work>, placed: Vec<Option<Placed>>) {
        for (mut item, placed) in work.into_iter().zip(placed) {
            let contended = placed.is_none();
            if let Some(placed) = placed {
                item.memory.next_seq = placed.next_seq;
                if placed.bytes > 0 {
                    if self.log.state.waiters.has_reader_at_end(item.partition) {
                        let ranges = placed.ranges(&item.pending, self.log.cluster.leader_epoch());
                        self.log.state.tail.insert(item.partition, ranges);
                    }
                    self.log.state.waiters.appended(item.partition, placed.next_seq - 1, placed.bytes);
                    self.log.hint_appended(item.partition);
                }
                for (pending, verdict) in item.pending.drain(..).zip(placed.verdicts) {
                    let _ = pending.reply.send(verdict);
                }
            }
            self.log.state.batcher.put_back(item, contended);
        }
    }
}

/// What a failed transaction left in memory is not committed, so it is read from the tables again.
fn forget(work: &mut [Work]) {
    work.iter_mut().for_each(|item| item.memory.forget());
}
