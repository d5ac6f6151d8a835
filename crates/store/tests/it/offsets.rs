use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use sqlx::PgConnection;
use store::{
    Committed, LiveGroup, NewOffset, NewTopic, OffsetCommit, OffsetQuery, PartitionKey, Registration, SlotLease, Store,
    StoredGroup, StoredOffset, StuckAhead, Topic,
};
use testkit::TestDatabase;

use crate::{
    number,
    pgqueue::{PROFILES, Worker, enqueue, leases, seqs},
    run,
};

pub async fn create(store: &Store, name: &str, partition_count: i32) -> Arc<Topic> {
    let new =
        NewTopic { name: name.to_owned(), partition_count, retention_max_age_seconds: 0, configs: BTreeMap::new() };
    store.catalog.create_topic(&new).await.unwrap()
}

fn at(offset: i64) -> NewOffset {
    NewOffset { offset, ..NewOffset::default() }
}

fn stored(previous: Option<i64>) -> Committed {
    Committed::Stored { previous }
}

pub async fn commit(store: &Store, group: &str, partition: PartitionKey, new: NewOffset) -> Committed {
    let offsets = BTreeMap::from([(partition, new)]);
    let commit = OffsetCommit { group, offsets: &offsets, slot: None };
    store.groups.commit_offsets(&commit).await.unwrap().unwrap()[&partition]
}

async fn all(store: &Store, group: &str) -> Vec<StoredOffset> {
    store.groups.fetch_offsets(&[OffsetQuery { group, partitions: None }]).await.unwrap()
}

async fn only(store: &Store, group: &str) -> StoredOffset {
    let mut offsets = all(store, group).await;
    assert_eq!(offsets.len(), 1, "{offsets:?}");
    offsets.remove(0)
}

/// Where the row of the only offset is.
async fn row_version(sql: &mut PgConnection) -> String {
    crate::texts(sql, "SELECT ctid::text FROM queue.metadata_queue_consumer_offset").await.remove(0)
}

#[tokio::test]
async fn many_partitions_are_committed_at_once_and_found_again() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let (one, two) = (create(store, "one", 2).await, create(store, "two", 1).await);
        let full = NewOffset { offset: 7, leader_epoch: Some(3), metadata: "ü {}".to_owned(), expires_after: None };
        let key = PartitionKey::new;
        let offsets = BTreeMap::from([
            (key(one.id, 0), full.clone()),
            (key(one.id, 1), at(0)),
            (key(one.id, 2), at(1)),
            (key(one.id, -1), at(1)),
            (key(two.id, 0), at(i64::MAX)),
            (key(two.id + 1, 0), at(1)),
            (key(two.id, 5), NewOffset { metadata: "a\0b".to_owned(), ..at(1) }),
        ]);
        let commit = OffsetCommit { group: "g", offsets: &offsets, slot: None };
        let results = store.groups.commit_offsets(&commit).await.unwrap().unwrap();
        let expected = BTreeMap::from([
            (key(one.id, 0), stored(None)),
            (key(one.id, 1), stored(None)),
            (key(one.id, 2), Committed::UnknownPartition),
            (key(one.id, -1), Committed::UnknownPartition),
            (key(two.id, 0), stored(None)),
            (key(two.id + 1, 0), Committed::UnknownPartition),
            (key(two.id, 5), Committed::InvalidMetadata),
        ]);
        assert_eq!(results, expected);
        self::commit(store, "other", key(two.id, 0), at(5)).await;

        // Another gateway, which remembers nothing.
        let other = Store::connect(database.config()).unwrap();
        let found = all(&other, "g").await;
        let short: Vec<_> = found.iter().map(|o| (o.topic.as_str(), o.partition.partition_id, o.offset)).collect();
        assert_eq!(short, [("one", 0, 7), ("one", 1, 0), ("two", 0, i64::MAX)]);
        assert_eq!((found[0].leader_epoch, found[0].metadata.as_str()), (Some(3), "ü {}"));
        assert_eq!((found[1].leader_epoch, found[1].metadata.as_str()), (None, ""));
        assert!(found[0].committed_at_ms.unwrap() > 1_600_000_000_000);

        let named = [key(two.id, 0), key(one.id, 1), key(one.id, 2)];
        let queries = [
            OffsetQuery { group: "g", partitions: Some(&named) },
            OffsetQuery { group: "other", partitions: None },
            OffsetQuery { group: "none", partitions: None },
            OffsetQuery { group: "none", partitions: Some(&named) },
        ];
        let found = other.groups.fetch_offsets(&queries).await.unwrap();
        let short: Vec<_> = found.iter().map(|o| (o.group.as_str(), o.partition, o.offset)).collect();
        assert_eq!(short, [("g", named[1], 0), ("g", named[0], i64::MAX), ("other", named[0], 5)]);
        assert_eq!(other.groups.groups_with_offsets().await.unwrap(), ["g", "other"]);
        assert!(store.groups.fetch_offsets(&[]).await.unwrap().is_empty());
        let nothing = OffsetCommit { group: "g", offsets: &BTreeMap::new(), slot: None };
        assert_eq!(store.groups.commit_offsets(&nothing).await.unwrap(), Some(BTreeMap::new()));
    }
}

