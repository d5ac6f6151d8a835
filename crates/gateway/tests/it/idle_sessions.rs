//! A role whose idle sessions Postgres ends (`idle_session_timeout`).

use std::{collections::BTreeSet, time::Duration};

use gateway::{Gateway, config::Config};
use sqlx::PgConnection;
use testkit::{TestDatabase, TestGateway};
use tokio::time::sleep;

use crate::samples::{batch, metadata, produce};

/// Process ids of the sessions with such a name.
async fn sessions(admin: &mut PgConnection, name: &str) -> BTreeSet<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1";
    let pids: Vec<i32> = sqlx::query_scalar(sql).bind(name).fetch_all(admin).await.unwrap();
    pids.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_of_a_gateway_ends_for_being_idle() {
    let database = TestDatabase::new().await;
    let mut admin = database.connection().await;
    let limit =
        "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = 300', current_database()); END$$";
    sqlx::raw_sql(limit).execute(&mut admin).await.unwrap();
    let gateway = TestGateway::start_on(database, |_| {}).await;
    // A second one, so that both listen.
    let mut config = Config::defaults();
    config.store.postgres.database_url = Some(gateway.database().url().to_owned());
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.server.http_listen = ([127, 0, 0, 1], 0).into();
    config.server.node_id = 2;
    let second = Gateway::start(config).await.unwrap();

    let mut client = gateway.client().await;
    client.call(12, metadata("orders")).await;
    client.call(9, produce("orders", -1, batch(b"x"))).await;
    while sessions(&mut admin, "pgqueue-gateway listening").await.len() < 2 {
        sleep(Duration::from_millis(20)).await;
    }
    let before = sessions(&mut admin, "pgqueue-gateway%").await;
    for _ in 0..3 {
        sleep(Duration::from_millis(500)).await;
        let stored = client.call(9, produce("orders", -1, batch(b"x"))).await;
        assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
    }
    let after = sessions(&mut admin, "pgqueue-gateway%").await;
    assert!(before.len() >= 6 && after.is_superset(&before), "{before:?} {after:?}");
    assert!(second.shutdown().await);
}
