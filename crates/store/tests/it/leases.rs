use std::{collections::BTreeMap, time::Duration};

use store::{Committed, NewOffset, OffsetCommit, PartitionHold, PartitionKey, SlotLease, Store};
use testkit::TestDatabase;

use crate::{
    number,
    offsets::create,
    pgqueue::{PROFILES, Worker, enqueue, leases, seqs},
    run, texts,
};

const TIMEOUT: Duration = Duration::from_secs(45);
const LEASE: &str = "queue.metadata_queue_message_group_lease";
const PARTITION_LEASE: &str = "queue.metadata_queue_kafka_partition_lease";

/// Leases of workers that are neither acknowledged nor over.
const IN_FLIGHT: &str = "SELECT count(*) FROM queue.metadata_queue_message_group_lease \
    WHERE lock_owner <> '__acked__' AND locked_until > now()";
const RECEIVING: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND xact_start <";

fn owned(partition: PartitionKey) -> PartitionHold<'static> {
    PartitionHold { group: "g", member_id: "m", partition, duration: TIMEOUT }
}

/// As the gateway that has the slots.
async fn release(store: &Store, group: &str) -> u64 {
    let instance = uuid::Uuid::from_u128(1);
    let slots = store.cluster.keep_slots(instance, TIMEOUT).await.unwrap();
    let slot = slots.of(instance).next().unwrap();
    store.groups.release_partitions(group, slot).await.unwrap()
}

async fn commit(store: &Store, partition: PartitionKey, offset: i64) {
    let offsets = BTreeMap::from([(partition, NewOffset { offset, ..NewOffset::default() })]);
    let commit = OffsetCommit { group: "g", offsets: &offsets, slot: None };
    let results = store.groups.commit_offsets(&commit).await.unwrap().unwrap();
    assert!(matches!(results[&partition], Committed::Stored { .. }));
}

#[tokio::test]
async fn the_owner_of_a_partition_keeps_workers_off_all_of_it() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let topic = create(store, "t", 2).await;
        let (partition, free) = (PartitionKey::new(topic.id, 0), PartitionKey::new(topic.id, 1));
        let mut sql = database.connection().await;
        enqueue(&mut sql, partition, 1, &[5, 5, 0, 9]).await;
        enqueue(&mut sql, free, 1, &[5, 5]).await;
        store.groups.hold_partitions(&[]).await.unwrap();
        store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
        let owners = texts(&mut sql, &format!("SELECT lock_owner FROM {PARTITION_LEASE}")).await;
        assert_eq!(owners, ["g:m"]);

        let mut worker = Worker::new(&database, "g").await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{profile}");
        assert_eq!(worker.receive(free, 60.0).await.len(), 2, "another partition");
        let mut other = Worker::new(&database, "other").await;
        assert_eq!(other.receive(partition, 60.0).await.len(), 4, "another group");
        // All is read; what arrives then is the member's as well, whatever its priority.
        commit(store, partition, 4).await;
        enqueue(&mut sql, partition, 5, &[5, 0, 3]).await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{profile}");
        assert!(leases(&mut sql, "g").await.iter().all(|(_, owner)| *owner == worker.lock_owner), "of the free one");

        commit(store, partition, 5).await;
        assert_eq!(release(store, "other").await, 0);
        assert!(worker.receive(partition, 60.0).await.is_empty());
        assert_eq!(release(store, "g").await, 1);
        let mut received = seqs(&worker.receive(partition, 60.0).await);
        received.sort_unstable();
        assert_eq!(received, [6, 7], "{profile}");
    }
}

#[tokio::test]
async fn the_worker_goes_on_when_the_lease_has_run_out() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5]).await;
    store
        .groups
        .hold_partitions(&[PartitionHold { duration: Duration::from_secs(1), ..owned(partition) }])
        .await
        .unwrap();
    let mut worker = Worker::new(&database, "g").await;
    let still = format!("SELECT count(*) FROM {PARTITION_LEASE} WHERE locked_until > clock_timestamp()");
    while number(&mut sql, &still).await == 1 {
        // Who is refused tries again, as pgQueue's worker does.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seqs(&worker.receive(partition, 60.0).await), [1]);
}

#[tokio::test]
async fn a_worker_with_an_old_offset_gets_nothing_that_is_done() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
        let mut sql = database.connection().await;
        enqueue(&mut sql, partition, 1, &[5, 5, 3, 3, 5]).await;
        store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
        let mut worker = Worker::new(&database, "g").await;
        let offset = worker.offset(partition).await;
        commit(store, partition, 3).await;
        assert!(worker.receive_above(partition, offset, 60.0).await.is_empty());
        release(store, "g").await;
        assert_eq!(seqs(&worker.receive_above(partition, offset, 60.0).await), [] as [i64; 0], "1 and 3 are done");
        assert_eq!(seqs(&worker.receive(partition, 60.0).await), [4, 5]);
        // Moved back: what is above comes again, the rest does not.
        commit(store, partition, 1).await;
        run(&mut sql, &format!("UPDATE {LEASE} SET locked_until = now() - interval '1 second'")).await;
        assert_eq!(seqs(&worker.receive(partition, 60.0).await), [3, 4, 2, 5], "{profile}");
    }
}

