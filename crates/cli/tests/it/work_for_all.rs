//! What one gateway does for all, as the time partitions.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection};
use testkit::TestDatabase;

use crate::process::GatewayProcess;

const PATIENCE: Duration = Duration::from_secs(20);

/// The time partitions, in the order of time by their names.
async fn partitions(sql: &mut PgConnection) -> Vec<String> {
    let list = "SELECT inhrelid::regclass::text AS name FROM pg_inherits \
                WHERE inhparent = 'queue.metadata_queue_message'::regclass ORDER BY name";
    sqlx::query_scalar(list).fetch_all(sql).await.unwrap()
}

/// Waits until a gateway with this node id has slots.
async fn wait_for_slots(sql: &mut PgConnection, node_id: i32) {
    let deadline = Instant::now() + PATIENCE;
    let count = "SELECT count(*) FROM queue.metadata_queue_kafka_coordinator_slot s \
                 JOIN queue.metadata_queue_kafka_node n ON n.instance = s.lock_owner WHERE n.node_id = $1";
    while sqlx::query_scalar::<_, i64>(count).bind(node_id).fetch_one(&mut *sql).await.unwrap() == 0 {
        assert!(Instant::now() < deadline, "node {node_id} has no slots");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until there are so many.
async fn wait_for_partitions(sql: &mut PgConnection, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while partitions(sql).await.len() < count {
        assert!(Instant::now() < deadline, "no gateway has made the partition");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn drop_farthest(sql: &mut PgConnection) {
    let farthest = partitions(sql).await.pop().unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE {farthest}"))).execute(sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_gateway_does_it_and_another_takes_over_when_that_was_killed() {
    let _alone = crate::ALONE.lock().await;
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    let all = partitions(&mut sql).await.len();
    drop_farthest(&mut sql).await;
    // Only looks at the schema when it starts.
    let start = |node_id| {
        let options = ["--no-migrate", "--node-id", node_id, "--coordinator-lease-ms", "1000"];
        GatewayProcess::start(database.url(), &options)
    };
    let mut first = start("1");
    wait_for_partitions(&mut sql, all).await;

    drop_farthest(&mut sql).await;
    let _second = start("2");
    wait_for_slots(&mut sql, 2).await;
    assert_eq!(partitions(&mut sql).await.len(), all - 1, "the second gateway has made it as well");
    first.kill();
    wait_for_partitions(&mut sql, all).await;
}
