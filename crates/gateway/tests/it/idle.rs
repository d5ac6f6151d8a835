//! What consumers cost that have nothing to do, in statements of Postgres.

use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::future::{join, join_all};
use gateway::config::Config;
use sqlx::PgConnection;
use testkit::{Client, TestDatabase, TestGateway};
use tokio::time::sleep;

use crate::{
    group_requests::{heartbeat, joined, sync},
    samples::{fetch, metadata},
};

const MEMBERS: i32 = 200;
/// librdkafka's `fetch.wait.max.ms`, and the Java client's.
const LONG_POLL_MS: i32 = 500;
/// `heartbeat.interval.ms`.
const HEARTBEATS: Duration = Duration::from_secs(3);
/// A quarter of a second, and what a slow machine takes.
const FOUND: Duration = Duration::from_secs(2);
/// What starts with the gateway and the members is over by then.
const SETTLED: Duration = Duration::from_secs(8);
const COUNTED: Duration = Duration::from_secs(15);
/// Less than the ten that an idle gateway may cost: some things come every half minute and more seldom.
const STATEMENTS_A_SECOND: f64 = 8.0;

/// Each is alone in its group and reads a partition of its own.
#[tokio::test(flavor = "multi_thread")]
async fn members_with_nothing_to_read_cost_next_to_nothing() {
    let database = TestDatabase::on_private_server_with(&[("shared_preload_libraries", "pg_stat_statements")]).await;
    let mut connection = database.connection().await;
    sqlx::raw_sql("CREATE EXTENSION pg_stat_statements").execute(&mut connection).await.unwrap();
    let gateway = TestGateway::start_on(database, |config: &mut Config| {
        config.server.groups.group_initial_rebalance_delay_ms = 0;
        config.server.topics.num_partitions = MEMBERS;
    })
    .await;
    let mut coordinator = gateway.client().await;
    assert_eq!(coordinator.call(12, metadata("orders")).await.topics[0].error_code, 0);
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let group_id = format!("group-{number}");
        let joined = joined(&mut coordinator, 9, &group_id).await;
        assert_eq!(coordinator.call(5, sync(5, &group_id, &joined)).await.error_code, 0);
        members.push((group_id, joined.member_id.to_string()));
    }
    let readers = (0..MEMBERS).map(|partition| read(gateway.address(), partition));
    let idling = join(send_heartbeats(coordinator, members), join_all(readers));
    let reader = gateway.client().await;
    let (statements, found_after) = tokio::select! {
        _ = idling => unreachable!("they never end"),
        seen = async { (count(&mut connection).await, find(reader, &mut connection).await) } => seen,
    };
    println!("{statements}\na row of SQL was found after {found_after:?}");
    assert!(statements.total() < STATEMENTS_A_SECOND, "{statements}");
    assert!(found_after < FOUND, "{found_after:?}");
}

/// How long a row takes that SQL inserts into a database where nothing has happened for long.
async fn find(mut client: Client, connection: &mut PgConnection) -> Duration {
    let parked = client.send(11, fetch("orders", 0, 30_000)).await;
    let insert = "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload) \
        SELECT id, 0, 'key', 1, 'value' FROM queue.metadata_queue_topic WHERE topic_name = 'orders'";
    sqlx::query(insert).execute(connection).await.unwrap();
    let start = Instant::now();
    let response = client.receive(parked).await;
    assert!(response.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
    start.elapsed()
}

async fn send_heartbeats(mut client: Client, members: Vec<(String, String)>) {
    loop {
        for (group_id, member_id) in &members {
            assert_eq!(client.call(4, heartbeat(group_id, 1, member_id)).await.error_code, 0);
        }
        sleep(HEARTBEATS).await;
    }
}

/// Asks for the next record all the time.
async fn read(gateway: SocketAddr, partition: i32) {
    let mut client = Client::connect(gateway).await;
    let mut request = fetch("orders", 0, LONG_POLL_MS);
    request.topics[0].partitions[0].partition = partition;
    loop {
        let response = client.call(11, request.clone()).await;
        assert_eq!(response.responses[0].partitions[0].error_code, 0);
    }
}

struct Statements {
    /// What was sent, and how often.
    calls: Vec<(String, i64)>,
    seconds: f64,
}

async fn count(connection: &mut PgConnection) -> Statements {
    sleep(SETTLED).await;
    sqlx::query("SELECT pg_stat_statements_reset()").execute(&mut *connection).await.unwrap();
    let start = Instant::now();
    sleep(COUNTED).await;
    let sql =
        "SELECT query, calls FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY calls DESC";
    let calls = sqlx::query_as(sql).fetch_all(connection).await.unwrap();
    Statements { calls, seconds: start.elapsed().as_secs_f64() }
}

impl Statements {
    fn rate(&self, calls: i64) -> f64 {
        calls as f64 / self.seconds
    }

    fn total(&self) -> f64 {
        self.rate(self.calls.iter().map(|(_, calls)| calls).sum())
    }
}

impl fmt::Display for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} statements a second:", self.total())?;
        self.calls.iter().try_for_each(|(query, calls)| write!(f, "\n{:6.2}  {query}", self.rate(*calls)))
    }
}