#[tokio::test]
async fn an_unchanged_offset_is_not_written_again_until_it_is_old() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    assert_eq!(commit(store, "g", partition, at(5)).await, stored(None));
    let first = row_version(&mut sql).await;
    assert_eq!(commit(store, "g", partition, at(5)).await, stored(Some(5)));
    assert_eq!(row_version(&mut sql).await, first);
    let table = "queue.metadata_queue_consumer_offset";
    run(&mut sql, &format!("UPDATE {table} SET kafka_committed_at = now() - interval '6 minutes'")).await;
    let aged = row_version(&mut sql).await;
    commit(store, "g", partition, at(5)).await;
    assert_ne!(row_version(&mut sql).await, aged);
    for change in
        [NewOffset { metadata: "m".to_owned(), ..at(5) }, NewOffset { leader_epoch: Some(1), ..at(5) }, at(6), at(4)]
    {
        let before = row_version(&mut sql).await;
        commit(store, "g", partition, change).await;
        assert_ne!(row_version(&mut sql).await, before);
    }
}

#[tokio::test]
async fn commits_need_no_index_entries() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    for offset in 0..2000 {
        commit(store, "g", partition, at(offset)).await;
    }
    // Two indexes of the smallest size. How far the table grows depends on the oldest transaction of
    // the whole server, other tests' included: until that ends no page can be pruned.
    let mut sql = database.connection().await;
    let indexes = number(&mut sql, "SELECT pg_indexes_size('queue.metadata_queue_consumer_offset')").await;
    assert_eq!(indexes, 2 * 16384);
}

#[tokio::test]
async fn rows_of_pgqueue_clients_count() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    let insert = "INSERT INTO queue.metadata_queue_consumer_offset (consumer_group, topic_id, partition_id";
    run(&mut sql, &format!("{insert}) VALUES ('g', {}, 0)", partition.topic_id)).await;
    let default = only(store, "g").await;
    assert_eq!((default.offset, default.metadata.as_str(), default.leader_epoch), (0, "", None));
    assert_eq!(default.committed_at_ms, None);

    // What Kafka knew of its offset is void when a worker has moved on.
    let full = NewOffset { offset: 2, leader_epoch: Some(9), metadata: "of 2".to_owned(), expires_after: None };
    assert_eq!(commit(store, "g", partition, full).await, stored(Some(0)));
    enqueue(&mut sql, partition, 1, &[5, 5, 5]).await;
    let mut worker = Worker::new(&database, "g").await;
    let received = worker.receive(partition, 60.0).await;
    assert_eq!(seqs(&received), [3]);
    worker.ack(partition, &received).await;
    let moved = only(store, "g").await;
    assert_eq!((moved.offset, moved.metadata.as_str(), moved.leader_epoch), (3, "", None));
    // The same number again from Kafka is a commit of its own.
    let again = NewOffset { metadata: "of 3".to_owned(), ..at(3) };
    commit(store, "g", partition, again).await;
    assert_eq!(only(store, "g").await.metadata, "of 3");
}

