//! Noticing what others append: pgQueue's clients, SQL, and other insert_watchways whose hint
//! ([`crate::log::hints`]) was lost (storage.md D11).
//!
//! While a fetch waits for a partition, one task looks once per tick, and every second one when
//! nothing was inserted for some time. It asks first whether anything was inserted at all: the
//! sequence behind `message.id` moves with every insert, and reading it costs next to nothing however
//! many partitions are watched. Only when it has moved does one statement ask for the ends of all
//! watched partitions.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use sqlx::Row;
use tokio_util::sync::CancellationToken;

use crate::{error::StoreError, log::Log, partition::PartitionKey};

/// Partitions that one statement asks about.
const CHUNK: usize = 1000;

/// After an insert of anybody the next one is likely for so long.
const BUSY: Duration = Duration::from_secs(5);
/// Ticks between two looks after that: an idle insert_watchway is to cost Postgres next to nothing.
const IDLE_TICKS: u32 = 2;

/// How many times longer than a look the pause after it is at least: where thousands of partitions
/// are watched while records arrive, looking takes a small part of Postgres' time all the same.
const LOOK_SHARE: u32 = 10;

/// Ticks between two warnings while Postgres cannot be asked.
const QUIET_FAILURES: u32 = 80;

/// Whether inserts seen by the sequence may still become visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settling {
    /// Nothing was inserted since the ends were last read.
    Clean,
    /// An id was drawn since the last tick; its transaction may not even have a transaction id yet.
    Drawn,
    /// Ids were drawn by transactions below this transaction id.
    Until(i64),
}

/// What the sequence and the snapshot say at one moment.
#[derive(Debug, Clone, Copy)]
struct Inserts {
    last_id: i64,
    /// Transactions below have ended.
    xmin: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    No,
    Yes,
    /// And find out below which transaction id the inserts are.
    YesAndMark,
}

/// Decides when the ends of partitions are read.
struct InsertWatch {
    last_id: i64,
    settling: Settling,
    /// When something was last found to be inserted, or not to be visible yet.
    busy_at: Instant,
}

impl InsertWatch {
    /// Whether the ends must be read after this inserts.
    fn look(&mut self, inserts: Inserts) -> Look {
        let look = self.judge(inserts);
        if look != Look::No {
            self.busy_at = Instant::now();
        }
        look
    }

    fn ticks(&self) -> u32 {
        if self.busy_at.elapsed() < BUSY { 1 } else { IDLE_TICKS }
    }

    fn judge(&mut self, inserts: Inserts) -> Look {
        if inserts.last_id != self.last_id {
            self.last_id = inserts.last_id;
            self.settling = Settling::Drawn;
            return Look::Yes;
        }
        match self.settling {
            Settling::Clean => Look::No,
            Settling::Drawn => Look::YesAndMark,
            Settling::Until(mark) => {
                if inserts.xmin > mark {
                    self.settling = Settling::Clean;
                }
                Look::Yes
            }
        }
    }
}

impl Log {
    /// Watches until `shutdown`; run it once per insert_watchway.
    pub async fn watch(&self, shutdown: CancellationToken) {
        let _ = shutdown.run_until_cancelled(self.watch_forever()).await;
    }

