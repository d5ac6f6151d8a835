//! Reads: rows become records again, limits, offsets by time, wake-ups.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};
use sqlx::{Connection, PgConnection};
use store::{LogEnd, Offset, OffsetAndTimestamp, ReadError, ReadLimit};
use testkit::TestDatabase;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wire::batch::{BatchView, Records, TimestampType};

use crate::records::{Batch, Log, plain};

const UNLIMITED: usize = 1 << 24;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// All records of a fetch answer; every batch must have a right CRC.
fn decode(bytes: &[u8]) -> Vec<Read> {
    let mut read = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (batch, after) = BatchView::parse(rest).unwrap();
        assert!(batch.crc_is_valid());
        let header = batch.header();
        for record in Records::new(&batch.decompress(UNLIMITED).unwrap()) {
            let record = record.unwrap();
            let timestamp = match header.timestamp_type() {
                TimestampType::CreateTime => header.base_timestamp + record.timestamp_delta,
                TimestampType::LogAppendTime => header.max_timestamp,
            };
            read.push(Read {
                offset: header.base_offset + i64::from(record.offset_delta),
                timestamp,
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: record.headers.iter().map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec))).collect(),
            });
        }
        rest = after;
    }
    read
}

impl Log {
    async fn end(&self, partition: i32) -> LogEnd {
        self.store.log.ends(&[self.key(partition)]).await.unwrap()[&self.key(partition)]
    }

    async fn read(&self, partition: i32, offset: i64, max_bytes: usize) -> Result<Vec<Read>, ReadError> {
        let last = self.store.log.last_ends(&[self.key(partition)]).await.unwrap()[&self.key(partition)];
        let limit = ReadLimit { max_bytes, at_least_one: true };
        let fetched = self.store.log.fetch(self.key(partition), Offset::new(offset), limit, last).await?;
        Ok(decode(&fetched.records))
    }

    async fn bytes_read(&self, offset: i64, limit: ReadLimit) -> usize {
        let last = self.end(0).await;
        self.store.log.fetch(self.key(0), Offset::new(offset), limit, last).await.unwrap().records.len()
    }

    async fn insert_as_pgqueue(&self, connection: &mut PgConnection, key: &str, payload: &[u8], compression: i16) {
        let mut transaction = connection.begin().await.unwrap();
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(self.key(0).lock_key())
            .execute(&mut *transaction)
            .await
            .unwrap();
        sqlx::query(
            "INSERT INTO queue.metadata_queue_message \
               (topic_id, partition_id, routing_key, enqueue_seq, payload, payload_compression, headers) \
             SELECT $1, 0, $2, coalesce(max(enqueue_seq), 0) + 1, $3, $4, '[{\"key\": \"h\", \"v\": \"eHk=\"}]' \
             FROM queue.metadata_queue_message WHERE topic_id = $1 AND partition_id = 0",
        )
        .bind(self.topic_id)
        .bind(key)
        .bind(payload)
        .bind(compression)
        .execute(&mut *transaction)
        .await
        .unwrap();
        transaction.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_in_comes_out() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let parts: [Option<&[u8]>; 6] =
        [None, Some(b""), Some(b"text"), Some("ünïcode".as_bytes()), Some(b"\0nul"), Some(b"\xff\xfe")];
    type Headers<'a> = &'a [(&'a [u8], Option<&'a [u8]>)];
    let header_sets: [Headers; 4] = [
        &[],
        &[(b"a", Some(b"1")), (b"a", None), (b"a", Some(b""))],
        &[(b"", Some(b"\0\xff"))],
        &[(b"\xff\0key", Some(b"v")), (b"quote\"\\", None)],
    ];
    let mut batch = Batch::new(Default::default());
    let mut expected = Vec::new();
    for key in parts {
        for value in parts {
            let i = expected.len();
            let headers = header_sets[i % header_sets.len()];
            let timestamp = [0, 1_700_000_000_000, -1, 5][i % 4];
            batch.push(timestamp, key, value, headers);
            expected.push(Read {
                offset: i as i64,
                timestamp,
                key: key.map(<[u8]>::to_vec),
                value: value.map(<[u8]>::to_vec),
                headers: headers.iter().map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec))).collect(),
            });
        }
    }
    log.append(0, batch.produced()).await.unwrap();
    assert_eq!(log.read(0, 0, UNLIMITED).await.unwrap(), expected);
    assert_eq!(log.read(0, 20, UNLIMITED).await.unwrap(), expected[20..], "from the middle");
    assert_eq!(log.read(0, expected.len() as i64, UNLIMITED).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_pgqueue_clients_read_like_any_other() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let mut connection = database.connection().await;
    log.append(0, plain(&["ours"])).await.unwrap();
    log.insert_as_pgqueue(&mut connection, "urn:li:1", b"plain", 0).await;
    let packed = snap::raw::Encoder::new().compress_vec(&b"long ".repeat(100)).unwrap();
    log.insert_as_pgqueue(&mut connection, "urn:li:2", &packed, 1).await;
    log.append(0, plain(&["ours again"])).await.unwrap();

    let read = log.read(0, 0, UNLIMITED).await.unwrap();
    let values: Vec<_> = read.iter().map(|r| r.value.clone().unwrap()).collect();
    assert_eq!(values, [&b"ours"[..], b"plain", &b"long ".repeat(100), b"ours again"]);
    assert_eq!(read[1].key.as_deref(), Some(&b"urn:li:1"[..]));
    assert_eq!(read[1].headers, [(b"h".to_vec(), Some(b"xy".to_vec()))]);
    let now: f64 =
        sqlx::query_scalar("SELECT extract(epoch FROM now())::float8 * 1000").fetch_one(&mut connection).await.unwrap();
    assert!((now - read[1].timestamp as f64).abs() < 60_000.0, "its timestamp is enqueued_at");
}

