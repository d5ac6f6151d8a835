use std::time::Duration;

use store::Registration;
use testkit::TestDatabase;

use crate::{
    number,
    offsets::{commit, create},
    pgqueue::{PROFILES, Worker},
    run, texts,
};

fn registration(group: &str, topic_id: i64) -> Registration {
    Registration { group: group.to_owned(), topic_id }
}

const COUNT: &str = "SELECT count(*) FROM queue.metadata_queue_consumer_registration";

#[tokio::test]
async fn groups_are_registered_and_heartbeat_no_more_often_than_asked() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let (one, two) = (create(store, "one", 1).await, create(store, "two", 1).await);
        let mut sql = database.connection().await;
        let wanted = [
            registration("b", one.id),
            registration("a", two.id),
            registration("a", one.id),
            registration("a", one.id),
            registration("a", two.id + 7),
        ];
        let minute = Duration::from_secs(60);
        assert!(store.groups.heartbeat_registrations(&[], minute).await.unwrap().is_empty());
        assert!(store.groups.heartbeat_registrations(&wanted, minute).await.unwrap().is_empty());
        assert_eq!(number(&mut sql, COUNT).await, 3);
        let versions = "SELECT xmin::text FROM queue.metadata_queue_consumer_registration ORDER BY id";
        let before = texts(&mut sql, versions).await;
        store.groups.heartbeat_registrations(&wanted, minute).await.unwrap();
        assert_eq!(texts(&mut sql, versions).await, before);
        store.groups.heartbeat_registrations(&wanted, Duration::ZERO).await.unwrap();
        assert_ne!(texts(&mut sql, versions).await, before);
    }
}

#[tokio::test]
async fn a_registration_that_a_worker_uses_is_told_and_stays() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topic = create(store, "t", 1).await;
    let mut sql = database.connection().await;
    let both = [registration("kafka", topic.id), registration("shared", topic.id)];
    let mut worker = Worker::new(&database, "shared").await;
    worker.register(topic.id).await;
    assert_eq!(store.groups.heartbeat_registrations(&both, Duration::ZERO).await.unwrap(), both[1..]);
    assert!(
        store.groups.heartbeat_registrations(&both, Duration::ZERO).await.unwrap().is_empty(),
        "it was silent since"
    );
    worker.register(topic.id).await;
    assert_eq!(store.groups.unregister(&["kafka", "shared", "none"]).await.unwrap(), 1);
    assert_eq!(number(&mut sql, COUNT).await, 1);
    // A worker that ended long ago is not told of, and its registration stays: pgQueue's rule.
    run(
        &mut sql,
        "UPDATE queue.metadata_queue_consumer_registration SET last_heartbeat_at = now() - interval '1 hour', \
         kafka_heartbeat_at = NULL",
    )
    .await;
    assert_eq!(store.groups.unregister(&["shared"]).await.unwrap(), 0);
    assert!(store.groups.heartbeat_registrations(&both, Duration::ZERO).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_group_with_offsets_stays_registered() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (one, two) = (create(store, "one", 1).await, create(store, "two", 1).await);
    let both = [registration("g", one.id), registration("g", two.id)];
    store.groups.heartbeat_registrations(&both, Duration::ZERO).await.unwrap();
    commit(store, "g", store::PartitionKey::new(one.id, 0), Default::default()).await;
    assert_eq!(store.groups.unregister(&["g"]).await.unwrap(), 1);
    let left = "SELECT topic_id::text FROM queue.metadata_queue_consumer_registration";
    assert_eq!(texts(&mut database.connection().await, left).await, [one.id.to_string()]);
}
