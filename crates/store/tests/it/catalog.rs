use std::{collections::BTreeMap, sync::Arc, time::Duration};

use store::{AppendError, NewTopic, SchemaProfile, Store, StoreError, Topic, TopicRef};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::{
    ADVISORY_LOCKS, number,
    records::{Log, plain},
    run,
};

fn new_topic(name: &str, partition_count: i32) -> NewTopic {
    let configs = BTreeMap::from([("retention.ms".to_owned(), "1000".to_owned())]);
    NewTopic { name: name.to_owned(), partition_count, retention_max_age_seconds: 1, configs }
}

/// With the short time to live that keeps tests quick.
fn store_with_ttl(database: &TestDatabase, catalog_ttl: Duration) -> Store {
    database.store_with(|config| config.catalog_ttl = catalog_ttl)
}

const INSERT_TOPIC: &str = "INSERT INTO queue.metadata_queue_topic (topic_name, partition_count, \
     retention_max_age_seconds, max_rows_per_topic, max_total_payload_bytes) VALUES ";

async fn by_id(store: &Store, topic_id: Uuid) -> Option<Arc<Topic>> {
    store.catalog.find(&[TopicRef::Id(topic_id)]).await.unwrap().pop().flatten()
}

#[tokio::test]
async fn a_created_topic_is_found_by_name_and_by_id() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let created = store.catalog.create_topic(&new_topic("orders", 7)).await.unwrap();
    assert_eq!((created.name.as_str(), created.partition_count), ("orders", 7));
    assert_eq!(created.configs["retention.ms"], "1000");
    assert_eq!(store.catalog.topic("orders").await.unwrap(), Some(created.clone()));
    assert_eq!(by_id(store, created.topic_id).await, Some(created.clone()));
    let other = Store::connect(database.config()).unwrap();
    assert_eq!(by_id(&other, created.topic_id).await, Some(created.clone()));
    assert_eq!(other.catalog.all_topics().await.unwrap(), [created]);
    assert_eq!(store.catalog.topic("none").await.unwrap(), None);
    assert_eq!(by_id(store, Uuid::new_v4()).await, None);
}

#[tokio::test]
async fn a_topic_is_created_once_and_within_bounds() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let creating = (0..8).map(|_| async { store.catalog.create_topic(&new_topic("one", 1)).await });
    let results = futures::future::join_all(creating).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error, StoreError::AlreadyExists(_)), "{error}");
    }
    for count in [0, -1, 4097] {
        let error = store.catalog.create_topic(&new_topic("bad", count)).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidConfig(_)), "{error}");
    }
    assert_eq!(store.catalog.create_topic(&new_topic("most", 4096)).await.unwrap().partition_count, 4096);
}

#[tokio::test]
async fn a_topic_made_changed_and_deleted_by_sql_is_seen_in_time() {
    let database = TestDatabase::new().await;
    let ttl = Duration::from_millis(200);
    let store = store_with_ttl(&database, ttl);
    let mut sql = database.connection().await;
    assert_eq!(store.catalog.topic("by_sql").await.unwrap(), None);
    run(&mut sql, &format!("{INSERT_TOPIC} ('by_sql', 2, 0, 0, 0)")).await;
    let topic = store.catalog.topic("by_sql").await.unwrap().expect("unknown names are asked for at once");
    assert_eq!((topic.partition_count, topic.configs.len()), (2, 0));

    // As pgQueue's upsert lets it grow.
    run(
        &mut sql,
        &format!(
            "{INSERT_TOPIC} ('by_sql', 5, 9, 0, 0) ON CONFLICT (topic_name) DO UPDATE SET \
             partition_count = greatest(excluded.partition_count, metadata_queue_topic.partition_count)"
        ),
    )
    .await;
    tokio::time::sleep(ttl).await;
    assert_eq!(store.catalog.topic("by_sql").await.unwrap().unwrap().partition_count, 5);

    run(&mut sql, "UPDATE queue.metadata_queue_topic SET kafka_config = '{\"a\": 5, \"b\": null}'").await;
    tokio::time::sleep(ttl).await;
    let configs = store.catalog.topic("by_sql").await.unwrap().unwrap().configs.clone();
    assert_eq!(configs, BTreeMap::from([("a".to_owned(), "5".to_owned())]));

    run(&mut sql, "DELETE FROM queue.metadata_queue_topic").await;
    tokio::time::sleep(ttl).await;
    assert_eq!(store.catalog.topic("by_sql").await.unwrap(), None);
    assert_eq!(by_id(&store, topic.topic_id).await, None);
}