#[tokio::test]
async fn acked_leases_go_with_a_commit_in_both_directions() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let topic = create(store, "t", 2).await;
        let (partition, neighbour) = (PartitionKey::new(topic.id, 0), PartitionKey::new(topic.id, 1));
        let mut sql = database.connection().await;
        for partition in [partition, neighbour] {
            enqueue(&mut sql, partition, 1, &[5; 6]).await;
        }
        let mut worker = Worker::new(&database, "g").await;
        let mut other = Worker::new(&database, "other").await;
        let received = worker.receive(partition, 60.0).await;
        worker.ack(partition, &[&received[..2], &received[4..]].concat()).await; // 3 and 4 in flight
        assert_eq!(worker.offset(partition).await, 2);
        let received = worker.receive(neighbour, 60.0).await;
        worker.ack(neighbour, &received).await;
        let received = other.receive(partition, 60.0).await;
        other.ack(partition, &received).await;

        // Forward over 3, 4 and 5: only 5 is acknowledged in between, only 1 and 2 are before.
        assert_eq!(commit(store, "g", partition, at(5)).await, stored(Some(2)));
        let held = worker.lock_owner.clone();
        let owners = leases(&mut sql, "g").await;
        let of_partition: Vec<_> = owners[..5].iter().map(|(seq, owner)| (*seq, owner.as_str())).collect();
        assert_eq!(of_partition, [(1, "__acked__"), (2, "__acked__"), (3, &held), (4, &held), (6, "__acked__")]);
        assert_eq!(owners.len(), 5 + 6, "the other partition's stay");

        // Backward: everything above comes again, except what is still in flight.
        assert_eq!(commit(store, "g", partition, at(1)).await, stored(Some(5)));
        let left = leases(&mut sql, "g").await;
        assert_eq!(left[..3], [(1, "__acked__".to_owned()), (3, held.clone()), (4, held.clone())]);
        assert_eq!(leases(&mut sql, "other").await.len(), 6);
        let mut second = Worker::new(&database, "g").await;
        assert_eq!(seqs(&second.receive(partition, 60.0).await), [2], "3 is leased");
        run(
            &mut sql,
            "UPDATE queue.metadata_queue_message_group_lease SET locked_until = now() WHERE lock_owner <> '__acked__'",
        )
        .await;
        assert_eq!(seqs(&second.receive(partition, 60.0).await), [2, 3, 4, 5, 6]);
    }
}

#[tokio::test]
async fn a_commit_with_an_old_fencing_number_is_not_stored() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let instance = uuid::Uuid::new_v4();
    let slots = store.cluster.keep_slots(instance, Duration::from_secs(10)).await.unwrap();
    let slot = slots.of(instance).next();
    let offsets = BTreeMap::from([(partition, at(5))]);
    let commit = OffsetCommit { group: "g", offsets: &offsets, slot };
    assert_eq!(store.groups.commit_offsets(&commit).await.unwrap().unwrap()[&partition], stored(None));
    store.cluster.release_slots(instance, None).await.unwrap();
    let offsets = BTreeMap::from([(partition, at(6))]);
    let late = OffsetCommit { group: "g", offsets: &offsets, slot };
    assert_eq!(store.groups.commit_offsets(&late).await.unwrap(), None);
    assert_eq!(only(store, "g").await.offset, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_made_again_has_no_old_commits() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store().clone();
        let other = Store::connect(database.config()).unwrap();
        for round in 0..10 {
            let topic = create(&store, "again", 8).await;
            let committing = (0..4).map(|number| {
                let (store, id) = (store.clone(), topic.id);
                tokio::spawn(async move {
                    let group = format!("g{number}");
                    for offset in 0.. {
                        let offsets: BTreeMap<_, _> =
                            (0..8).map(|partition| (PartitionKey::new(id, partition), at(offset))).collect();
                        let commit = OffsetCommit { group: &group, offsets: &offsets, slot: None };
                        let results = store.groups.commit_offsets(&commit).await.unwrap().unwrap();
                        let registration = Registration { group: group.clone(), topic_id: id };
                        store.groups.heartbeat_registrations(&[registration], Duration::ZERO).await.unwrap();
                        if results.values().all(|result| *result == Committed::UnknownPartition) {
                            return;
                        }
                    }
                })
            });
            let committing: Vec<_> = committing.collect();
            tokio::time::sleep(Duration::from_millis(round * 5)).await;
            let by = if round % 2 == 0 { &store } else { &other };
            assert!(by.delete_topic("again").await.unwrap());
            create(&other, "again", 8).await;
            futures::future::try_join_all(committing).await.unwrap();
            let mut sql = database.connection().await;
            for table in ["consumer_offset", "consumer_registration"] {
                let count = number(&mut sql, &format!("SELECT count(*) FROM queue.metadata_queue_{table}")).await;
                assert_eq!(count, 0, "{table}, {profile}");
            }
            assert!(all(&store, "g0").await.is_empty());
            other.delete_topic("again").await.unwrap();
        }
    }
}

