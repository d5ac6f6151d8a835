use std::{collections::BTreeMap, time::Duration};

use store::{
    Committed, Head, HeadHold, Holder, NewOffset, OffsetCommit, PartitionHold, PartitionKey, Store, lock_owner,
};
use testkit::TestDatabase;

use crate::{
    number,
    offsets::create,
    pgqueue::{PROFILES, Worker, enqueue, leases, seqs},
    run, texts,
};

const TIMEOUT: Duration = Duration::from_secs(45);
const LEASE: &str = "queue.metadata_queue_message_group_lease";

fn hold(partition: PartitionKey) -> HeadHold<'static> {
    HeadHold { group: "g", member_id: "m", session_timeout: TIMEOUT, partition, after: None }
}

async fn commit(store: &Store, partition: PartitionKey, offset: i64) {
    let offsets = BTreeMap::from([(partition, NewOffset { offset, ..NewOffset::default() })]);
    let holder = Some(Holder { member_id: "m", session_timeout: TIMEOUT });
    let commit = OffsetCommit { group: "g", offsets: &offsets, holder, slot: None };
    let results = store.commit_offsets(&commit).await.unwrap().unwrap();
    assert!(matches!(results[&partition], Committed::Stored { .. }));
}

/// (offset, priority, is it ours) of each head.
fn short(heads: &[Head]) -> Vec<(i64, i16, bool)> {
    heads.iter().map(|head| (head.offset, head.priority, head.held_by.is_none())).collect()
}

#[tokio::test]
async fn the_head_of_every_priority_keeps_workers_of_the_group_away() {
    for profile in PROFILES {
        let database = TestDatabase::with_profile(profile).await;
        let store = database.store();
        let topic = create(store, "t", 2).await;
        let (partition, free) = (PartitionKey::new(topic.id, 0), PartitionKey::new(topic.id, 1));
        let mut sql = database.connection().await;
        // -1 is a row that no reader is to see.
        enqueue(&mut sql, partition, 1, &[5, 5, 0, -1, 9, 5, 0, 3, 9]).await;
        enqueue(&mut sql, free, 1, &[5, 5]).await;
        assert!(store.hold_heads(&[], &[]).await.unwrap().is_empty());
        let heads = store.hold_heads(&[hold(partition)], &[]).await.unwrap();
        let mut expected = [(0, 5, true), (2, 0, true), (4, 9, true), (7, 3, true)];
        expected.sort_by_key(|(_, priority, _)| *priority);
        assert_eq!(short(&heads), expected);
        assert_eq!(leases(&mut sql, "g").await[0].1, lock_owner("g", "m"));

        let mut worker = Worker::new(&database, "g").await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{profile}");
        assert_eq!(worker.receive(free, 60.0).await.len(), 2, "another partition");
        let mut other = Worker::new(&database, "other").await;
        assert_eq!(other.receive(partition, 60.0).await.len(), 8, "another group");

        // After the member has gone, the worker goes on where it was.
        commit(store, partition, 2).await;
        assert!(worker.receive(partition, 60.0).await.is_empty());
        assert_eq!(store.release_heads(&[hold(partition)]).await.unwrap(), 4);
        let mut received = seqs(&worker.receive(partition, 60.0).await);
        received.sort_unstable();
        assert_eq!(received, [3, 5, 6, 7, 8, 9]);
    }
}

#[tokio::test]
async fn a_worker_that_read_the_offset_before_a_commit_gets_nothing() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5, 5, 3, 3, 5]).await;
    store.hold_heads(&[hold(partition)], &[]).await.unwrap();
    let mut worker = Worker::new(&database, "g").await;
    for committed in [1, 3, 5] {
        let offset = worker.offset(partition).await;
        commit(store, partition, committed).await;
        assert!(worker.receive_above(partition, offset, 60.0).await.is_empty());
        store.renew_heads(&[hold(partition)], &[]).await.unwrap();
        assert!(worker.receive_above(partition, offset, 60.0).await.is_empty());
    }
    let offset = 3;
    store.release_heads(&[hold(partition)]).await.unwrap();
    assert!(worker.receive_above(partition, offset, 60.0).await.is_empty());
    assert!(worker.receive(partition, 60.0).await.is_empty(), "all is done");
}