#[tokio::test]
async fn a_name_that_was_given_again_is_another_topic() {
    let database = TestDatabase::new().await;
    let (one, other) = (database.store(), store_with_ttl(&database, Duration::ZERO));
    let first = one.catalog.create_topic(&new_topic("again", 1)).await.unwrap();
    assert_eq!(other.catalog.topic("again").await.unwrap().unwrap().topic_id, first.topic_id);
    assert!(one.delete_topic("again").await.unwrap());
    let second = one.catalog.create_topic(&new_topic("again", 1)).await.unwrap();
    assert!(second.id > first.id && second.topic_id != first.topic_id);
    assert_eq!(other.catalog.topic("again").await.unwrap().unwrap().topic_id, second.topic_id);
    assert_eq!(by_id(&other, first.topic_id).await, None);
    assert_eq!(by_id(one, first.topic_id).await, None);
}

#[tokio::test]
async fn known_topics_are_not_asked_for_again_within_their_time() {
    let database = TestDatabase::new().await;
    let store = store_with_ttl(&database, Duration::from_secs(60));
    store.catalog.create_topic(&new_topic("known", 1)).await.unwrap();
    run(&mut database.connection().await, "DELETE FROM queue.metadata_queue_topic").await;
    assert!(store.catalog.topic("known").await.unwrap().is_some());
    let found = store.catalog.topics(&["known", "unknown", "known"]).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
}

#[tokio::test]
async fn names_and_ids_are_asked_for_together() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let one = store.catalog.create_topic(&new_topic("one", 1)).await.unwrap();
    let other = store.catalog.create_topic(&new_topic("other", 1)).await.unwrap();
    let fresh = Store::connect(database.config()).unwrap();
    let wanted = [
        TopicRef::Id(other.topic_id),
        TopicRef::Name("one"),
        TopicRef::Id(Uuid::new_v4()),
        TopicRef::Name("none"),
        TopicRef::Name("other"),
        TopicRef::Id(one.topic_id),
    ];
    let expected = [Some(other.clone()), Some(one.clone()), None, None, Some(other), Some(one)];
    assert_eq!(fresh.catalog.find(&wanted).await.unwrap(), expected);
    assert_eq!(fresh.catalog.find(&wanted).await.unwrap(), expected, "and once more, now that they are known");
}

#[tokio::test]
async fn many_topics_in_use_are_asked_for_together() {
    const TOPICS: usize = 200;
    let database = TestDatabase::new().await;
    // Longer than a busy machine takes for the last loop.
    let time_to_live = Duration::from_secs(3);
    let store = store_with_ttl(&database, time_to_live);
    for number in 0..TOPICS {
        store.catalog.create_topic(&new_topic(&format!("topic-{number}"), 1)).await.unwrap();
    }
    let ask_for_each = async || {
        for number in 0..TOPICS {
            store.catalog.topic(&format!("topic-{number}")).await.unwrap().unwrap();
        }
    };
    ask_for_each().await;
    tokio::time::sleep(time_to_live).await;
    // The topics become other ones, so that what is seen tells when it was asked for.
    let mut sql = database.connection().await;
    run(&mut sql, "UPDATE queue.metadata_queue_topic SET partition_count = 2").await;
    assert_eq!(store.catalog.topic("topic-0").await.unwrap().unwrap().partition_count, 2);
    run(&mut sql, "UPDATE queue.metadata_queue_topic SET partition_count = 3").await;
    for number in 0..TOPICS {
        let seen = store.catalog.topic(&format!("topic-{number}")).await.unwrap().unwrap();
        assert_eq!(seen.partition_count, 2, "topic-{number} was asked for with topic-0");
    }
}

#[tokio::test]
async fn a_deleted_topic_leaves_nothing_behind() {
    for profile in [SchemaProfile::Lean, SchemaProfile::Datahub] {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let gone = store.catalog.create_topic(&new_topic("gone", 3)).await.unwrap();
        let kept = store.catalog.create_topic(&new_topic("kept", 1)).await.unwrap();
        let mut sql = database.connection().await;
        for topic in [&gone, &kept] {
            fill_topic(&mut sql, topic.id).await;
        }
        assert!(store.delete_topic("gone").await.unwrap());
        assert!(!store.delete_topic("gone").await.unwrap());
        assert_eq!(store.catalog.topic("gone").await.unwrap(), None);
        for table in ["message", "consumer_offset", "consumer_registration", "kafka_partition"] {
            let count = format!("SELECT count(*) FROM queue.metadata_queue_{table} WHERE topic_id = ");
            assert_eq!(number(&mut sql, &format!("{count} {}", gone.id)).await, 0, "{table}");
            assert!(number(&mut sql, &format!("{count} {}", kept.id)).await > 0, "{table}");
        }
        let leases = number(&mut sql, "SELECT count(*) FROM queue.metadata_queue_message_group_lease");
        assert_eq!(leases.await, 1, "{profile}");
        assert_eq!(number(&mut sql, ADVISORY_LOCKS).await, 0);
    }
}

