use std::{collections::HashSet, time::Duration};

use local_postgres::StopMode;
use store::Store;
use testkit::TestDatabase;
use tokio::time::timeout;

#[tokio::test]
async fn two_gateways_never_give_out_the_same_producer_id() {
    let database = TestDatabase::new().await;
    let other = Store::connect(database.config()).unwrap();
    let mut seen = HashSet::new();
    for _ in 0..50 {
        let (one, two) = tokio::join!(database.store().cluster.next_producer_id(), other.cluster.next_producer_id());
        assert!(seen.insert(one.unwrap()));
        assert!(seen.insert(two.unwrap()));
    }
    assert!(seen.iter().all(|id| *id >= 0));
}

#[tokio::test]
async fn a_crash_of_the_server_does_not_repeat_a_producer_id() {
    let database = TestDatabase::on_private_server().await;
    let mut last = -1;
    for _ in 0..3 {
        let id = timeout(Duration::from_secs(30), next_producer_id(database.store())).await.expect("back again");
        assert!(id > last, "{id} after {last}");
        last = id;
        database.server().stop(StopMode::Immediate).unwrap();
        database.server().restart().unwrap();
    }
}

/// The first ones to ask after a crash may get a connection that has died with the server.
async fn next_producer_id(store: &Store) -> i64 {
    loop {
        match store.cluster.next_producer_id().await {
            Ok(id) => return id,
            Err(error) => assert!(error.is_retriable(), "{error}"),
        }
        tokio::task::yield_now().await;
    }
}
