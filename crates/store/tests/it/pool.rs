use std::time::{Duration, Instant};

use local_postgres::StopMode;
use store::{PostgresConfig, Store, StoreConfig, StoreError};
use testkit::TestDatabase;

use crate::{number, run};

#[tokio::test]
async fn a_start_does_not_need_postgres_but_sound_settings() {
    let mut config = StoreConfig::new("postgres://nobody@127.0.0.1:1/none");
    config.postgres.acquire_timeout = Duration::from_millis(300);
    let store = Store::connect(config.clone()).unwrap();
    let error = store.cluster.next_producer_id().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");

    let unsound: [fn(&mut PostgresConfig); 5] = [
        |config| config.schema = "bad-name".to_owned(),
        |config| config.table_prefix = "x".repeat(25),
        |config| config.db_max_connections = config.db_min_connections - 1,
        |config| config.database_url = None,
        |config| config.database_url = Some("mysql://somewhere".to_owned()),
    ];
    for spoil in unsound {
        let mut config = config.clone();
        spoil(&mut config.postgres);
        let error = Store::connect(config).unwrap_err();
        assert!(matches!(error, StoreError::InvalidConfig(_)), "{error}");
    }
}

#[tokio::test]
async fn connections_are_set_up_and_never_more_than_allowed() {
    let database = TestDatabase::new().await;
    let store = database.store_with(|config| config.postgres.db_max_connections = 3);
    let work = (0..60).map(|_| {
        let store = store.clone();
        async move {
            let mut connection = store.acquire().await.unwrap();
            run(&mut connection, "SELECT pg_sleep(0.005)").await;
            number(
                &mut connection,
                "SELECT count(*) FROM pg_stat_activity \
                  WHERE datname = current_database() AND application_name = 'pgqueue-gateway'",
            )
            .await
        }
    });
    let most = futures::future::join_all(work).await.into_iter().max();
    assert!(most <= Some(3), "{most:?}");

    let mut connection = store.acquire().await.unwrap();
    for (setting, value) in [
        ("plan_cache_mode", "force_generic_plan"),
        ("statement_timeout", "30s"),
        ("lock_timeout", "10s"),
        ("idle_in_transaction_session_timeout", "30s"),
        ("synchronous_commit", "on"),
    ] {
        let found: String =
            sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(&mut *connection).await.unwrap();
        assert_eq!(found, value, "{setting}");
    }
}

#[tokio::test]
async fn a_stopped_server_costs_little_time_and_its_return_is_noticed() {
    let database = TestDatabase::on_private_server().await;
    let store = database.store_with(|config| config.postgres.acquire_timeout = Duration::from_millis(500));
    store.cluster.next_producer_id().await.unwrap();
    database.server().stop(StopMode::Immediate).unwrap();

    let start = Instant::now();
    let mut failures = 0;
    while start.elapsed() < Duration::from_secs(2) {
        let calls = (0..20).map(|_| store.cluster.next_producer_id());
        for result in futures::future::join_all(calls).await {
            let error = result.unwrap_err();
            assert!(error.is_retriable(), "{error}");
            failures += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Most of them failed at once: with every call waiting, there would be about 80.
    assert!(failures > 400, "{failures}");

    database.server().restart().unwrap();
    let back = Instant::now();
    while store.cluster.next_producer_id().await.is_err() {
        assert!(back.elapsed() < Duration::from_secs(8), "still away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_turned_read_only_is_left_and_taken_back() {
    let database = TestDatabase::on_private_server().await;
    let store = database.store_with(|config| config.postgres.acquire_timeout = Duration::from_millis(500));
    store.cluster.next_producer_id().await.unwrap();
    let mut admin = database.connection().await;
    let switch = async |admin: &mut sqlx::PgConnection, value: &str| {
        run(admin, &format!("ALTER SYSTEM SET default_transaction_read_only = {value}")).await;
        run(admin, "SELECT pg_reload_conf()").await;
    };
    switch(&mut admin, "on").await;
    let start = Instant::now();
    loop {
        match store.acquire().await {
            Err(error) => break assert!(error.is_retriable(), "{error}"),
            Ok(_) => assert!(start.elapsed() < Duration::from_secs(5), "not noticed"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    run(&mut admin, "SET default_transaction_read_only = off").await;
    switch(&mut admin, "off").await;
    let start = Instant::now();
    while store.cluster.next_producer_id().await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(8), "not taken back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// With an older snapshot a writer would not see what the last holder of a partition's lock has written,
/// and give its offsets out again.
#[tokio::test]
async fn appends_are_read_committed_whatever_the_default_of_the_database() {
    let database = TestDatabase::new().await;
    let mut admin = database.connection().await;
    let set = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', \
        current_database(), 'repeatable read'); END $$";
    run(&mut admin, set).await;
    let store = Store::connect(database.config()).unwrap();
    let mut connection = store.acquire().await.unwrap();
    let isolation: String = sqlx::query_scalar("SELECT current_setting('transaction_isolation')")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(isolation, "read committed");
    // Behind a pooler the setting may get lost.
    run(&mut connection, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    let locks = "SELECT queue.metadata_queue_kafka_lock_partitions('{1}', '{0}', '{1}')";
    let refused = sqlx::query(locks).execute(&mut *connection).await.unwrap_err();
    assert!(refused.to_string().contains("needs READ COMMITTED"), "{refused}");
}