#[tokio::test(flavor = "multi_thread")]
async fn byte_limits_hold_but_one_record_always_comes() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let large = "x".repeat(100_000);
    log.append(0, plain(&[&large, "a", "b", &large, &large, &large])).await.unwrap();
    assert_eq!(log.read(0, 0, 0).await.unwrap().len(), 1);
    assert_eq!(log.read(0, 0, 10).await.unwrap().len(), 1);
    assert_eq!(log.read(0, 1, 10_000).await.unwrap().len(), 2, "up to the record that goes beyond the limit");
    assert_eq!(log.read(0, 0, 150_000).await.unwrap().len(), 3);
    assert_eq!(log.read(0, 0, UNLIMITED).await.unwrap().len(), 6);
    let without_exception = ReadLimit { max_bytes: 10, at_least_one: false };
    assert_eq!(log.bytes_read(0, without_exception).await, 0);
}

/// How many rows to ask for is guessed from what the last ones weighed; a guess that is wrong in
/// either direction costs time but neither records nor memory.
#[tokio::test(flavor = "multi_thread")]
async fn records_of_very_different_sizes_are_read_in_full() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let large = "L".repeat(900_000);
    let mut expected = Vec::new();
    for _ in 0..3 {
        let small: Vec<String> = (0..3000).map(|i| format!("small {i}")).collect();
        log.append(0, plain(&small.iter().map(String::as_str).collect::<Vec<_>>())).await.unwrap();
        expected.extend(small);
        for _ in 0..4 {
            log.append(0, plain(&[&large])).await.unwrap();
            expected.push(large.clone());
        }
    }
    let mut read = Vec::new();
    while read.len() < expected.len() {
        let records = log.read(0, read.len() as i64, 1_000_000).await.unwrap();
        assert!(!records.is_empty(), "nothing at {}", read.len());
        read.extend(records.into_iter().map(|record| String::from_utf8(record.value.unwrap()).unwrap()));
    }
    assert!(read == expected, "every record once and in order");
}

