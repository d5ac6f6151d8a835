use std::time::{Duration, SystemTime};

use sqlx::PgConnection;
use store::{PartitionInterval, PartitionManager, Store, StoreError};
use testkit::TestDatabase;

use crate::{number, run, texts};

fn store_with(database: &TestDatabase, interval: PartitionInterval, premake: u32) -> Store {
    database.store_with(|config| {
        (config.postgres.time_partition_interval, config.postgres.time_partition_premake) = (interval, premake);
    })
}

/// A database whose message table has no time partitions and whose clock can be set, and a store.
async fn without_partitions(interval: PartitionInterval, premake: u32) -> (TestDatabase, Store, PgConnection) {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    for partition in partitions(&mut sql).await {
        run(&mut sql, &format!("DROP TABLE queue.{partition}")).await;
    }
    database.set_clock("pg_catalog.now()").await;
    let store = store_with(&database, interval, premake);
    (database, store, sql)
}

/// Names, without schema, in the order of time.
async fn partitions(sql: &mut PgConnection) -> Vec<String> {
    texts(
        sql,
        "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
          WHERE i.inhparent = 'queue.metadata_queue_message'::regclass ORDER BY pg_get_expr(c.relpartbound, c.oid)",
    )
    .await
}

async fn bounds(sql: &mut PgConnection) -> Vec<String> {
    run(sql, "SET TIME ZONE 'UTC'").await;
    texts(
        sql,
        "SELECT replace(replace(pg_get_expr(c.relpartbound, c.oid), 'FOR VALUES FROM ', ''), ':00:00+00', '') \
           FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
          WHERE i.inhparent = 'queue.metadata_queue_message'::regclass ORDER BY 1",
    )
    .await
}

/// A time, as Postgres reads it.
async fn at(sql: &mut PgConnection, time: &str) -> SystemTime {
    let seconds = number(sql, &format!("SELECT extract(epoch FROM '{time}'::timestamptz)::bigint")).await;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64)
}

fn named(suffixes: &[&str]) -> Vec<String> {
    suffixes.iter().map(|suffix| format!("metadata_queue_message_p{suffix}")).collect()
}

#[tokio::test]
async fn days_are_made_over_the_end_of_a_month_and_a_leap_day() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 3).await;
    database.set_clock("timestamptz '2028-02-28 23:59:59+00'").await;
    let made = store.schema.ensure_time_partitions().await.unwrap();
    let expected = named(&["20280228", "20280229", "20280301", "20280302"]);
    assert_eq!(made.created, expected);
    assert_eq!(partitions(&mut sql).await, expected);
    assert_eq!((made.manager, made.covers_now), (PartitionManager::Gateway, true));
    assert_eq!(made.covered_until, Some(at(&mut sql, "2028-03-03 00:00:00+00").await));

    assert!(store.schema.ensure_time_partitions().await.unwrap().created.is_empty());
    database.set_clock("timestamptz '2028-02-29 00:00:00+00'").await;
    assert_eq!(store.schema.ensure_time_partitions().await.unwrap().created, named(&["20280303"]));
}

#[tokio::test]
async fn months_and_weeks_and_hours_are_named_as_pg_partman_names_them() {
    for (interval, now, expected) in [
        (PartitionInterval::Month, "2027-12-31 12:00+00", ["20271201", "20280101"]),
        (PartitionInterval::Week, "2027-12-31 12:00+00", ["20271227", "20280103"]),
        (PartitionInterval::SixHours, "2027-12-31 19:00+00", ["20271231_180000", "20280101"]),
        (PartitionInterval::Hour, "2027-12-31 22:10+00", ["20271231_220000", "20271231_230000"]),
    ] {
        let (database, store, _sql) = without_partitions(interval, 1).await;
        database.set_clock(&format!("timestamptz '{now}'")).await;
        assert_eq!(store.schema.ensure_time_partitions().await.unwrap().created, named(&expected), "{interval}");
    }
}

#[tokio::test]
async fn bounds_are_utc_whatever_the_time_zone_of_the_server_and_its_summer_time() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 2).await;
    let name: String = texts(&mut sql, "SELECT current_database()::text").await.remove(0);
    run(&mut sql, &format!("ALTER DATABASE {name} SET timezone = 'America/New_York'")).await;
    // The clocks go forward there on the 14th at 02:00, which is four hours after this.
    database.set_clock("timestamptz '2027-03-13 22:00 America/New_York'").await;
    store.schema.ensure_time_partitions().await.unwrap();
    let expected = [
        "('2027-03-14 00') TO ('2027-03-15 00')",
        "('2027-03-15 00') TO ('2027-03-16 00')",
        "('2027-03-16 00') TO ('2027-03-17 00')",
    ];
    assert_eq!(bounds(&mut sql).await, expected);
    assert!(store.schema.ensure_time_partitions().await.unwrap().created.is_empty());
}

#[tokio::test]
async fn partitions_of_others_are_never_overlapped() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 4).await;
    for (name, from, to) in [
        ("old", "MINVALUE", "'2027-05-01 06:00+00'"),
        ("odd", "'2027-05-02 10:30+00'", "'2027-05-03 05:00+00'"),
        ("week", "'2027-05-04 00:00+00'", "'2027-05-05 00:00+00'"),
    ] {
        run(
            &mut sql,
            &format!(
                "CREATE TABLE queue.{name} PARTITION OF queue.metadata_queue_message FOR VALUES FROM ({from}) TO ({to})"
            ),
        )
        .await;
    }
    // Not a partition, but it has the name of one.
    run(&mut sql, "CREATE TABLE queue.metadata_queue_message_p20270505 ()").await;
    database.set_clock("timestamptz '2027-05-01 03:00+00'").await;
    let made = store.schema.ensure_time_partitions().await.unwrap();
    assert_eq!(made.created, named(&["20270501_060000", "20270502", "20270503_050000", "20270505_2"]));
    assert_eq!(made.covered_until, Some(at(&mut sql, "2027-05-06 00:00+00").await));
}