    async fn watch_forever(&self) {
        let mut insert_watch = InsertWatch { last_id: -1, settling: Settling::Drawn, busy_at: Instant::now() };
        let mut seen = HashSet::new();
        let mut failures: u32 = 0;
        loop {
            let watched = self.state.waiters.watched();
            if watched.is_empty() {
                seen.clear();
                self.state.watch_wake.notified().await;
                continue;
            }
            let start = Instant::now();
            match self.look(&mut insert_watch, &mut seen, watched).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    if failures.is_multiple_of(QUIET_FAILURES) {
                        tracing::warn!(%error, "cannot see what others append");
                    }
                    failures += 1;
                    insert_watch.settling = Settling::Drawn;
                }
            }
            let pause = self.db.config().poll_interval * insert_watch.ticks();
            tokio::time::sleep(pause.max(start.elapsed() * LOOK_SHARE)).await;
        }
    }

    async fn look(
        &self,
        insert_watch: &mut InsertWatch,
        seen: &mut HashSet<PartitionKey>,
        watched: Vec<PartitionKey>,
    ) -> Result<(), StoreError> {
        let look = insert_watch.look(self.inserts().await?);
        if look == Look::YesAndMark {
            insert_watch.settling = Settling::Until(self.new_transaction_id().await?);
        }
        let must_ask = |partition: &PartitionKey| look != Look::No || !seen.contains(partition);
        let asked: Vec<PartitionKey> = watched.iter().copied().filter(must_ask).collect();
        for chunk in asked.chunks(CHUNK) {
            self.ends(chunk).await?;
        }
        *seen = watched.into_iter().collect();
        Ok(())
    }

    async fn inserts(&self) -> Result<Inserts, StoreError> {
        let mut connection = self.db.acquire().await?;
        let found = self.state.statements.inserts().fetch_one(&mut *connection).await.map_err(StoreError::from);
        // The pool would have to ask for it with a statement of its own.
        match &found {
            Ok(row) => self.db.note_look(!row.try_get::<bool, _>("is_read_only")?),
            Err(StoreError::Unavailable(_)) => self.db.note_look(false),
            Err(_) => {}
        }
        let row = found?;
        Ok(Inserts { last_id: row.try_get("last_id")?, xmin: row.try_get("xmin")? })
    }

    /// Above the ids of all running transactions. A snapshot does not tell: its xmax follows the
    /// last transaction that has ended, and later ones may be running.
    async fn new_transaction_id(&self) -> Result<i64, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self.state.statements.new_transaction_id().fetch_one(&mut *connection).await?;
        Ok(row.try_get("transaction_id")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_until_every_transaction_that_may_have_drawn_an_id_has_ended() {
        let mut insert_watch = InsertWatch { last_id: 10, settling: Settling::Clean, busy_at: Instant::now() };
        let inserts = |last_id, xmin| Inserts { last_id, xmin };
        assert_eq!(insert_watch.look(inserts(10, 100)), Look::No);
        assert_eq!(insert_watch.look(inserts(11, 100)), Look::Yes, "an id was drawn");
        assert_eq!(insert_watch.look(inserts(12, 100)), Look::Yes, "another one");
        assert_eq!(insert_watch.look(inserts(12, 100)), Look::YesAndMark, "by now both transactions have their ids");
        insert_watch.settling = Settling::Until(103);
        assert_eq!(insert_watch.look(inserts(12, 101)), Look::Yes, "101 or 102 is still open");
        assert_eq!(insert_watch.look(inserts(12, 103)), Look::Yes, "nor has 103 ended as far as this snapshot knows");
        assert_eq!(insert_watch.look(inserts(12, 104)), Look::Yes, "all have ended; this look sees their rows");
        assert_eq!(insert_watch.look(inserts(12, 104)), Look::No);
    }

    #[test]
    fn looks_half_as_often_once_nothing_was_inserted_for_some_time() {
        let long_ago = Instant::now().checked_sub(BUSY).unwrap();
        let mut insert_watch = InsertWatch { last_id: 10, settling: Settling::Clean, busy_at: long_ago };
        insert_watch.look(Inserts { last_id: 10, xmin: 100 });
        assert_eq!(insert_watch.ticks(), 2);
        insert_watch.look(Inserts { last_id: 11, xmin: 100 });
        assert_eq!(insert_watch.ticks(), 1, "an id was drawn");
        insert_watch = InsertWatch { settling: Settling::Until(103), busy_at: long_ago, ..insert_watch };
        insert_watch.look(Inserts { last_id: 11, xmin: 101 });
        assert_eq!(insert_watch.ticks(), 1, "a row may become visible at any time");
    }
}
