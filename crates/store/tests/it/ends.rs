//! An end of the log that was told once never falls, whoever deletes the rows there.

use store::{LogEnd, NewTopic, Offset, SchemaProfile};
use testkit::TestDatabase;

use crate::{
    number,
    records::{Log, plain},
    run,
};

async fn end(log: &Log, partition: i32) -> LogEnd {
    log.store.log.ends(&[log.key(partition)]).await.unwrap()[&log.key(partition)]
}

async fn offset_of_next(log: &Log, partition: i32) -> i64 {
    log.append(partition, plain(&["next"])).await.unwrap().base_offset.get()
}

/// Ten records in each of two partitions, of which the ledger knows nothing.
async fn with_ten_records(database: &TestDatabase) -> Log {
    let log = Log::create(database, 2).await;
    for partition in 0..2 {
        log.append(partition, plain(&["record"; 10])).await.unwrap();
    }
    let mut connection = log.store.acquire().await.unwrap();
    assert_eq!(number(&mut connection, "SELECT count(*) FROM queue.metadata_queue_kafka_partition").await, 0);
    log
}

#[tokio::test]
async fn deleting_the_last_rows_lowers_no_end_on_any_gateway() {
    let database = TestDatabase::new().await;
    let log = with_ten_records(&database).await;
    let mut connection = log.store.acquire().await.unwrap();
    run(&mut connection, "DELETE FROM queue.metadata_queue_message WHERE enqueue_seq > 5 AND partition_id = 0").await;
    run(&mut connection, "DELETE FROM queue.metadata_queue_message WHERE partition_id = 1").await;
    drop(connection);

    // It has never seen the rows, as after a restart.
    let other = log.on_another_gateway(&database).await;
    assert_eq!(end(&other, 0).await, LogEnd::new(Offset::ZERO, Offset::new(10)));
    assert_eq!(end(&other, 1).await, LogEnd::new(Offset::new(10), Offset::new(10)));
    assert_eq!((offset_of_next(&other, 0).await, offset_of_next(&other, 1).await), (10, 10));
    assert_eq!((end(&log, 0).await.high.get(), offset_of_next(&log, 1).await), (11, 11));
}

#[tokio::test]
async fn truncating_the_table_lowers_no_end() {
    let database = TestDatabase::new().await;
    let log = with_ten_records(&database).await;
    run(&mut log.store.acquire().await.unwrap(), "TRUNCATE queue.metadata_queue_message").await;
    let other = log.on_another_gateway(&database).await;
    assert_eq!(end(&other, 0).await, LogEnd::new(Offset::new(10), Offset::new(10)));
    assert_eq!(offset_of_next(&other, 1).await, 10);
}

#[tokio::test]
async fn an_end_that_postgres_has_lost_is_noted_before_it_is_told_again() {
    let database = TestDatabase::new().await;
    let log = with_ten_records(&database).await;
    assert_eq!(end(&log, 0).await.high, Offset::new(10));
    let mut connection = log.store.acquire().await.unwrap();
    // As after a failover to a standby that lacks the last transactions.
    run(&mut connection, "ALTER TABLE queue.metadata_queue_message DISABLE TRIGGER USER").await;
    run(&mut connection, "DELETE FROM queue.metadata_queue_message WHERE enqueue_seq > 5").await;
    drop(connection);
    assert_eq!(end(&log, 0).await.high, Offset::new(10));
    let other = log.on_another_gateway(&database).await;
    assert_eq!(end(&other, 0).await.high, Offset::new(10));
    assert_eq!(end(&other, 1).await.high, Offset::new(5), "no gateway that lives has told this one's end");
}

/// DataHub's schema deletes a topic's rows by a foreign key, when the topic is gone already.
#[tokio::test]
async fn a_topic_goes_with_its_rows_in_either_schema() {
    for profile in [SchemaProfile::Lean, SchemaProfile::Datahub] {
        let database = TestDatabase::with_profile(profile).await;
        let log = Log::create(&database, 1).await;
        log.append(0, plain(&["record"])).await.unwrap();
        let mut connection = log.store.acquire().await.unwrap();
        run(&mut connection, "DELETE FROM queue.metadata_queue_topic").await;
        run(&mut connection, "DELETE FROM queue.metadata_queue_message").await;
        assert_eq!(number(&mut connection, "SELECT count(*) FROM queue.metadata_queue_kafka_partition").await, 0);
        drop(connection);
        let new = NewTopic {
            name: "log".to_owned(),
            partition_count: 1,
            retention_max_age_seconds: 0,
            configs: Default::default(),
        };
        log.store.catalog.create_topic(&new).await.unwrap();
        assert!(log.store.delete_topic("log").await.unwrap(), "{profile}");
    }
}