#[tokio::test]
async fn what_a_worker_has_in_flight_it_may_acknowledge() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5, 5]).await;
    let mut worker = Worker::new(&database, "g").await;
    let received = worker.receive(partition, 60.0).await;
    store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
    worker.ack(partition, &received).await;
    assert_eq!(worker.offset(partition).await, 2);
    enqueue(&mut sql, partition, 3, &[5]).await;
    assert!(worker.receive(partition, 60.0).await.is_empty());
}

#[tokio::test]
async fn leases_are_renewed_in_time_taken_over_at_once_and_forgotten_in_the_end() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    let set_left = |left: &str| format!("UPDATE {PARTITION_LEASE} SET locked_until = now() + interval '{left}'");
    let state = format!("SELECT lock_owner || ' ' || (locked_until > now() + interval '40 s') FROM {PARTITION_LEASE}");
    let first = owned(partition);
    let next = PartitionHold { member_id: "next", ..first };
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:m true"], "there was none");

    let version = format!("SELECT xmin::text::bigint FROM {PARTITION_LEASE}");
    let before = number(&mut sql, &version).await;
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(number(&mut sql, &version).await, before, "much is left");
    run(&mut sql, &set_left("33 s")).await;
    store.groups.renew_partitions(&[next]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:m false"], "another member's");
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:m true"]);

    store.groups.hold_partitions(&[next]).await.unwrap();
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:next true"], "a renewal that comes late takes nothing back");
    run(&mut sql, &set_left("-1 s")).await;
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:m true"], "had run out");

    let stale = SlotLease { slot: 0, fencing: -1 };
    assert_eq!(store.groups.release_partitions("g", stale).await.unwrap(), 0, "the group is another gateway's");
    assert_eq!(release(store, "g").await, 1);
    store.groups.renew_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, [" false"], "a renewal that was on its way");
    assert_eq!(release(store, "g").await, 0);
    store.groups.hold_partitions(&[first]).await.unwrap();
    assert_eq!(texts(&mut sql, &state).await, ["g:m true"]);

    run(&mut sql, &set_left("-59 min")).await;
    assert_eq!(store.groups.forget_partition_leases().await.unwrap(), 0);
    run(&mut sql, &set_left("-61 min")).await;
    assert_eq!(store.groups.forget_partition_leases().await.unwrap(), 1);
}

/// DataHub's role may have no rights on the gateway's tables.
#[tokio::test]
async fn workers_need_no_rights_on_the_tables_of_the_gateway() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5, 5]).await;
    let role = format!("worker_{}", uuid::Uuid::new_v4().simple());
    let tables = ["topic", "message", "consumer_offset", "message_group_lease"];
    let tables = tables.map(|table| format!("queue.metadata_queue_{table}")).join(", ");
    run(
        &mut sql,
        &format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA queue TO {role}; GRANT ALL ON {tables} TO {role}"),
    )
    .await;
    store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
    let mut worker = Worker::new(&database, "g").await;
    run(&mut worker.sql, &format!("SET ROLE {role}")).await;
    assert!(worker.receive(partition, 60.0).await.is_empty());
    commit(store, partition, 1).await;
    release(store, "g").await;
    assert_eq!(seqs(&worker.receive(partition, 60.0).await), [2]);
    run(&mut worker.sql, "RESET ROLE").await;
    run(&mut sql, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn many_partitions_of_many_groups_are_leased_in_one_statement() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topic = create(store, "t", 50).await;
    let mut sql = database.connection().await;
    let members: Vec<(String, String)> = (0..20).map(|n| (format!("g{}", n % 4), format!("m{n}"))).collect();
    let holds: Vec<PartitionHold<'_>> = (0..50)
        .map(|number| {
            let (group, member_id) = &members[number % 20];
            let partition = PartitionKey::new(topic.id, number as i32);
            PartitionHold { group, member_id, partition, duration: TIMEOUT }
        })
        .collect();
    store.groups.hold_partitions(&holds).await.unwrap();
    assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM {PARTITION_LEASE}")).await, 50);
    assert_eq!(number(&mut sql, &format!("SELECT count(DISTINCT lock_owner) FROM {PARTITION_LEASE}")).await, 20);
    // A topic that is gone leaves nothing to hold.
    assert!(store.delete_topic("t").await.unwrap());
    store.groups.hold_partitions(&holds).await.unwrap();
    assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM {PARTITION_LEASE}")).await, 0);
}

