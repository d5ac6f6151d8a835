//! What is read at the end of a partition without asking Postgres.

use bytes::Bytes;
use local_postgres::StopMode;
use store::{LogEnd, Offset, ReadLimit};
use testkit::TestDatabase;

use crate::records::{Batch, Log, idempotent, plain};

type Headers<'a> = &'a [(&'a [u8], Option<&'a [u8]>)];

const LARGE: ReadLimit = ReadLimit { max_bytes: 1 << 24, at_least_one: true };

async fn end(log: &Log) -> LogEnd {
    log.store.log.last_ends(&[log.key(0)]).await.unwrap()[&log.key(0)]
}

async fn read(log: &Log, offset: Offset, known: LogEnd) -> Bytes {
    log.store.log.fetch(log.key(0), offset, LARGE, known).await.unwrap().records
}

/// A consumer that has read everything.
async fn stand_at_the_end(log: &Log) {
    let known = end(log).await;
    assert!(read(log, known.high, known).await.is_empty());
}

fn odd() -> wire::batch::ProducedBatch {
    let mut batch = Batch::new(Default::default());
    let parts: [Option<&[u8]>; 5] = [None, Some(b""), Some("ünïcode".as_bytes()), Some(b"\0nul"), Some(b"\xff\xfe")];
    for (i, key) in parts.into_iter().enumerate() {
        for value in parts {
            let sets: [Headers<'_>; 3] = [&[], &[(b"a", Some(b"1")), (b"a", None)], &[(b"\xff\0key", Some(b"\0"))]];
            let headers = sets[i % sets.len()];
            batch.push([0, 1_700_000_000_000, -1, 5][i % 4], key, value, headers);
        }
    }
    batch.produced()
}

/// Each append as the rows of it are read, to the byte.
#[tokio::test(flavor = "multi_thread")]
async fn the_tail_is_what_the_rows_say() {
    let database = TestDatabase::new().await;
    let mut log = Log::create(&database, 1).await;
    let rows = log.on_another_gateway(&database).await;
    let mut reads = 0;
    for log_append_time in [false, true] {
        log.log_append_time = log_append_time;
        for batch in [odd(), plain(&["one"]), idempotent(7, 0, if log_append_time { 2 } else { 0 }, &["two", "three"])]
        {
            stand_at_the_end(&log).await;
            let appended = log.append(0, batch).await.unwrap();
            let (from_tail, from_rows) = (end(&log).await, rows.store.log.ends(&[rows.key(0)]).await.unwrap());
            let from_rows = read(&rows, appended.base_offset, from_rows[&rows.key(0)]).await;
            assert_eq!(read(&log, appended.base_offset, from_tail).await, from_rows);
            assert!(!from_rows.is_empty());
            reads += 1;
        }
    }
    assert_eq!(reads, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_at_the_end_need_no_postgres_and_all_that_came_meanwhile_is_there() {
    let database = TestDatabase::on_private_server().await;
    let log = Log::create(&database, 1).await;
    log.append(0, plain(&["before"])).await.unwrap();
    stand_at_the_end(&log).await;
    for value in ["one", "two", "three"] {
        log.append(0, plain(&[value])).await.unwrap();
    }
    let known = end(&log).await;
    assert_eq!(known.high.get(), 4);
    database.server().stop(StopMode::Immediate).unwrap();
    let records = read(&log, Offset::new(1), known).await;
    for value in [&b"one"[..], b"two", b"three"] {
        assert!(records.windows(value.len()).any(|bytes| bytes == value));
    }
    let small = ReadLimit { max_bytes: 100, at_least_one: false };
    let first = log.store.log.fetch(log.key(0), Offset::new(1), small, known).await.unwrap().records;
    assert!(!first.is_empty() && first.len() <= 100, "whole appends that fit: {}", first.len());
    // Nobody stood at the end when this one came.
    assert!(log.store.log.fetch(log.key(0), Offset::new(0), LARGE, known).await.is_err());
}
