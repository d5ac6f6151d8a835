//! Appends: offsets, idempotence, columns, and what happens beside other writers.

use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection, Row};
use store::{Append, AppendError, Appended, Offset, PartitionKey};
use testkit::TestDatabase;
use tokio::time::timeout;

use crate::{
    records::{Log, idempotent, plain},
    run, texts,
};

fn at(base_offset: i64) -> Appended {
    Appended { base_offset: Offset::new(base_offset), log_append_time: None, log_start_offset: Offset::ZERO }
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_follow_each_other_over_requests_and_writers() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    assert_eq!(log.append(0, plain(&["a", "b"])).await.unwrap(), at(0));
    assert_eq!(log.append(0, plain(&["c"])).await.unwrap(), at(2));

    let queued: Vec<_> = (0..200).map(|i| log.queue(0, plain(&[&format!("q{i}")]))).collect();
    for (i, reply) in queued.into_iter().enumerate() {
        assert_eq!(reply.await.unwrap().unwrap(), at(3 + i as i64), "in the order of submission");
    }
    assert_eq!(log.values(0).await.len(), 203);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_together_are_written_together() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 4).await;
    log.append(0, plain(&["first"])).await.unwrap();
    let before = transactions(&database).await;
    let queued: Vec<_> = (0..400).map(|i| log.queue(i % 4, plain(&["x"]))).collect();
    for reply in queued {
        reply.await.unwrap().unwrap();
    }
    let used = transactions(&database).await - before;
    assert!(used <= 40, "400 requests took {used} transactions");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_append_waits_for_no_delayed_acknowledgement() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let mut fastest = Duration::MAX;
    for _ in 0..30 {
        let started = Instant::now();
        log.append(0, plain(&["x"])).await.unwrap();
        fastest = fastest.min(started.elapsed());
    }
    assert!(fastest < Duration::from_millis(30), "the fastest of 30 took {fastest:?}; Linux delays by 40 ms");
}