#[tokio::test]
async fn what_a_worker_has_is_left_to_it_and_reported() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5, 5, 5, 7]).await;
    let mut worker = Worker::new(&database, "g").await;
    let received = worker.receive(partition, 60.0).await;
    worker.ack(partition, &received[1..2]).await; // out of order: 1 is in flight
    let heads = store.hold_heads(&[hold(partition)], &[]).await.unwrap();
    assert_eq!(short(&heads), [(0, 5, false), (3, 7, false)]);
    let other = heads[0].held_by.clone().unwrap();
    assert_eq!(other.lock_owner, worker.lock_owner);
    assert!(other.remaining > Duration::from_secs(50) && other.remaining <= Duration::from_secs(60));

    // The head after a record that is done: 2 is acknowledged, 3 in flight.
    let from_2 = HeadHold { after: Some(1), ..hold(partition) };
    assert_eq!(short(&store.hold_heads(&[from_2], &[]).await.unwrap()), [(2, 5, false), (3, 7, false)]);
    worker.ack(partition, &received).await;
    assert_eq!(worker.offset(partition).await, 4);
    assert!(store.hold_heads(&[hold(partition)], &[]).await.unwrap().is_empty(), "nothing left to hold");

    // What has run out is taken.
    enqueue(&mut sql, partition, 5, &[5]).await;
    assert_eq!(seqs(&worker.receive(partition, 0.0).await), [5]);
    let heads = store.hold_heads(&[hold(partition)], &[]).await.unwrap();
    assert_eq!(short(&heads), [(4, 5, true)]);
    assert!(worker.receive(partition, 60.0).await.is_empty());
    assert_eq!(store.release_heads(&[HeadHold { member_id: "another", ..hold(partition) }]).await.unwrap(), 0);
}

#[tokio::test]
async fn leases_are_renewed_when_half_is_over_and_swept_when_they_are_no_heads() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5; 4]).await;
    store.hold_heads(&[hold(partition)], &[]).await.unwrap();
    let version = "SELECT xmin::text::bigint FROM queue.metadata_queue_message_group_lease";
    let first = number(&mut sql, version).await;
    assert_eq!(short(&store.renew_heads(&[hold(partition)], &[]).await.unwrap()), [(0, 5, true)]);
    assert_eq!(number(&mut sql, version).await, first, "much is left");
    run(&mut sql, &format!("UPDATE {LEASE} SET locked_until = now() + interval '20 seconds'")).await;
    assert_eq!(short(&store.renew_heads(&[hold(partition)], &[]).await.unwrap()), [(0, 5, true)]);
    let left = format!("SELECT extract(epoch FROM min(locked_until) - now())::bigint FROM {LEASE}");
    assert!(number(&mut sql, &left).await > 40);

    commit(store, partition, 1).await;
    commit(store, partition, 2).await;
    store.renew_heads(&[hold(partition)], &[]).await.unwrap();
    assert_eq!(leases(&mut sql, "g").await.len(), 3, "old heads stay for a while");
    run(
        &mut sql,
        &format!(
            "UPDATE {LEASE} SET locked_until = now() + interval '5 seconds'; \
             INSERT INTO {LEASE} (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until) \
             SELECT id, enqueued_at, 'g', owner, until FROM queue.metadata_queue_message, (VALUES \
               (4, 'g:worker', now() - interval '2 hours'), (5, 'g:worker', now() - interval '1 minute')) v(seq, owner, until) \
             WHERE enqueue_seq = 4 AND seq = 4"
        ),
    )
    .await;
    assert_eq!(short(&store.renew_heads(&[hold(partition)], &[]).await.unwrap()), [(2, 5, true)]);
    assert_eq!(leases(&mut sql, "g").await, [(3, lock_owner("g", "m"))]);
}