async fn save(store: &Store, group_id: &str, generation: i32, has_members: bool, slot: SlotLease) {
    let group = StoredGroup {
        group_id: group_id.to_owned(),
        generation,
        protocol_type: "consumer".to_owned(),
        has_members,
        state: Vec::new(),
    };
    assert!(store.groups.save_group(&group, slot).await.unwrap());
}

/// A group that has committed two hours ago for the topics "read" and "left".
struct Group {
    id: &'static str,
    /// In which slot, of which generation, and with members or without.
    stored: Option<(SlotLease, i32, bool)>,
    /// Generation and needed topics, as its gateway tells.
    live: Option<(i32, Option<&'static [&'static str]>)>,
    offsets_left: &'static [&'static str],
}

#[tokio::test]
async fn offsets_of_topics_that_no_member_needs_expire_by_their_commit() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topics = [create(store, "read", 1).await, create(store, "left", 1).await];
    let instance = uuid::Uuid::new_v4();
    let slots: Vec<SlotLease> =
        store.cluster.keep_slots(instance, Duration::from_secs(10)).await.unwrap().of(instance).collect();
    let (mine, others) = (slots[0], slots[1]);
    let (both, neither): (&[&str], &[&str]) = (&["left", "read"], &[]);
    let (read, members) = (Some(&["read"][..]), Some((mine, 3, true)));
    let group = |id, stored, live, offsets_left| Group { id, stored, live, offsets_left };
    let cases = [
        group("stable", members, Some((3, read)), &["read"]),
        group("reads what is not there", members, Some((3, Some(&["read", "nowhere"]))), &["read"]),
        group("reads what cannot be", members, Some((3, Some(&["read", "le\0ft"]))), &["read"]),
        group("reads nothing", members, Some((3, Some(&[]))), neither),
        group("nobody knows what it reads", members, Some((3, None)), both),
        group("has another generation by now", Some((mine, 4, true)), Some((3, read)), both),
        group("is not told of", members, None, both),
        group("is another gateway's", Some((others, 3, true)), Some((3, read)), both),
        group("empty", Some((mine, 3, false)), None, neither),
        group("empty at another gateway", Some((others, 3, false)), None, both),
        group("empty until somebody came", Some((mine, 3, false)), Some((3, None)), both),
        group("new", None, Some((0, None)), both),
        group("simple", None, None, neither),
        group("shared with a worker", members, Some((3, read)), both),
        group("was shared with a worker", members, Some((3, read)), &["read"]),
        group("has just left", members, Some((3, read)), both),
    ];
    let mut live = Vec::new();
    for case in &cases {
        for topic in &topics {
            commit(store, case.id, PartitionKey::new(topic.id, 0), at(1)).await;
        }
        if let Some((slot, generation, has_members)) = case.stored {
            save(store, case.id, generation, has_members, slot).await;
        }
        live.extend(case.live.map(|(generation, needed)| LiveGroup {
            group: case.id.to_owned(),
            generation,
            needed_topics: needed.map(|topics| topics.iter().map(|topic| (*topic).to_owned()).collect()),
        }));
    }
    let mut sql = database.connection().await;
    let two_hours_ago = "SET search_path TO queue; \
        UPDATE metadata_queue_consumer_offset SET kafka_committed_at = now() - interval '2 hours'; \
        UPDATE metadata_queue_kafka_group SET updated_at = now() - interval '2 hours'; \
        INSERT INTO metadata_queue_consumer_registration \
            (consumer_group, topic_id, last_heartbeat_at, kafka_heartbeat_at) \
          SELECT DISTINCT consumer_group, topic_id, \
            now() - CASE consumer_group WHEN 'was shared with a worker' THEN 120 WHEN 'has just left' THEN 2 ELSE 10 END \
              * interval '1 minute', \
            now() - CASE WHEN consumer_group LIKE '%shared%' THEN 130 WHEN consumer_group = 'has just left' THEN 2 \
              ELSE 10 END * interval '1 minute' \
          FROM metadata_queue_consumer_offset";
    run(&mut sql, two_hours_ago).await;
    let lost = SlotLease { fencing: others.fencing - 1, ..others };
    let hour = Duration::from_secs(3600);
    let expired: usize = cases.iter().map(|case| 2 - case.offsets_left.len()).sum();
    assert_eq!(store.groups.expire_offsets(hour, &[mine, lost], &live).await.unwrap(), expired as u64);
    for case in &cases {
        let left: BTreeSet<String> = all(store, case.id).await.into_iter().map(|offset| offset.topic).collect();
        assert!(left.iter().eq(case.offsets_left), "{}: {left:?}", case.id);
    }

    // A registration of the gateway goes after its offsets, a worker's stays.
    let retention = "UPDATE metadata_queue_consumer_registration \
        SET last_heartbeat_at = last_heartbeat_at - interval '1 hour', \
          kafka_heartbeat_at = kafka_heartbeat_at - interval '1 hour' WHERE consumer_group LIKE '%stable' \
            OR consumer_group LIKE '%shared%'";
    run(&mut sql, retention).await;
    store.groups.expire_offsets(hour, &[mine], &live).await.unwrap();
    let registered = "SELECT topic_name || ', ' || consumer_group FROM metadata_queue_consumer_registration \
        JOIN metadata_queue_topic t ON t.id = topic_id \
        WHERE consumer_group LIKE '%stable' OR consumer_group LIKE '%shared%' ORDER BY consumer_group, topic_name";
    let worker = ["left, shared with a worker", "read, shared with a worker", "read, stable"];
    let was_worker = ["left, was shared with a worker", "read, was shared with a worker"];
    assert_eq!(crate::texts(&mut sql, registered).await, [&worker[..], &was_worker[..]].concat());
}

