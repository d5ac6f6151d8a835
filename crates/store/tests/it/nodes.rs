use std::time::Duration;

use store::{Heartbeat, Node, Store, StoreError};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::run;

const LEASE: Duration = Duration::from_secs(10);

fn node(node_id: i32, port: i32) -> Node {
    Node { node_id, host: "host".to_owned(), port, rack: Some("r".to_owned()), instance: Uuid::new_v4() }
}

#[tokio::test]
async fn live_gateways_see_each_other_until_they_end_or_fall_silent() {
    let database = TestDatabase::new().await;
    let (store, other) = (database.store(), Store::connect(database.config()).unwrap());
    let (mut one, two) = (node(1, 1000), node(2, 2000));
    assert_eq!(store.cluster.heartbeat_node(&two, LEASE).await.unwrap(), Heartbeat::Live(vec![two.clone()]));
    assert_eq!(
        other.cluster.heartbeat_node(&one, LEASE).await.unwrap(),
        Heartbeat::Live(vec![one.clone(), two.clone()])
    );
    one.port = 1001;
    one.rack = None;
    assert_eq!(
        other.cluster.heartbeat_node(&one, LEASE).await.unwrap(),
        Heartbeat::Live(vec![one.clone(), two.clone()])
    );
    assert_eq!(store.cluster.live_nodes(LEASE).await.unwrap(), [one.clone(), two.clone()]);
    let mut sql = database.connection().await;
    let silent =
        "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '13 seconds' WHERE node_id = ";
    run(&mut sql, &format!("{silent} 2")).await;
    assert_eq!(other.cluster.heartbeat_node(&one, LEASE).await.unwrap(), Heartbeat::Live(vec![one.clone()]));
    assert!(other.cluster.remove_node(1, one.instance).await.unwrap());
    assert!(!other.cluster.remove_node(1, one.instance).await.unwrap());
    assert!(store.cluster.live_nodes(LEASE).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_node_id_is_one_live_process() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (first, second) = (node(1, 1000), node(1, 2000));
    store.cluster.heartbeat_node(&first, LEASE).await.unwrap();
    assert_eq!(store.cluster.heartbeat_node(&second, LEASE).await.unwrap(), Heartbeat::Conflict(first.clone()));
    assert!(!store.cluster.remove_node(1, second.instance).await.unwrap());
    let mut sql = database.connection().await;
    let silent = "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '13 seconds'";
    run(&mut sql, silent).await;
    assert_eq!(store.cluster.heartbeat_node(&second, LEASE).await.unwrap(), Heartbeat::Live(vec![second.clone()]));
    assert_eq!(store.cluster.heartbeat_node(&first, LEASE).await.unwrap(), Heartbeat::Conflict(second));
}

/// So nobody misses a gateway that was killed and is back: its new process comes in between.
#[tokio::test]
async fn a_node_counts_as_live_a_little_longer_than_others_leave_it_its_id() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (killed, back, other) = (node(1, 1000), node(1, 1000), node(2, 2000));
    let lease = Duration::from_secs(1_000);
    store.cluster.heartbeat_node(&killed, lease).await.unwrap();
    let mut sql = database.connection().await;
    let ago = "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '1100 seconds'";
    run(&mut sql, ago).await;
    assert_eq!(
        store.cluster.heartbeat_node(&other, lease).await.unwrap(),
        Heartbeat::Live(vec![killed, other.clone()])
    );
    assert_eq!(store.cluster.heartbeat_node(&back, lease).await.unwrap(), Heartbeat::Live(vec![back, other]));
}

#[tokio::test]
async fn who_starts_waits_until_the_others_have_looked() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (one, two) = (node(1, 1000), node(2, 2000));
    store.cluster.heartbeat_node(&one, LEASE).await.unwrap();
    store.cluster.seen_by_others(one.instance, LEASE).await.unwrap();
    store.cluster.heartbeat_node(&two, LEASE).await.unwrap();
    let seen = store.cluster.seen_by_others(two.instance, LEASE);
    tokio::pin!(seen);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut seen).await.is_err());
    store.cluster.heartbeat_node(&one, LEASE).await.unwrap();
    seen.await.unwrap();
    // Nor for one that is dead.
    let silent =
        "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '13 seconds' WHERE node_id = 1";
    run(&mut database.connection().await, silent).await;
    store.cluster.seen_by_others(two.instance, LEASE).await.unwrap();
}

#[tokio::test]
async fn of_many_that_start_with_one_node_id_one_gets_it() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let nodes: Vec<Node> = (0..8).map(|port| node(5, port + 1)).collect();
    let heartbeats =
        futures::future::join_all(nodes.iter().map(|node| store.cluster.heartbeat_node(node, LEASE))).await;
    let live = heartbeats.iter().filter(|result| matches!(result, Ok(Heartbeat::Live(_)))).count();
    assert_eq!(live, 1, "{heartbeats:?}");
    for refused in heartbeats.iter().filter(|result| !matches!(result, Ok(Heartbeat::Live(_)))) {
        assert!(matches!(refused, Ok(Heartbeat::Conflict(_)) | Err(StoreError::Contended(_))), "{refused:?}");
    }
}