#[tokio::test]
async fn a_partition_goes_from_one_member_to_the_next_without_a_gap() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    enqueue(&mut sql, partition, 1, &[5; 2]).await;
    store.hold_heads(&[hold(partition)], &[]).await.unwrap();
    let next = HeadHold { member_id: "next", ..hold(partition) };
    assert_eq!(short(&store.hold_heads(&[next], &[]).await.unwrap()), [(0, 5, false)]);
    let former = [lock_owner("g", "m")];
    assert_eq!(short(&store.hold_heads(&[next], &former).await.unwrap()), [(0, 5, true)]);
    assert_eq!(leases(&mut sql, "g").await, [(1, lock_owner("g", "next"))]);
}

#[tokio::test]
async fn many_partitions_of_many_groups_are_held_in_one_statement() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let topic = create(store, "t", 50).await;
    let mut sql = database.connection().await;
    run(
        &mut sql,
        &format!(
            "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
             SELECT {}, p, '', s, '' FROM generate_series(0, 49) p, generate_series(1, 3) s",
            topic.id
        ),
    )
    .await;
    let members: Vec<(String, String)> = (0..20).map(|n| (format!("g{}", n % 4), format!("m{n}"))).collect();
    let holds: Vec<HeadHold<'_>> = (0..50)
        .flat_map(|number| {
            let partition = PartitionKey::new(topic.id, number);
            members.iter().filter(move |(_, member)| *member == format!("m{}", number % 20)).map(
                move |(group, member_id)| HeadHold {
                    group,
                    member_id,
                    session_timeout: TIMEOUT,
                    partition,
                    after: None,
                },
            )
        })
        .collect();
    let heads = store.renew_heads(&holds, &[]).await.unwrap();
    assert_eq!(heads.len(), 50);
    assert!(heads.iter().all(|head| head.held_by.is_none() && head.offset == 0));
    assert_eq!(number(&mut sql, &format!("SELECT count(DISTINCT lock_owner) FROM {LEASE}")).await, 20);
    // A topic that is gone leaves nothing to hold.
    assert!(store.delete_topic("t").await.unwrap());
    assert!(store.renew_heads(&holds, &[]).await.unwrap().is_empty());
    assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM {LEASE}")).await, 0);
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
            let heads = store.hold_heads(&[hold(partition)], &[]).await.unwrap();
            if heads.iter().all(|head| head.held_by.is_none()) {
                // It owns the head, and nobody of the group has anything in flight.
                let start = reader.offset(partition).await;
                for done in (start + 1..=RECORDS).take(7) {
                    processed.push(done);
                    commit(&store, partition, done).await;
                }
            }
            store.release_heads(&[hold(partition)]).await.unwrap();
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
        store.renew_heads(&[hold(partition)], &[]).await.unwrap();
        store.release_heads(&[hold(partition)]).await.unwrap();
    }
    futures::future::try_join_all(acking).await.unwrap();
}

const PARTITION_LEASE: &str = "queue.metadata_queue_kafka_partition_lease";

fn owned(partition: PartitionKey) -> PartitionHold<'static> {
    PartitionHold { group: "g", member_id: "m", partition, duration: TIMEOUT }
}