#[tokio::test]
async fn offsets_expire_when_nothing_needs_them() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topic = create(store, "t", 1).await;
    let partition = PartitionKey::new(topic.id, 0);
    let mut sql = database.connection().await;
    for group in ["simple", "young", "members", "emptied", "worker", "moved", "explicit", "later"] {
        commit(store, group, partition, at(1)).await;
    }
    let explicit = |seconds| NewOffset { expires_after: Some(Duration::from_secs(seconds)), ..at(1) };
    commit(store, "explicit", partition, explicit(0)).await;
    commit(store, "later", partition, explicit(100_000)).await;
    let instance = uuid::Uuid::new_v4();
    let slot = store.cluster.keep_slots(instance, Duration::from_secs(10)).await.unwrap().of(instance).next().unwrap();
    for (group_id, has_members) in [("members", true), ("emptied", false)] {
        save(store, group_id, 1, has_members, slot).await;
    }
    Worker::new(&database, "worker").await.register(topic.id).await;
    let simple = Registration { group: "simple".to_owned(), topic_id: topic.id };
    let console = Registration { group: "console".to_owned(), topic_id: topic.id };
    store.groups.heartbeat_registrations(&[simple, console], Duration::ZERO).await.unwrap();
    run(
        &mut sql,
        "SET search_path TO queue; \
         INSERT INTO metadata_queue_consumer_offset (consumer_group, topic_id, partition_id) \
         SELECT 'pgqueue', id, 0 FROM metadata_queue_topic; \
         UPDATE metadata_queue_consumer_offset SET offset_value = 2 WHERE consumer_group = 'moved'; \
         UPDATE metadata_queue_consumer_offset SET kafka_committed_at = now() - interval '2 hours' \
          WHERE consumer_group <> 'young'; \
         UPDATE metadata_queue_consumer_registration SET last_heartbeat_at = kafka_heartbeat_at - interval '2 hours', \
           kafka_heartbeat_at = kafka_heartbeat_at - interval '2 hours' WHERE kafka_heartbeat_at IS NOT NULL",
    )
    .await;
    let hour = Duration::from_secs(3600);
    assert_eq!(store.groups.expire_offsets(3 * hour, &[slot], &[]).await.unwrap(), 1, "the one that said so itself");
    assert_eq!(store.groups.expire_offsets(hour, &[slot], &[]).await.unwrap(), 1);
    let left = ["emptied", "later", "members", "moved", "pgqueue", "worker", "young"];
    assert_eq!(store.groups.groups_with_offsets().await.unwrap(), left);
    let registered = "SELECT consumer_group FROM queue.metadata_queue_consumer_registration";
    assert_eq!(crate::texts(&mut sql, registered).await, ["worker"]);

    run(&mut sql, "UPDATE metadata_queue_kafka_group SET updated_at = now() - interval '2 hours'").await;
    assert_eq!(store.groups.expire_offsets(hour, &[slot], &[]).await.unwrap(), 1);
    assert!(!store.groups.groups_with_offsets().await.unwrap().contains(&"emptied".to_owned()));
}