/// Transactions that wrote to the message table, by their rows' xmin.
async fn transactions(database: &TestDatabase) -> i64 {
    let mut connection = database.connection().await;
    sqlx::query_scalar("SELECT count(DISTINCT xmin::text) FROM queue.metadata_queue_message")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_its_first_answer_also_from_another_gateway() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    for number in 0..6 {
        log.append(0, idempotent(7, 0, number, &["x"])).await.unwrap();
    }
    assert_eq!(log.append(0, idempotent(7, 0, 3, &["x"])).await.unwrap(), at(3));

    let other = log.on_another_gateway(&database).await;
    assert_eq!(other.append(0, idempotent(7, 0, 5, &["x"])).await.unwrap(), at(5));
    assert_eq!(other.append(0, idempotent(7, 0, 1, &["x"])).await.unwrap(), at(1), "the fifth-last");
    let forgotten = other.append(0, idempotent(7, 0, 0, &["x"])).await;
    assert!(matches!(forgotten, Err(AppendError::OutOfOrderSequence)), "the sixth-last: {forgotten:?}");
    assert_eq!(other.append(0, idempotent(7, 0, 6, &["y", "z"])).await.unwrap(), at(6));

    // The first gateway notices under the lock that somebody else appended, and looks again.
    assert_eq!(log.append(0, idempotent(7, 0, 6, &["y", "z"])).await.unwrap(), at(6));
    assert_eq!(log.append(0, idempotent(7, 0, 8, &["w"])).await.unwrap(), at(8));
    assert_eq!(log.values(0).await.len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn gaps_stale_epochs_and_new_epochs_are_told_apart() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    log.append(0, idempotent(7, 1, 10, &["a"])).await.expect("an unknown producer may start anywhere");
    let gap = log.append(0, idempotent(7, 1, 12, &["b"])).await;
    assert!(matches!(gap, Err(AppendError::OutOfOrderSequence)), "{gap:?}");
    let stale = log.append(0, idempotent(7, 0, 11, &["b"])).await;
    assert!(matches!(stale, Err(AppendError::StaleProducerEpoch)), "{stale:?}");
    let not_from_zero = log.append(0, idempotent(7, 2, 11, &["b"])).await;
    assert!(matches!(not_from_zero, Err(AppendError::OutOfOrderSequence)), "{not_from_zero:?}");
    assert_eq!(log.append(0, idempotent(7, 2, 0, &["b"])).await.unwrap(), at(1));
    assert_eq!(log.values(0).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_batches_of_one_producer_in_one_transaction() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let replies: Vec<_> = [0, 1, 1, 3, 2].map(|n| log.queue(0, idempotent(7, 0, n, &["x"]))).into_iter().collect();
    let mut answers = Vec::new();
    for reply in replies {
        answers.push(reply.await.unwrap());
    }
    assert!(matches!(answers[0], Ok(a) if a == at(0)), "{answers:?}");
    assert!(matches!(answers[1], Ok(a) if a == at(1)), "{answers:?}");
    assert!(matches!(answers[2], Ok(a) if a == at(1)), "a repeat: {answers:?}");
    assert!(matches!(answers[3], Err(AppendError::OutOfOrderSequence)), "{answers:?}");
    assert!(matches!(answers[4], Ok(a) if a == at(2)), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_does_not_exist_or_no_longer() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let missing = log.append(1, plain(&["x"])).await;
    assert!(matches!(missing, Err(AppendError::UnknownPartition)), "{missing:?}");
    log.append(0, plain(&["x"])).await.unwrap();
    log.store.delete_topic(&log.name).await.unwrap();
    let deleted = log.append(0, plain(&["x"])).await;
    assert!(matches!(deleted, Err(AppendError::UnknownPartition)), "{deleted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_never_start_over_when_all_rows_are_gone() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    log.append(0, plain(&["a", "b", "c"])).await.unwrap();
    remove_rows(&database).await;
    assert_eq!(log.append(0, plain(&["d"])).await.unwrap(), at(3), "in the gateway that wrote them");

    assert_eq!(log.store.log.update_ledger().await.unwrap(), 1);
    assert_eq!(log.store.log.update_ledger().await.unwrap(), 0, "only what has moved is written");
    remove_rows(&database).await;
    let other = log.on_another_gateway(&database).await;
    assert_eq!(other.append(0, plain(&["e"])).await.unwrap(), at(4), "and in another one, by the ledger");
}

async fn remove_rows(database: &TestDatabase) {
    let mut connection = database.connection().await;
    sqlx::query("DELETE FROM queue.metadata_queue_message").execute(&mut connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_whose_lock_is_taken_does_not_hold_up_the_others() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 3).await;
    for partition in 0..3 {
        log.append(partition, plain(&["first"])).await.unwrap();
    }
    let mut connection = database.connection().await;
    let mut holder = connection.begin().await.unwrap();
    take_lock(&mut holder, log.key(1)).await;

    let blocked = log.queue(1, plain(&["late"]));
    for _ in 0..20 {
        timeout(Duration::from_secs(5), log.append(0, plain(&["x"]))).await.expect("not held up").unwrap();
        timeout(Duration::from_secs(5), log.append(2, plain(&["x"]))).await.expect("not held up").unwrap();
    }
    holder.rollback().await.unwrap();
    assert_eq!(timeout(Duration::from_secs(5), blocked).await.expect("its turn").unwrap().unwrap(), at(1));
}

async fn take_lock(connection: &mut PgConnection, partition: PartitionKey) {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(partition.lock_key()).execute(connection).await.unwrap();
}

/// pgQueue's batches lock partitions in the order of their items. Against our sorted order that is
/// a deadlock waiting to happen; nobody may be left standing.
#[tokio::test(flavor = "multi_thread")]
async fn unsorted_pgqueue_batches_beside_group_commits() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 2).await;
    let mut peers = Vec::new();
    for worker in 0..3 {
        let mut connection = database.connection().await;
        // The peers stand in each other's way too: Postgres is to break that at once, not after its
        // usual second.
        sqlx::query("SET deadlock_timeout = '20ms'").execute(&mut connection).await.unwrap();
        let keys = if worker % 2 == 0 { [log.key(1), log.key(0)] } else { [log.key(0), log.key(1)] };
        peers.push(tokio::spawn(async move {
            let mut stored = 0;
            while stored < 30 {
                stored += usize::from(enqueue_both(&mut connection, keys).await);
            }
        }));
    }
    let ours: Vec<_> = (0..600).map(|i| log.queue(i % 2, plain(&["ours"]))).collect();
    for reply in ours {
        timeout(Duration::from_secs(60), reply).await.expect("no deadlock left standing").unwrap().unwrap();
    }
    for peer in peers {
        timeout(Duration::from_secs(60), peer).await.expect("no deadlock left standing").unwrap();
    }
    for partition in 0..2 {
        let seqs = log.seqs(partition).await;
        assert_eq!(seqs, (1..=390).collect::<Vec<i64>>(), "gapless in partition {partition}");
    }
}

/// What `PgQueueRepository.enqueue_batch` does, for one item in each partition; `false` if Postgres
/// ended it for a deadlock.
async fn enqueue_both(connection: &mut PgConnection, keys: [PartitionKey; 2]) -> bool {
    let mut transaction = connection.begin().await.unwrap();
    for key in keys {
        let stored = async {
            sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(key.lock_key()).execute(&mut *transaction).await?;
            sqlx::query(
                "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
                 SELECT $1, $2, 'k', coalesce(max(enqueue_seq), 0) + 1, 'theirs' FROM queue.metadata_queue_message \
                 WHERE topic_id = $1 AND partition_id = $2",
            )
            .bind(key.topic_id)
            .bind(key.partition_id)
            .execute(&mut *transaction)
            .await
        };
        if let Err(error) = stored.await {
            let code = error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned());
            assert_eq!(code.as_deref(), Some("40P01"), "{error}");
            return false;
        }
    }
    transaction.commit().await.unwrap();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_those_of_the_contract() {
    let database = TestDatabase::new().await;
    let log = Log::create(&database, 1).await;
    let mut batch = crate::records::Batch::new(idempotent_fields());
    batch.push(1_000, Some(b"text"), Some(b"v"), &[(b"h", Some(b"1")), (b"h", None)]);
    batch.push(900, None, None, &[]);
    batch.push(1_100, Some(b"\xff\0"), Some(b""), &[]);
    log.append(0, batch.produced()).await.unwrap();

    let mut connection = database.connection().await;
    let rows = sqlx::query(
        "SELECT routing_key, payload, headers::text, kafka_key, kafka_flags, kafka_timestamp, kafka_max_timestamp, \
         kafka_producer_id, kafka_producer_epoch, kafka_base_sequence, kafka_batch_records, priority, \
         content_type_id, payload_compression \
         FROM queue.metadata_queue_message ORDER BY enqueue_seq",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(rows[0].get::<&str, _>(0), "text");
    assert_eq!(rows[0].get::<&str, _>(2), r#"[{"v": "MQ==", "key": "h"}, {"key": "h"}]"#);
    assert_eq!(rows[0].get::<Option<i16>, _>(4), None);
    assert_eq!(rows[0].get::<Option<i64>, _>(6), None, "it is the maximum itself");
    assert_eq!(rows[1].get::<&str, _>(0), "");
    assert_eq!(rows[1].get::<Option<i16>, _>(4), Some(3), "null key, null value");
    assert_eq!((rows[1].get::<i64, _>(5), rows[1].get::<Option<i64>, _>(6)), (900, Some(1_000)));
    assert_eq!(rows[1].get::<Option<i64>, _>(7), None, "only the last row of a batch tells the producer");
    assert_eq!(rows[2].get::<&str, _>(0), r"\xff00");
    assert_eq!(rows[2].get::<Option<&[u8]>, _>(3), Some(&b"\xff\0"[..]));
    assert_eq!(rows[2].get::<Option<i16>, _>(4), Some(4));
    assert_eq!(rows[2].get::<Option<i64>, _>(7), Some(7));
    assert_eq!(
        (rows[2].get::<i16, _>(8), rows[2].get::<i32, _>(9), rows[2].get::<i32, _>(10)),
        (0, 5, 3),
        "epoch, base sequence, records"
    );
    for row in &rows {
        assert_eq!((row.get::<i16, _>(11), row.get::<Option<i16>, _>(12), row.get::<i16, _>(13)), (5, None, 0));
    }
}

/// Small appends to a partition whose end is known are one statement, all others a COPY: the rows
/// are the same.
#[tokio::test(flavor = "multi_thread")]
async fn small_appends_write_the_same_rows_in_one_statement() {
    let database = TestDatabase::new().await;
    let mut connection = database.connection().await;
    run(
        &mut connection,
        "CREATE TABLE how (statement text); \
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
           $$BEGIN INSERT INTO how VALUES (split_part(current_query(), ' ', 1)); RETURN NULL; END$$; \
         CREATE TRIGGER note AFTER INSERT ON queue.metadata_queue_message FOR EACH STATEMENT EXECUTE FUNCTION note()",
    )
    .await;
    let log = Log::create(&database, 2).await;
    let batch = |base_sequence| {
        let mut batch =
            crate::records::Batch::new(wire::batch::ProducerFields { base_sequence, ..idempotent_fields() });
        batch.push(1_000, Some(b"text"), Some(b"v"), &[(b"h", Some(b"1")), (b"h", None), (b"\xff", None)]);
        batch.push(900, None, None, &[]);
        batch.push(1_100, Some(b"\xff\0"), Some(b""), &[]);
        batch.push(1_099, Some("\u{20ac}".as_bytes()), Some(&[0, 255]), &[]);
        batch.produced()
    };
    for number in 0..3 {
        let expected = at(4 * i64::from(number));
        assert_eq!(log.append(0, batch(4 * number)).await.unwrap(), expected);
        assert_eq!(log.on_another_gateway(&database).await.append(1, batch(4 * number)).await.unwrap(), expected);
    }
    assert_eq!(
        texts(&mut connection, "SELECT statement FROM how").await,
        ["COPY", "COPY", "WITH", "COPY", "WITH", "COPY"]
    );
    let of_partition = |partition: i32| {
        format!(
            "SELECT (to_jsonb(m) - '{{id,enqueued_at,partition_id}}'::text[])::text \
             FROM queue.metadata_queue_message m WHERE partition_id = {partition} ORDER BY enqueue_seq"
        )
    };
    let rows = texts(&mut connection, &of_partition(0)).await;
    assert_eq!((rows.len(), &rows), (12, &texts(&mut connection, &of_partition(1)).await));
}

fn idempotent_fields() -> wire::batch::ProducerFields {
    wire::batch::ProducerFields { producer_id: 7, producer_epoch: 0, base_sequence: 5, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_goes_away_and_comes_back() {
    let database = TestDatabase::on_private_server().await;
    let log = Log::create(&database, 1).await;
    log.append(0, plain(&["before"])).await.unwrap();
    database.server().stop(local_postgres::StopMode::Immediate).unwrap();
    let down = timeout(Duration::from_secs(30), log.append(0, plain(&["lost"]))).await.expect("an answer");
    assert!(matches!(&down, Err(AppendError::Store(error)) if error.is_retriable()), "{down:?}");
    database.server().restart().unwrap();
    let recovered = async {
        while let Err(error) = log.append(0, plain(&["after"])).await {
            assert!(matches!(&error, AppendError::Store(error) if error.is_retriable()), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), recovered).await.expect("recovers by itself");
    assert_eq!(log.values(0).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_writes_what_is_queued_and_refuses_the_rest() {
    let database = TestDatabase::new().await;
    let mut log = Log::create(&database, 1).await;
    let queued: Vec<_> = (0..50).map(|_| log.queue(0, plain(&["x"]))).collect();
    log.store.log.close_appends();
    let refused = log.append(0, plain(&["y"])).await;
    assert!(matches!(refused, Err(AppendError::ShuttingDown)), "{refused:?}");
    for reply in queued {
        reply.await.unwrap().unwrap();
    }
    while let Some(ended) = timeout(Duration::from_secs(10), log.writers.join_next()).await.expect("writers end") {
        ended.unwrap();
    }
    assert_eq!(log.values(0).await.len(), 50);
}

/// A writer that meets it ends in a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a writer is to survive this");
    }
}

#[tokio::test]
async fn a_writer_that_panics_gives_its_partitions_back_and_goes_on() {
    let database = TestDatabase::new().await;
    let mut log = Log::create(&database, 1).await;
    log.writers.shutdown().await;
    let bomb = log.store.log.append(Append {
        partition: log.key(0),
        batch: plain(&["a"]),
        log_append_time: false,
        reservation: Box::new(Bomb),
    });
    let behind = log.queue(0, plain(&["b"]));
    log.writers = log.store.log.spawn_writers();
    assert_eq!(bomb.await.unwrap().unwrap(), at(0));
    assert!(behind.await.is_err(), "nobody can tell its producer that it is stored");
    for offset in 2..10 {
        assert_eq!(log.append(0, plain(&["c"])).await.unwrap(), at(offset), "both are stored");
    }
}
