use std::{collections::BTreeMap, time::Duration};

use sqlx::Connection;
use store::{DeletedGroup, NewOffset, OffsetCommit, PartitionKey, Registration, SlotLease, Store, StoredGroup};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::{
    number,
    offsets::create,
    pgqueue::{PROFILES, Worker, enqueue, leases, seqs},
    run,
};

const LEASE: Duration = Duration::from_secs(10);

fn group(id: &str, generation: i32) -> StoredGroup {
    StoredGroup {
        group_id: id.to_owned(),
        generation,
        protocol_type: "consumer".to_owned(),
        has_members: true,
        state: vec![0, 255, generation as u8],
    }
}

async fn take_all(store: &Store, instance: Uuid) -> Vec<SlotLease> {
    store.cluster.keep_slots(instance, LEASE).await.unwrap().of(instance).collect()
}

#[tokio::test]
async fn a_group_is_found_by_who_takes_its_slot() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let (one, two) = (database.store(), Store::connect(database.config()).unwrap());
        let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
        let slots = take_all(one, first).await;
        for (id, slot) in [("a", 3), ("b", 3), ("c", 4), ("d", 5)] {
            assert!(one.groups.save_group(&group(id, 1), slots[slot]).await.unwrap());
        }
        assert!(one.groups.save_group(&group("a", 2), slots[3]).await.unwrap());
        assert_eq!(one.groups.load_groups(&[3, 5]).await.unwrap(), [group("a", 2), group("b", 1), group("d", 1)]);

        one.cluster.release_slots(first, Some(&[3])).await.unwrap();
        assert!(!one.groups.save_group(&group("a", 3), slots[3]).await.unwrap(), "given up");
        let taken: Vec<SlotLease> = two.cluster.keep_slots(second, LEASE).await.unwrap().of(second).collect();
        assert_eq!(taken.len(), 1);
        assert_eq!(two.groups.load_groups(&[3]).await.unwrap(), [group("a", 2), group("b", 1)]);
        assert!(two.groups.save_group(&group("a", 3), taken[0]).await.unwrap());
        for stale in [group("a", 4), group("new", 1)] {
            assert!(!one.groups.save_group(&stale, slots[3]).await.unwrap());
        }
        assert_eq!(one.groups.delete_group_state("a", slots[3]).await.unwrap(), None);
        assert_eq!(one.groups.delete_group("a", slots[3]).await.unwrap(), None);
        assert_eq!(two.groups.load_groups(&[3]).await.unwrap(), [group("a", 3), group("b", 1)]);
        assert_eq!(two.groups.delete_group_state("a", taken[0]).await.unwrap(), Some(true));
        assert_eq!(two.groups.delete_group_state("a", taken[0]).await.unwrap(), Some(false));
        assert_eq!(two.groups.load_groups(&[3]).await.unwrap(), [group("b", 1)]);
    }
}

/// The statement of `save_group` in a transaction that does not end.
#[tokio::test]
async fn a_slot_is_not_taken_while_a_save_is_under_way() {
    let database = TestDatabase::new().await;
    let (one, two) = (database.store(), Store::connect(database.config()).unwrap());
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    let slots = take_all(one, first).await;
    let mut saving = database.connection().await;
    let mut transaction = saving.begin().await.unwrap();
    let lock = "SELECT slot FROM queue.metadata_queue_kafka_coordinator_slot WHERE slot = 7 AND fencing = 1 FOR SHARE";
    run(&mut transaction, lock).await;
    let mut sql = database.connection().await;
    let expire = "UPDATE queue.metadata_queue_kafka_coordinator_slot SET locked_until = now() WHERE slot <> 7";
    run(&mut sql, expire).await;
    assert_eq!(take_all(&two, second).await.len(), 63);
    transaction.rollback().await.unwrap();
    run(&mut sql, "UPDATE queue.metadata_queue_kafka_coordinator_slot SET locked_until = now() WHERE slot = 7").await;
    assert_eq!(take_all(&two, second).await.len(), 64);
    assert!(!one.groups.save_group(&group("g", 1), slots[7]).await.unwrap());
}

/// The other way round: a save that waits for a take-over sees its outcome.
#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_meets_a_take_over_is_refused() {
    let database = TestDatabase::new().await;
    let store = database.store().clone();
    let slots = take_all(&store, Uuid::new_v4()).await;
    let mut taking = database.connection().await;
    let mut transaction = taking.begin().await.unwrap();
    // The locks of `keep_slots`.
    let slot = "queue.metadata_queue_kafka_coordinator_slot";
    run(&mut transaction, &format!("SELECT FROM {slot} WHERE slot = 0 FOR UPDATE")).await;
    run(&mut transaction, &format!("UPDATE {slot} SET fencing = fencing + 1 WHERE slot = 0")).await;
    let saving = tokio::spawn({
        let store = store.clone();
        async move { store.groups.save_group(&group("g", 1), slots[0]).await }
    });
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let mut sql = database.connection().await;
    while number(&mut sql, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    transaction.commit().await.unwrap();
    assert!(!saving.await.unwrap().unwrap());
    assert!(store.groups.load_groups(&[0]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_deleted_group_leaves_nothing_but_what_others_hold() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let topic = create(store, "t", 2).await;
        let (acked, held) = (PartitionKey::new(topic.id, 0), PartitionKey::new(topic.id, 1));
        let mut sql = database.connection().await;
        for partition in [acked, held] {
            enqueue(&mut sql, partition, 1, &[5, 5, 5]).await;
        }
        let mut worker = Worker::new(&database, "g").await;
        let received = worker.receive(acked, 60.0).await;
        worker.ack(acked, &received).await;
        assert_eq!(worker.receive(held, 60.0).await.len(), 3);
        let offsets = BTreeMap::from([(held, NewOffset { offset: 1, ..NewOffset::default() })]);
        let commit = OffsetCommit { group: "g", offsets: &offsets, slot: None };
        store.groups.commit_offsets(&commit).await.unwrap();
        let registration = [Registration { group: "g".to_owned(), topic_id: topic.id }];
        store.groups.heartbeat_registrations(&registration, Duration::ZERO).await.unwrap();
        let instance = Uuid::new_v4();
        let slot = take_all(store, instance).await[0];
        store.groups.save_group(&group("g", 1), slot).await.unwrap();

        // On another gateway, which has never seen the group (B099).
        let other = Store::connect(database.config()).unwrap();
        let deleted = other.groups.delete_group("g", slot).await.unwrap();
        assert_eq!(deleted, Some(DeletedGroup { had_state: true, offsets: 2 }));
        assert_eq!(leases(&mut sql, "g").await.len(), 3, "{profile}");
        for table in ["consumer_offset", "consumer_registration", "kafka_group"] {
            assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM queue.metadata_queue_{table}")).await, 0);
        }
        assert_eq!(seqs(&worker.receive(acked, 60.0).await), [1, 2, 3], "from the start");
        let again = other.groups.delete_group("g", slot).await.unwrap();
        assert_eq!(again, Some(DeletedGroup { had_state: false, offsets: 0 }));
    }
}
