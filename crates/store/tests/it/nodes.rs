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
    assert_eq!(store.heartbeat_node(&two, LEASE).await.unwrap(), Heartbeat::Live(vec![two.clone()]));
    assert_eq!(other.heartbeat_node(&one, LEASE).await.unwrap(), Heartbeat::Live(vec![one.clone(), two.clone()]));
    one.port = 1001;
    one.rack = None;
    assert_eq!(other.heartbeat_node(&one, LEASE).await.unwrap(), Heartbeat::Live(vec![one.clone(), two.clone()]));
    assert_eq!(store.live_nodes(LEASE).await.unwrap(), [one.clone(), two.clone()]);
    let mut sql = database.connection().await;
    let silent =
        "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '11 seconds' WHERE node_id = ";
    run(&mut sql, &format!("{silent} 2")).await;
    assert_eq!(other.heartbeat_node(&one, LEASE).await.unwrap(), Heartbeat::Live(vec![one.clone()]));
    assert!(other.remove_node(1, one.instance).await.unwrap());
    assert!(!other.remove_node(1, one.instance).await.unwrap());
    assert!(store.live_nodes(LEASE).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_node_id_is_one_live_process() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let (first, second) = (node(1, 1000), node(1, 2000));
    store.heartbeat_node(&first, LEASE).await.unwrap();
    assert_eq!(store.heartbeat_node(&second, LEASE).await.unwrap(), Heartbeat::Conflict(first.clone()));
    assert!(!store.remove_node(1, second.instance).await.unwrap());
    let mut sql = database.connection().await;
    let silent = "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '11 seconds'";
    run(&mut sql, silent).await;
    assert_eq!(store.heartbeat_node(&second, LEASE).await.unwrap(), Heartbeat::Live(vec![second.clone()]));
    assert_eq!(store.heartbeat_node(&first, LEASE).await.unwrap(), Heartbeat::Conflict(second));
}

#[tokio::test]
async fn of_many_that_start_with_one_node_id_one_gets_it() {
    let database = TestDatabase::new().await;
    let store = database.store();
    let nodes: Vec<Node> = (0..8).map(|port| node(5, port + 1)).collect();
    let heartbeats = futures::future::join_all(nodes.iter().map(|node| store.heartbeat_node(node, LEASE))).await;
    let live = heartbeats.iter().filter(|result| matches!(result, Ok(Heartbeat::Live(_)))).count();
    assert_eq!(live, 1, "{heartbeats:?}");
    for refused in heartbeats.iter().filter(|result| !matches!(result, Ok(Heartbeat::Live(_)))) {
        assert!(matches!(refused, Ok(Heartbeat::Conflict(_)) | Err(StoreError::Contended(_))), "{refused:?}");
    }
}