/// Epoch and node ids of the leaders, as a store knows them.
fn leaders(store: &Store) -> (i32, Vec<i32>) {
    let leadership = store.cluster.leadership().unwrap();
    (leadership.epoch, leadership.leaders.iter().map(|node| node.node_id).collect())
}

#[tokio::test]
async fn the_leader_epoch_rises_when_the_leaders_change_and_at_no_other_time() {
    let database = TestDatabase::new().await;
    let stores: Vec<Store> = (0..3).map(|_| Store::connect(database.config()).unwrap()).collect();
    let (mut one, two) = (node(1, 1000), node(2, 2000));
    assert!(stores[0].cluster.leadership().is_none());
    stores[0].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    stores[0].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[0]), (0, vec![1]));
    // A restart of the only gateway, in order and after a kill.
    assert!(stores[0].cluster.remove_node(1, one.instance).await.unwrap());
    one = node(1, 1001);
    stores[1].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[1]), (0, vec![1]));
    assert_eq!(stores[1].cluster.leadership().unwrap().leaders, std::slice::from_ref(&one));
    let mut sql = database.connection().await;
    let silent =
        "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '13 seconds' WHERE node_id = ";
    run(&mut sql, &format!("{silent} 1")).await;
    one = node(1, 1002);
    stores[1].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[1]), (0, vec![1]));

    // Another one comes; the first knows at its next heartbeat, or when a client tells.
    stores[2].cluster.heartbeat_node(&two, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[2]), (1, vec![1, 2]));
    assert_eq!((stores[1].cluster.leader_epoch(), stores[1].cluster.leader_epoch_since(0).await.unwrap()), (0, 0));
    assert_eq!(stores[1].cluster.leader_epoch_since(1).await.unwrap(), 1);
    assert_eq!(leaders(&stores[1]), leaders(&stores[2]));
    assert_eq!(stores[1].cluster.leader_epoch_since(9).await.unwrap(), 1);

    // It falls silent, comes back, and leaves.
    run(&mut sql, &format!("{silent} 2")).await;
    stores[1].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[1]), (2, vec![1]));
    stores[2].cluster.heartbeat_node(&two, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[2]), (3, vec![1, 2]));
    assert!(stores[2].cluster.remove_node(2, two.instance).await.unwrap());
    stores[1].cluster.heartbeat_node(&one, LEASE).await.unwrap();
    assert_eq!(leaders(&stores[1]), (4, vec![1]));
}

/// As after a failover to a standby that had not got the last transactions.
#[tokio::test]
async fn an_epoch_that_postgres_has_lost_is_not_used_again() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (one, two) = (node(1, 1000), node(2, 2000));
    store.cluster.heartbeat_node(&one, LEASE).await.unwrap();
    store.cluster.heartbeat_node(&two, LEASE).await.unwrap();
    assert_eq!(leaders(store), (1, vec![1, 2]));
    let mut sql = database.connection().await;
    run(&mut sql, "UPDATE queue.metadata_queue_kafka_cluster SET leader_epoch = 0, leaders = '{1}'").await;
    store.cluster.heartbeat_node(&one, LEASE).await.unwrap();
    let other = Store::connect(database.config()).unwrap();
    other.cluster.live_nodes(LEASE).await.unwrap();
    assert_eq!((leaders(store), leaders(&other)), ((2, vec![1, 2]), (2, vec![1, 2])));
}

/// Gateways come and go at once, each looking for itself.
#[tokio::test]
async fn no_epoch_ever_has_two_sets_of_leaders() {
    let database = TestDatabase::new().await;
    let seen = std::sync::Mutex::new(std::collections::BTreeMap::new());
    let gateways = (0..6).map(|number| {
        let (store, seen) = (Store::connect(database.config()).unwrap(), &seen);
        async move {
            let mut last = -1;
            for _ in 0..15 {
                let gateway = node(number, 1000);
                for _ in 0..2 {
                    store.cluster.heartbeat_node(&gateway, LEASE).await.unwrap();
                    let (epoch, leaders) = leaders(&store);
                    assert!(epoch >= last, "{epoch} after {last}");
                    last = epoch;
                    let first = seen.lock().unwrap().entry(epoch).or_insert_with(|| leaders.clone()).clone();
                    assert_eq!(first, leaders, "epoch {epoch}");
                }
                assert!(store.cluster.remove_node(number, gateway.instance).await.unwrap());
            }
        }
    });
    futures::future::join_all(gateways).await;
    assert!(seen.into_inner().unwrap().len() > 10);
}