/// Clients size their buffers by what they ask for (librdkafka: `receive.message.max.bytes`).
#[tokio::test(flavor = "multi_thread")]
async fn the_byte_limit_is_exact() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    // Not shorter than the least that a row is taken to weigh.
    let value = "x".repeat(100);
    log.append(0, plain(&[value.as_str(); 20])).await.unwrap();
    let mut times = Batch::new(Default::default());
    times.push(5, None, Some(value.as_bytes()), &[(b"header", Some(b"value"))]);
    log.append(0, times.produced()).await.unwrap();
    let all = log.bytes_read(0, ReadLimit { max_bytes: 10_000, at_least_one: true }).await;
    let limited = async |max_bytes| log.bytes_read(0, ReadLimit { max_bytes, at_least_one: false }).await;
    assert_eq!(limited(all).await, all);
    let less = limited(all - 1).await;
    assert!(less > 0 && less < all - 1, "{less} of {all}");
    for max_bytes in (0..all).step_by(9) {
        let read = limited(max_bytes).await;
        assert!(read <= max_bytes, "{read} bytes for a limit of {max_bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_outside_of_the_log_are_refused_and_gaps_inside_are_not() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    log.append(0, plain(&["0", "1", "2", "3", "4", "5"])).await.unwrap();
    let beyond = log.read(0, 7, UNLIMITED).await;
    assert!(matches!(beyond, Err(ReadError::OffsetOutOfRange(b)) if b.high.get() == 6), "{beyond:?}");
    assert_eq!(log.read(0, 6, UNLIMITED).await.unwrap(), []);

    let mut connection = database.connection().await;
    sqlx::query("DELETE FROM queue.metadata_queue_message WHERE enqueue_seq IN (1, 2, 5)")
        .execute(&mut connection)
        .await
        .unwrap();
    let below = log.read(0, 1, UNLIMITED).await;
    assert!(matches!(below, Err(ReadError::OffsetOutOfRange(b)) if b.start.get() == 2), "{below:?}");
    let offsets: Vec<_> = log.read(0, 2, UNLIMITED).await.unwrap().iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [2, 3, 5]);
    assert_eq!(log.read(0, 4, UNLIMITED).await.unwrap()[0].offset, 5, "a gap inside the log is skipped");
    let end = log.end(0).await;
    assert_eq!((end.start.get(), end.high.get()), (2, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_partition_starts_and_ends_where_the_ledger_says() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 2).await;
    let end = log.end(1).await;
    assert_eq!((end.start.get(), end.high.get()), (0, 0));
    let mut connection = database.connection().await;
    sqlx::query(
        "INSERT INTO queue.metadata_queue_kafka_partition (topic_id, partition_id, next_seq) VALUES ($1, 1, 11)",
    )
    .bind(log.topic_id)
    .execute(&mut connection)
    .await
    .unwrap();
    let end = log.end(1).await;
    assert_eq!((end.start.get(), end.high.get()), (10, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_by_time_equal_a_scan() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut timestamps = Vec::new();
    let mut clock = 1_000_000;
    for _ in 0..40 {
        let mut batch = Batch::new(Default::default());
        for _ in 0..random.random_range(1..6) {
            clock += random.random_range(0..50);
            // Now and then a clock that runs behind or ahead.
            let timestamp = clock + if random.random_bool(0.2) { random.random_range(-300..300) } else { 0 };
            batch.push(timestamp, None, Some(b"x"), &[]);
            timestamps.push(timestamp);
        }
        log.append(0, batch.produced()).await.unwrap();
    }
    let end = log.end(0).await;
    for target in (999_000..clock + 600).step_by(7) {
        let expected = timestamps
            .iter()
            .position(|timestamp| *timestamp >= target)
            .map(|i| OffsetAndTimestamp { offset: Offset::new(i as i64), timestamp: timestamps[i] });
        assert_eq!(log.store.log.offset_for_timestamp(log.key(0), target, end).await.unwrap(), expected, "{target}");
    }
    let max = *timestamps.iter().max().unwrap();
    let first = timestamps.iter().position(|timestamp| *timestamp == max).unwrap() as i64;
    let found = log.store.log.offset_of_max_timestamp(log.key(0), end).await.unwrap();
    assert_eq!(found, Some(OffsetAndTimestamp { offset: Offset::new(first), timestamp: max }));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_append_time_is_the_commit_s_and_the_same_everywhere() {
    let database = TestDatabase::new().await;
    let mut log = Log::create(&database, 1).await;
    log.log_append_time = true;
    let first = log.append(0, plain(&["a", "b"])).await.unwrap();
    let second = log.append(0, plain(&["c"])).await.unwrap();
    let read = log.read(0, 0, UNLIMITED).await.unwrap();
    let times: Vec<_> = read.iter().map(|r| Some(r.timestamp)).collect();
    assert_eq!(times, [first.log_append_time, first.log_append_time, second.log_append_time]);
    let end = log.end(0).await;
    let found = log.store.log.offset_for_timestamp(log.key(0), read[0].timestamp, end).await.unwrap().unwrap();
    assert_eq!(found.offset, Offset::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_wakes_and_nothing_else_does() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 2).await;
    let subscription = log.store.log.subscribe(vec![log.key(0)]);
    subscription.want(1);
    log.append(1, plain(&["other partition"])).await.unwrap();
    assert!(timeout(Duration::from_millis(50), subscription.moved()).await.is_err());
    log.append(0, plain(&["x"])).await.unwrap();
    timeout(Duration::from_secs(1), subscription.moved()).await.expect("woken");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_others_wake_also_when_their_transaction_was_long() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let shutdown = CancellationToken::new();
    let watching = tokio::spawn({
        let (store, shutdown) = (log.store.clone(), shutdown.clone());
        async move { store.log.watch(shutdown).await }
    });
    let mut connection = database.connection().await;
    for _ in 0..3 {
        log.store.log.last_ends(&[log.key(0)]).await.unwrap();
        let subscription = log.store.log.subscribe(vec![log.key(0)]);
        let mut transaction = connection.begin().await.unwrap();
        sqlx::query(
            "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
             SELECT $1, 0, 'k', coalesce(max(enqueue_seq), 0) + 1, 'v' FROM queue.metadata_queue_message",
        )
        .bind(log.topic_id)
        .execute(&mut *transaction)
        .await
        .unwrap();
        assert!(timeout(Duration::from_millis(600), subscription.moved()).await.is_err(), "not committed yet");
        transaction.commit().await.unwrap();
        timeout(Duration::from_secs(2), subscription.moved()).await.expect("woken");
    }
    shutdown.cancel();
    timeout(Duration::from_secs(2), watching).await.expect("ends").unwrap();
}