/// Two messages, one of them leased, and one row in each table about the topic.
async fn fill_topic(sql: &mut sqlx::PgConnection, id: i64) {
    run(
        sql,
        &format!(
            "SET search_path TO queue; \
             INSERT INTO metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
             VALUES ({id}, 0, 'a', 1, ''), ({id}, 0, 'b', 2, ''); \
             INSERT INTO metadata_queue_message_group_lease \
               (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
             SELECT id, enqueued_at, 'g', 'o', now() FROM metadata_queue_message \
              WHERE topic_id = {id} AND enqueue_seq = 1; \
             INSERT INTO metadata_queue_consumer_offset (consumer_group, topic_id, partition_id) VALUES ('g', {id}, 0); \
             INSERT INTO metadata_queue_consumer_registration (consumer_group, topic_id) VALUES ('g', {id}); \
             INSERT INTO metadata_queue_kafka_partition (topic_id, partition_id) VALUES ({id}, 0);"
        ),
    )
    .await;
}

#[tokio::test]
async fn a_deletion_waits_for_an_append_in_flight_and_takes_its_rows_too() {
    for profile in [SchemaProfile::Lean, SchemaProfile::Datahub] {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let topic = store.catalog.create_topic(&new_topic("busy", 2)).await.unwrap();
        let mut writer = database.connection().await;
        let lock = format!("SELECT pg_advisory_xact_lock(queue.metadata_queue_kafka_lock_key({}, 1))", topic.id);
        run(&mut writer, &format!("BEGIN; {lock}")).await;
        let deleting = tokio::spawn({
            let store = store.clone();
            async move { store.delete_topic("busy").await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!deleting.is_finished());
        // In the datahub profile this looks at the topic's row, which the deletion has locked.
        let insert = "INSERT INTO queue.metadata_queue_message \
             (topic_id, partition_id, routing_key, enqueue_seq, payload) VALUES";
        run(&mut writer, &format!("{insert} ({}, 1, 'late', 1, ''); COMMIT", topic.id)).await;
        assert!(deleting.await.unwrap().unwrap());
        let left = number(&mut writer, "SELECT count(*) FROM queue.metadata_queue_message").await;
        assert_eq!(left, 0, "{profile}");
    }
}

#[tokio::test]
async fn the_lock_key_is_pgqueues() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    // hashlib.sha256(b"1:0").digest()[:8], big-endian, modulo 2**62; and for (12345, 678).
    for (topic, partition, key) in LOCK_KEYS {
        let call = format!("SELECT queue.metadata_queue_kafka_lock_key({topic}, {partition})");
        assert_eq!(number(&mut sql, &call).await, key);
    }
}

const LOCK_KEYS: [(i64, i32, i64); 3] =
    [(1, 0, 2767566679685037052), (12345, 678, 498520646764997249), (9007199254740993, 4095, 1149953811323156756)];

#[tokio::test]
async fn the_cluster_id_is_one_for_all_gateways_and_looks_like_kafkas() {
    let database = TestDatabase::new().await;
    let other = Store::connect(database.config()).unwrap();
    let id = database.store().cluster.cluster_id().await.unwrap();
    assert_eq!(other.cluster.cluster_id().await.unwrap(), id);
    assert_eq!(id.len(), 22);
    assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') && !id.starts_with('-'));
    let elsewhere = TestDatabase::with_profile(SchemaProfile::Datahub).await;
    assert_ne!(elsewhere.store().cluster.cluster_id().await.unwrap(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_to_a_topic_that_another_gateway_deleted_is_refused() {
    for profile in [SchemaProfile::Lean, SchemaProfile::Datahub] {
        let database = TestDatabase::with_profile(profile).await;
        let log = Log::create(&database, 1).await;
        log.append(0, plain(&["x"])).await.unwrap();
        let other = Store::connect(database.config()).unwrap();
        assert!(other.delete_topic(&log.name).await.unwrap());
        let late = log.append(0, plain(&["y"])).await;
        assert!(matches!(late, Err(AppendError::UnknownPartition)), "{late:?}");
        let mut sql = database.connection().await;
        for table in ["message", "kafka_partition"] {
            let count = format!("SELECT count(*) FROM queue.metadata_queue_{table}");
            assert_eq!(number(&mut sql, &count).await, 0, "{table}");
        }
    }
}