#[tokio::test]
async fn deleted_offsets_take_acks_and_the_last_one_the_registration() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topic = create(store, "t", 2).await;
    let (first, second) = (PartitionKey::new(topic.id, 0), PartitionKey::new(topic.id, 1));
    let mut sql = database.connection().await;
    enqueue(&mut sql, first, 1, &[5, 5]).await;
    let mut worker = Worker::new(&database, "g").await;
    let received = worker.receive(first, 60.0).await;
    worker.ack(first, &received).await;
    commit(store, "g", second, at(3)).await;
    let registration = [Registration { group: "g".to_owned(), topic_id: topic.id }];
    store.groups.heartbeat_registrations(&registration, Duration::ZERO).await.unwrap();
    let registered = "SELECT count(*) FROM queue.metadata_queue_consumer_registration";

    assert_eq!(store.groups.delete_offsets("g", &[first, PartitionKey::new(topic.id, 9)]).await.unwrap(), [first]);
    assert_eq!(only(store, "g").await.partition, second);
    assert_eq!(number(&mut sql, registered).await, 1);
    assert!(leases(&mut sql, "g").await.is_empty());
    assert_eq!(seqs(&worker.receive(first, 60.0).await), [1, 2], "from the start");
    assert_eq!(store.groups.delete_offsets("g", &[first, second]).await.unwrap(), [second]);
    assert_eq!(number(&mut sql, registered).await, 0);
    assert!(store.groups.groups_with_offsets().await.unwrap().is_empty());
}

#[tokio::test]
async fn offsets_past_the_end_of_the_log_are_found() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (short, empty) = (create(store, "short", 2).await, create(store, "empty", 1).await);
    let mut sql = database.connection().await;
    enqueue(&mut sql, PartitionKey::new(short.id, 0), 1, &[5, 5, 5]).await;
    // All rows of this one are gone, but not its ledger.
    run(
        &mut sql,
        &format!(
            "INSERT INTO queue.metadata_queue_kafka_partition (topic_id, partition_id, next_seq) VALUES ({}, 1, 8)",
            short.id
        ),
    )
    .await;
    let offset = |id, partition, offset| (PartitionKey::new(id, partition), at(offset));
    for (group, offsets) in [
        ("fine", [offset(short.id, 0, 3), offset(short.id, 1, 7), offset(empty.id, 0, 0)]),
        ("stuck", [offset(short.id, 0, 5), offset(short.id, 1, 8), offset(empty.id, 0, 1)]),
    ] {
        let offsets = BTreeMap::from(offsets);
        store.groups.commit_offsets(&OffsetCommit { group, offsets: &offsets, slot: None }).await.unwrap();
    }
    let stuck = |topic: &Topic, partition, offset, distance| StuckAhead {
        group: "stuck".to_owned(),
        topic: topic.name.clone(),
        partition: PartitionKey::new(topic.id, partition),
        offset,
        distance,
    };
    let expected = [stuck(&empty, 0, 1, 1), stuck(&short, 0, 5, 2), stuck(&short, 1, 8, 1)];
    assert_eq!(store.groups.stuck_ahead().await.unwrap(), expected);
}