async fn commit_only(store: &Store, partition: PartitionKey, offset: i64) {
    let offsets = BTreeMap::from([(partition, NewOffset { offset, ..NewOffset::default() })]);
    let commit = OffsetCommit { group: "g", offsets: &offsets, holder: None, slot: None };
    let results = store.commit_offsets(&commit).await.unwrap().unwrap();
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
        store.hold_partitions(&[]).await.unwrap();
        store.hold_partitions(&[owned(partition)]).await.unwrap();
        let owners = texts(&mut sql, &format!("SELECT lock_owner FROM {PARTITION_LEASE}")).await;
        assert_eq!(owners, ["g:m"]);

        let mut worker = Worker::new(&database, "g").await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{profile}");
        assert_eq!(worker.receive(free, 60.0).await.len(), 2, "another partition");
        let mut other = Worker::new(&database, "other").await;
        assert_eq!(other.receive(partition, 60.0).await.len(), 4, "another group");
        // All is read; what arrives then is the member's as well, whatever its priority.
        commit_only(store, partition, 4).await;
        enqueue(&mut sql, partition, 5, &[5, 0, 3]).await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{profile}");
        assert!(leases(&mut sql, "g").await.iter().all(|(_, owner)| *owner == worker.lock_owner), "of the free one");

        commit_only(store, partition, 5).await;
        assert_eq!(store.release_partitions("g", &["another"]).await.unwrap(), 0);
        assert!(worker.receive(partition, 60.0).await.is_empty());
        assert_eq!(store.release_partitions("g", &["m"]).await.unwrap(), 1);
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
    store.hold_partitions(&[PartitionHold { duration: Duration::from_secs(1), ..owned(partition) }]).await.unwrap();
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
        store.hold_partitions(&[owned(partition)]).await.unwrap();
        let mut worker = Worker::new(&database, "g").await;
        let offset = worker.offset(partition).await;
        commit_only(store, partition, 3).await;
        assert!(worker.receive_above(partition, offset, 60.0).await.is_empty());
        store.release_partitions("g", &["m"]).await.unwrap();
        assert_eq!(seqs(&worker.receive_above(partition, offset, 60.0).await), [] as [i64; 0], "1 and 3 are done");
        assert_eq!(seqs(&worker.receive(partition, 60.0).await), [4, 5]);
        // Moved back: what is above comes again, the rest does not.
        commit_only(store, partition, 1).await;
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
    store.hold_partitions(&[owned(partition)]).await.unwrap();
    worker.ack(partition, &received).await;
    assert_eq!(worker.offset(partition).await, 2);
    enqueue(&mut sql, partition, 3, &[5]).await;
    assert!(worker.receive(partition, 60.0).await.is_empty());
}

#[tokio::test]
async fn partition_leases_are_renewed_in_time_taken_over_at_once_and_forgotten_in_the_end() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);
    let mut sql = database.connection().await;
    store.hold_partitions(&[owned(partition)]).await.unwrap();
    let version = format!("SELECT xmin::text::bigint FROM {PARTITION_LEASE}");
    let first = number(&mut sql, &version).await;
    store.hold_partitions(&[owned(partition)]).await.unwrap();
    assert_eq!(number(&mut sql, &version).await, first, "much is left");
    run(&mut sql, &format!("UPDATE {PARTITION_LEASE} SET locked_until = now() + interval '30 seconds'")).await;
    store.hold_partitions(&[owned(partition)]).await.unwrap();
    let left = format!("SELECT extract(epoch FROM locked_until - now())::bigint FROM {PARTITION_LEASE}");
    assert!(number(&mut sql, &left).await > 40);

    store.hold_partitions(&[PartitionHold { member_id: "next", ..owned(partition) }]).await.unwrap();
    let owner = format!("SELECT lock_owner FROM {PARTITION_LEASE}");
    assert_eq!(texts(&mut sql, &owner).await, ["g:next"]);
    assert_eq!(store.release_partitions("g", &["m"]).await.unwrap(), 0, "not any more its own");
    assert_eq!(store.release_partitions("g", &["next"]).await.unwrap(), 1);
    assert_eq!(store.forget_partition_leases().await.unwrap(), 0);
    run(&mut sql, &format!("UPDATE {PARTITION_LEASE} SET locked_until = now() - interval '61 minutes'")).await;
    assert_eq!(store.forget_partition_leases().await.unwrap(), 1);
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
    store.hold_partitions(&[owned(partition)]).await.unwrap();
    let mut worker = Worker::new(&database, "g").await;
    run(&mut worker.sql, &format!("SET ROLE {role}")).await;
    assert!(worker.receive(partition, 60.0).await.is_empty());
    commit_only(store, partition, 1).await;
    store.release_partitions("g", &["m"]).await.unwrap();
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
    store.hold_partitions(&holds).await.unwrap();
    assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM {PARTITION_LEASE}")).await, 50);
    assert_eq!(number(&mut sql, &format!("SELECT count(DISTINCT lock_owner) FROM {PARTITION_LEASE}")).await, 20);
    // A topic that is gone leaves nothing to hold.
    assert!(store.delete_topic("t").await.unwrap());
    store.hold_partitions(&holds).await.unwrap();
    assert_eq!(number(&mut sql, &format!("SELECT count(*) FROM {PARTITION_LEASE}")).await, 0);
}
