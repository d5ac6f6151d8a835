//! Records that the database's owner refuses, in one transaction with others.

use store::{AppendError, AppendReply, Appended, StoreError};
use testkit::TestDatabase;
use wire::batch::ProducedBatch;

use crate::{
    records::{Log, idempotent, plain},
    run,
};

/// Refuses rows with the payload "refused"; `kind` of a trigger, for example at the commit.
async fn refuse(database: &TestDatabase, kind: &str, timing: &str) {
    let sql = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
           IF NEW.payload = 'refused' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END$$; \
         CREATE {kind} refuse {timing} FOR EACH ROW EXECUTE FUNCTION refuse()"
    );
    run(&mut database.connection().await, &sql).await;
}

const AT_ONCE: (&str, &str) = ("TRIGGER", "BEFORE INSERT ON queue.metadata_queue_message");
const AT_COMMIT: (&str, &str) =
    ("CONSTRAINT TRIGGER", "AFTER INSERT ON queue.metadata_queue_message DEFERRABLE INITIALLY DEFERRED");

/// Queues all of it and lets one writer begin, which takes everything into its first transaction.
async fn append_together(log: &mut Log, batches: Vec<(i32, ProducedBatch)>) -> Vec<Result<Appended, AppendError>> {
    log.writers.shutdown().await;
    let replies: Vec<AppendReply> = batches.into_iter().map(|(partition, batch)| log.queue(partition, batch)).collect();
    log.writers = log.store.log.spawn_writers();
    let mut answers = Vec::new();
    for reply in replies {
        answers.push(reply.await.unwrap());
    }
    answers
}

fn is_refused(answer: &Result<Appended, AppendError>) -> bool {
    let Err(AppendError::Store(error)) = answer else { return false };
    matches!(&**error, StoreError::Refused(reason) if reason.contains("not this one"))
}

/// Base offsets of what was stored.
fn offsets(answers: &[Result<Appended, AppendError>]) -> Vec<Option<i64>> {
    answers.iter().map(|answer| answer.as_ref().ok().map(|appended| appended.base_offset.get())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_producers_of_other_partitions_do_not_suffer() {
    for (kind, timing) in [AT_ONCE, AT_COMMIT] {
        let database = TestDatabase::new().await;
        refuse(&database, kind, timing).await;
        let mut log = Log::without_writers(&database, 11).await;
        // By COPY, and in one statement where the ends are known, as they are after the round between.
        for (round, value) in [(0, "refused"), (1, "good"), (2, "refused")] {
            let value = |partition| if partition == 5 { value } else { "good" };
            let batches = (0..11).map(|partition| (partition, plain(&[value(partition)]))).collect();
            let answers = append_together(&mut log, batches).await;
            if round == 1 {
                assert_eq!(answers[5].as_ref().unwrap().base_offset.get(), 0, "{kind}: {answers:?}");
                continue;
            }
            assert!(is_refused(&answers[5]), "{kind}: {answers:?}");
            let expected: Vec<Option<i64>> = (0..11).map(|partition| (partition != 5).then_some(round)).collect();
            assert_eq!(offsets(&answers), expected, "{kind}: {answers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_batches_of_the_partition_keep_their_order() {
    let database = TestDatabase::new().await;
    refuse(&database, AT_ONCE.0, AT_ONCE.1).await;
    let mut log = Log::without_writers(&database, 1).await;
    let values: Vec<String> =
        (0..20).map(|n| if [3, 4, 19].contains(&n) { "refused".to_owned() } else { format!("{n}") }).collect();
    let batches = values.iter().map(|value| (0, plain(&[value]))).collect();
    let answers = append_together(&mut log, batches).await;
    assert!([3, 4, 19].iter().all(|n| is_refused(&answers[*n])), "{answers:?}");
    let stored: Vec<i64> = offsets(&answers).into_iter().flatten().collect();
    assert_eq!(stored, (0..17).collect::<Vec<i64>>(), "{answers:?}");
    assert_eq!(log.values(0).await, values.iter().filter(|value| *value != "refused").cloned().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_idempotent_producer_sent_behind_it_is_out_of_sequence() {
    let database = TestDatabase::new().await;
    refuse(&database, AT_ONCE.0, AT_ONCE.1).await;
    let mut log = Log::without_writers(&database, 1).await;
    let batch = |producer, epoch, sequence, value| (0, idempotent(producer, epoch, sequence, &[value]));
    let together = vec![
        batch(7, 0, 0, "refused"),
        batch(8, 0, 0, "other"),
        batch(7, 0, 1, "behind"),
        batch(8, 0, 1, "other"),
        batch(7, 0, 2, "behind"),
    ];
    let answers = append_together(&mut log, together).await;
    assert!(is_refused(&answers[0]), "{answers:?}");
    assert_eq!(offsets(&answers), [None, Some(0), None, Some(1), None], "{answers:?}");
    for late in [1, 3] {
        let answer = log.append(0, idempotent(7, 0, late, &["behind"])).await;
        assert!(matches!(answer, Err(AppendError::OutOfOrderSequence)), "{late}: {answer:?}");
    }
    // As franz-go goes on, with the same sequence, and as Java does, with a new epoch.
    assert_eq!(log.append(0, idempotent(7, 0, 0, &["again"])).await.unwrap().base_offset.get(), 2);
    assert!(is_refused(&log.append(0, idempotent(7, 0, 1, &["refused"])).await));
    assert_eq!(log.append(0, idempotent(7, 1, 0, &["new epoch"])).await.unwrap().base_offset.get(), 3);
    assert_eq!(log.values(0).await, ["other", "other", "again", "new epoch"]);
}