/// Both kinds work on one partition in turns, under load; the Kafka member owns it for some time and
/// leaves, over and over. Records are processed at least once, and what was committed before
/// somebody began to read never comes again.
#[tokio::test(flavor = "multi_thread")]
async fn the_group_is_handed_over_in_both_directions_under_load() {
    const RECORDS: i64 = 400;
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store().clone();
        let partition = PartitionKey::new(create(&store, "t", 1).await.id, 0);
        let mut sql = database.connection().await;
        enqueue(&mut sql, partition, 1, &[5; RECORDS as usize]).await;
        let mut workers = Vec::new();
        for _ in 0..2 {
            let mut worker = Worker::new(&database, "g").await;
            workers.push(tokio::spawn(async move {
                let mut processed = Vec::new();
                while worker.offset(partition).await < RECORDS {
                    // In the client's own order, but only three at a time so that the turns change.
                    run(&mut worker.sql, "BEGIN").await;
                    let offset = worker.offset(partition).await;
                    let received = worker.receive_some(partition, offset, 60.0, 3).await;
                    run(&mut worker.sql, "COMMIT").await;
                    if received.is_empty() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    processed.extend(seqs(&received));
                    worker.ack(partition, &received).await;
                }
                processed
            }));
        }
        let mut processed: Vec<i64> = Vec::new();
        let mut reader = Worker::new(&database, "g").await;
        while reader.offset(partition).await < RECORDS {
            store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
            // A worker's transaction that began before may still lease; what it has it acknowledges.
            let held_at = &texts(&mut sql, "SELECT clock_timestamp()::text").await[0];
            // One after the other: in one statement, leases of a transaction that ends between the
            // snapshot and the look at the processes are in neither.
            for count in [format!("SELECT count(*) FROM ({RECEIVING} '{held_at}') r"), IN_FLIGHT.to_owned()] {
                while number(&mut sql, &count).await > 0 {
                    tokio::task::yield_now().await;
                }
            }
            let start = reader.offset(partition).await;
            for done in (start + 1..=RECORDS).take(7) {
                processed.push(done);
                commit(&store, partition, done).await;
            }
            release(&store, "g").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let by_kafka = processed.len();
        for worker in workers {
            processed.extend(worker.await.unwrap());
        }
        assert!(by_kafka > 0 && processed.len() > by_kafka, "{by_kafka} of {}", processed.len());
        processed.sort_unstable();
        assert_eq!(processed, (1..=RECORDS).collect::<Vec<_>>(), "{profile}");
    }
}

/// Commits to and fro while workers lease and acknowledge: nobody is the victim of a deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn commits_and_acknowledgements_do_not_deadlock() {
    let database = TestDatabase::new().await;
    let store = database.store().clone();
    let partition = PartitionKey::new(create(&store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5, 5, 5, 3, 5, 5, 9, 5, 5, 5, 3, 5]).await;
    let mut acking = Vec::new();
    for _ in 0..2 {
        let mut worker = Worker::new(&database, "g").await;
        acking.push(tokio::spawn(async move {
            for _ in 0..150 {
                let received = worker.receive(partition, 0.01).await;
                worker.ack(partition, &received).await;
            }
        }));
    }
    let mut offset = 0;
    while acking.iter().any(|worker| !worker.is_finished()) {
        offset = (offset + 7) % 13;
        commit(&store, partition, offset).await;
        store.groups.hold_partitions(&[owned(partition)]).await.unwrap();
        release(&store, "g").await;
    }
    futures::future::try_join_all(acking).await.unwrap();
}

/// With statistics of a table full of acknowledged leases, a worker's look-up joins whole tables.
#[tokio::test]
async fn the_planner_has_no_statistics_of_lock_owner() {
    let has_statistics = "SELECT count(*) FROM pg_stats WHERE schemaname = 'queue' \
        AND tablename = 'metadata_queue_message_group_lease' AND attname = 'lock_owner'";
    let acknowledge = format!(
        "INSERT INTO {LEASE} (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
         SELECT id, enqueued_at, 'full', '__acked__', to_timestamp(0) FROM queue.metadata_queue_message; ANALYZE {LEASE}"
    );
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let partition = PartitionKey::new(create(database.store(), "t", 1).await.id, 0);
        let mut sql = database.connection().await;
        enqueue(&mut sql, partition, 1, &[5, 5]).await;
        run(&mut sql, &acknowledge).await;
        assert_eq!(number(&mut sql, has_statistics).await, 0, "{profile}");
    }
    // DataHub's tables have had some; where a view holds the column, they stay.
    for (view, left) in [("SELECT 1", 0), ("SELECT lock_owner FROM queue.metadata_queue_message_group_lease", 1)] {
        let database = TestDatabase::empty().await;
        let mut sql = database.connection().await;
        run(&mut sql, include_str!("sql/datahub_made.sql")).await;
        run(&mut sql, &format!("{acknowledge}; CREATE VIEW owners AS {view}")).await;
        assert_eq!(number(&mut sql, has_statistics).await, 1);
        database.store().schema.migrate().await.unwrap();
        run(&mut sql, &format!("ANALYZE {LEASE}")).await;
        assert_eq!(number(&mut sql, has_statistics).await, left);
    }
}
