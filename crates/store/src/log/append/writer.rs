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
    transaction::{Part, transaction},
    types::AppendError,
};
use crate::{
    error::{Backoff, StoreError},
    log::{Log, LogEnd},
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
    /// Writes `work` and answers every batch of it, or gives back what has to wait. What Postgres does
    /// not accept is halved and tried again, until the batches at fault are alone.
    async fn write(&mut self, mut work: Vec<Work>) {
        work.sort_by_key(|item| item.partition);
        let mut parts = vec![work];
        while let Some(mut part) = parts.pop() {
            let unfinished = match self.store(&mut part).await {
                Ok(placed) => self.answer(part, placed),
                Err(error) if !error.may_lie_in_one_row() => {
                    part.extend(parts.drain(..).flatten());
                    part.iter_mut().for_each(Work::join);
                    self.refuse(part, error)
                }
                Err(error) if part.iter().map(|item| item.pending.len()).sum::<usize>() == 1 => {
                    self.refuse(part, error)
                }
                Err(_) => {
                    parts.extend(halves(part));
                    continue;
                }
            };
            if !unfinished.is_empty() {
                parts.push(unfinished);
            }
        }
    }

    /// One transaction, repeated while others are in its way.
    async fn store(&mut self, work: &mut [Work]) -> Result<Vec<Option<Part>>, StoreError> {
        let limit = self.log.db.config().append.append_timeout;
        let mut round = 0;
        loop {
            let mut connection = self.connect().await?;
            let written = async {
                match insert(&self.log, &mut connection, work).await? {
                    Some(placed) => Ok(placed),
                    None => transaction(&self.log, &mut connection, work).await,
                }
            };
            let outcome = timeout(limit, written).await;
            let outcome = outcome.unwrap_or_else(|_| Err(StoreError::Unavailable("the append timed out".into())));
            if outcome.as_ref().err().is_none_or(StoreError::may_lie_in_one_row) {
                self.connection = Some((connection, Instant::now()));
            } else {
                // The state of the session is unknown, so it is closed and not given back.
                drop(connection.detach());
            }
            let Err(error) = outcome else { return outcome };
            work.iter_mut().for_each(|item| item.memory.forget());
            if !error.is_contended() || round == MAX_CONTENDED_ROUNDS {
                return Err(error);
            }
            round += 1;
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
                // Whatever it is, it does not lie in what was to be written.
                let error = match error {
                    StoreError::Unavailable(_) => error,
                    other => StoreError::Unavailable(other.to_string()),
                };
                let shared = Arc::new(error.clone());
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

    /// Answers what is pending; returns the partitions of which more is to be written.
    fn refuse(&self, part: Vec<Work>, error: StoreError) -> Vec<Work> {
        if error.is_retriable() {
            tracing::warn!(%error, "append failed; its producers are told to try again");
        } else {
            let partition = part.first().map(|item| item.partition);
            tracing::warn!(%error, ?partition, "append refused; its producer is told so");
        }
        let error = Arc::new(error);
        let mut unfinished = Vec::new();
        for mut item in part {
            for pending in item.pending.drain(..) {
                item.memory.producers.refused(&pending.append.batch.header);
                let _ = pending.reply.send(Err(AppendError::Store(Arc::clone(&error))));
            }
            unfinished.extend(self.finish(item));
        }
        unfinished
    }

    /// What is left of a partition, pending; nothing if all is answered.
    fn finish(&self, mut item: Work) -> Option<Work> {
        item.join();
        Some(item).filter(|item| !item.pending.is_empty())
    }

    /// Publishes and answers what was committed; partitions whose lock was not free go back. Returns
    /// those of which more is to be written.
    fn answer(&self, work: Vec<Work>, parts: Vec<Option<Part>>) -> Vec<Work> {
        let mut unfinished = Vec::new();
        for (mut item, part) in work.into_iter().zip(parts) {
            let Some(part) = part else {
                item.requeue();
                continue;
            };
            item.memory.next_seq = Some(part.placing.next_seq);
            if part.placing.bytes > 0 {
                self.publish(&item, &part);
            }
            let answers = part.placing.answers(&item.pending, part.at);
            for (pending, answer) in item.pending.drain(..).zip(answers) {
                let _ = pending.reply.send(answer);
            }
            unfinished.extend(self.finish(item));
        }
        unfinished
    }

    /// Wakes readers of this gateway and of others.
    fn publish(&self, item: &Work, part: &Part) {
        let state = &self.log.state;
        if state.waiters.has_reader_at_end(item.partition) {
            state.tail.insert(item.partition, part.ranges(&item.pending, self.log.cluster.leader_epoch()));
        }
        let end = LogEnd::new(part.at.log_start, part.placing.next_seq.offset());
        state.waiters.appended(item.partition, end, part.placing.bytes);
        self.log.hint_appended(item.partition);
    }
}

/// Two parts, the first half last; of one partition its first half alone, the other one later.
fn halves(mut part: Vec<Work>) -> Vec<Vec<Work>> {
    if let [item] = part.as_mut_slice() {
        let mut second = item.pending.split_off(item.pending.len() / 2);
        second.append(&mut item.later);
        item.later = second;
        return vec![part];
    }
    let second = part.split_off(part.len() / 2);
    vec![second, part]
}
