//! The password of the gateway's database user is changed while it runs, and set right again.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection};
use testkit::{TestDatabase, TestGateway};
use tokio::time::sleep;

use crate::{
    every_version::everything_is_retriable,
    samples::{batch, metadata, produce},
};

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(admin).await.expect(sql);
}

/// New sessions of the gateway's role are refused, and it has no old ones.
async fn rotate(admin: &mut PgConnection, password: &str) {
    run(admin, &format!("ALTER ROLE gateway PASSWORD '{password}'")).await;
    run(admin, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_to_try_again_until_the_password_is_right_again() {
    let database = TestDatabase::on_private_server().await;
    let mut admin = database.connection().await;
    run(&mut admin, "CREATE ROLE gateway LOGIN SUPERUSER PASSWORD 'first'").await;
    let (address, user) = (database.url().split_once('@').unwrap().1.to_owned(), "postgres://gateway:first@");
    let with_role = |config: &mut gateway::config::Config| {
        config.store.postgres.database_url = Some(format!("{user}{address}"));
    };
    let gateway = TestGateway::start_on(database, with_role).await;
    let mut client = gateway.client().await;
    client.call(12, metadata("orders")).await;

    rotate(&mut admin, "second").await;
    // What was seen of topics is believed for a second.
    sleep(Duration::from_millis(1_100)).await;
    everything_is_retriable(&gateway).await;
    let refused = "SELECT count(*) FROM regexp_matches(pg_read_file(current_setting('data_directory') || \
         '/../postgres.log'), 'password authentication failed', 'g')";
    let attempts: i64 = sqlx::query_scalar(refused).fetch_one(&mut admin).await.unwrap();
    assert!(attempts < 60, "{attempts} attempts to connect; an account may be locked for fewer");

    rotate(&mut admin, "first").await;
    let start = Instant::now();
    loop {
        let stored = client.call(9, produce("orders", -1, batch(b"x"))).await;
        match stored.responses[0].partition_responses[0].error_code {
            0 => break,
            code => assert!(start.elapsed() < Duration::from_secs(10), "still {code}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