#[tokio::test]
async fn a_change_of_the_interval_goes_on_from_what_is_there() {
    let (database, daily, _sql) = without_partitions(PartitionInterval::Day, 2).await;
    database.set_clock("timestamptz '2027-05-27 03:00+00'").await;
    daily.schema.ensure_time_partitions().await.unwrap();
    let monthly = store_with(&database, PartitionInterval::Month, 1);
    let made = monthly.schema.ensure_time_partitions().await.unwrap();
    assert_eq!(made.created, named(&["20270501", "20270530", "20270601"]));
    database.set_clock("timestamptz '2027-06-30 23:00+00'").await;
    assert_eq!(daily.schema.ensure_time_partitions().await.unwrap().created, named(&["20270701", "20270702"]));
}

#[tokio::test]
async fn a_table_that_pg_partman_manages_is_left_alone() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 4).await;
    database.set_clock("timestamptz '2027-05-01 03:00+00'").await;
    // The extension's configuration table; another table's row does not concern us.
    run(&mut sql, "CREATE SCHEMA partman; CREATE TABLE partman.part_config (parent_table text PRIMARY KEY)").await;
    run(&mut sql, "INSERT INTO partman.part_config VALUES ('public.other')").await;
    run(&mut sql, "INSERT INTO partman.part_config VALUES ('queue.metadata_queue_message')").await;
    let found = store.schema.ensure_time_partitions().await.unwrap();
    assert_eq!((found.manager, found.covers_now), (PartitionManager::PgPartman, false));
    assert_eq!((found.created.len(), found.covered_until), (0, None));
    assert!(partitions(&mut sql).await.is_empty());

    run(&mut sql, "DELETE FROM partman.part_config WHERE parent_table LIKE 'queue.%'").await;
    assert_eq!(store.schema.ensure_time_partitions().await.unwrap().created.len(), 5);
}

#[tokio::test]
async fn maintenance_that_was_away_for_months_heals_what_it_finds() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 1).await;
    database.set_clock("timestamptz '2026-01-01 00:00+00'").await;
    store.schema.ensure_time_partitions().await.unwrap();
    let insert = "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
                  VALUES (1, 0, '', 1, '')";
    let error = StoreError::from(sqlx::raw_sql(insert).execute(&mut sql).await.unwrap_err());
    assert!(matches!(error, StoreError::NoTimePartition(_)) && error.is_retriable(), "{error}");
    database.set_clock("pg_catalog.now()").await;
    assert!(store.schema.ensure_time_partitions().await.unwrap().covers_now);
    run(&mut sql, insert).await;
}

#[tokio::test]
async fn rows_in_a_default_partition_cost_only_their_own_interval() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 2).await;
    run(
        &mut sql,
        "CREATE TABLE queue.rest PARTITION OF queue.metadata_queue_message DEFAULT; \
         INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload, enqueued_at) \
         VALUES (1, 0, '', 1, '', '2027-05-01 01:00+00')",
    )
    .await;
    database.set_clock("timestamptz '2027-05-01 03:00+00'").await;
    let found = store.schema.ensure_time_partitions().await.unwrap();
    assert_eq!(found.created, named(&["20270502", "20270503"]));
    assert!(found.covers_now, "the default partition takes them");
}

#[tokio::test]
async fn gateways_that_make_the_same_partitions_at_once_do_not_disturb_each_other() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Hour, 10).await;
    let stores: Vec<Store> = (0..6).map(|_| Store::connect(store.config().clone()).unwrap()).collect();
    database.set_clock("timestamptz '2027-05-01 03:00+00'").await;
    let results = futures::future::join_all(stores.iter().map(|store| store.schema.ensure_time_partitions())).await;
    let made: usize = results.into_iter().map(|result| result.unwrap().created.len()).sum();
    assert_eq!(made, 11);
    assert_eq!(partitions(&mut sql).await.len(), 11);
    drop(database);
}

#[tokio::test]
async fn a_long_reader_and_a_writer_in_flight_do_not_stop_maintenance() {
    let (database, store, mut sql) = without_partitions(PartitionInterval::Day, 1).await;
    store.schema.ensure_time_partitions().await.unwrap();
    let mut reader = database.connection().await;
    run(&mut reader, "BEGIN; SELECT count(*) FROM queue.metadata_queue_message").await;
    run(
        &mut sql,
        "BEGIN; INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
         VALUES (1, 0, '', 1, '')",
    )
    .await;
    database.set_clock("pg_catalog.now() + interval '1 day'").await;
    let made = tokio::time::timeout(Duration::from_secs(5), store.schema.ensure_time_partitions()).await;
    assert_eq!(made.expect("waits for nobody").unwrap().created.len(), 1);
}

#[tokio::test]
async fn a_new_partition_has_all_that_the_others_have() {
    let (_database, store, mut sql) = without_partitions(PartitionInterval::Day, 1).await;
    store.schema.ensure_time_partitions().await.unwrap();
    let indexes = "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'metadata_queue_message_p%'";
    let of_parent = "SELECT count(*) FROM pg_indexes WHERE tablename = 'metadata_queue_message'";
    assert_eq!(number(&mut sql, indexes).await, 2 * number(&mut sql, of_parent).await);
    run(
        &mut sql,
        "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
         VALUES (1, 0, '', 1, 'four')",
    )
    .await;
    let row = "SELECT payload_bytes + priority FROM queue.metadata_queue_message WHERE id IS NOT NULL";
    assert_eq!(number(&mut sql, row).await, 4 + 5);
}
