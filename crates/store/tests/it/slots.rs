use std::{collections::BTreeSet, time::Duration};

use sqlx::AssertSqlSafe;
use store::{Heartbeat, Node, SlotLease, Slots, Store};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::{number, run};

const LEASE: Duration = Duration::from_secs(10);
const TABLE: &str = "queue.metadata_queue_kafka_coordinator_slot";

/// A gateway with a store of its own.
struct Gateway {
    store: Store,
    node: Node,
}

impl Gateway {
    fn new(database: &TestDatabase, node_id: i32) -> Self {
        let store = Store::connect(database.config()).unwrap();
        let node = Node { node_id, host: "h".to_owned(), port: 9092, rack: None, instance: Uuid::new_v4() };
        Self { store, node }
    }

    async fn tick(&self) -> Slots {
        let heartbeat = self.store.cluster.heartbeat_node(&self.node, LEASE).await.unwrap();
        assert!(matches!(heartbeat, Heartbeat::Live(_)));
        self.store.cluster.keep_slots(self.node.instance, LEASE).await.unwrap()
    }

    fn of(&self, slots: &Slots) -> Vec<SlotLease> {
        slots.of(self.node.instance).collect()
    }

    /// As a gateway does that finds it has too many.
    async fn give_up(&self, slots: &Slots) {
        let mine = self.of(slots);
        let excess: Vec<i32> = mine.iter().skip(slots.fair_share).map(|lease| lease.slot).collect();
        self.store.cluster.release_slots(self.node.instance, Some(&excess)).await.unwrap();
    }
}

#[tokio::test]
async fn one_gateway_has_all_slots_and_three_share_them() {
    let database = TestDatabase::new().await;
    let (one, two, three) = (Gateway::new(&database, 1), Gateway::new(&database, 2), Gateway::new(&database, 3));
    let slots = one.tick().await;
    assert_eq!((slots.slots.len(), one.of(&slots).len(), slots.fair_share), (64, 64, 64));
    assert!(slots.slots.iter().all(|slot| slot.node_id == Some(1) && slot.fencing == 1));
    let again = one.tick().await;
    assert_eq!(again, slots, "renewing changes nothing that is seen");
    assert!(two.of(&two.tick().await).is_empty());
    three.tick().await;
    for _ in 0..2 {
        for gateway in [&one, &two, &three] {
            let slots = gateway.tick().await;
            gateway.give_up(&slots).await;
        }
    }
    let slots = one.tick().await;
    let counts: Vec<usize> = [&one, &two, &three].map(|gateway| gateway.of(&slots).len()).into();
    assert_eq!((slots.fair_share, counts.iter().sum::<usize>()), (22, 64));
    assert!(counts.iter().all(|count| (20..=22).contains(count)), "{counts:?}");
    // The others see the same, and where a group is.
    let seen = two.tick().await;
    assert_eq!(seen, slots);
    let of_group = &seen.slots[seen.of_group("some group") as usize];
    assert_eq!(of_group.slot, seen.of_group("some group"));
    assert!(of_group.node_id.is_some());
}

#[tokio::test]
async fn slots_of_a_gateway_that_is_gone_are_taken_with_higher_fencing() {
    let database = TestDatabase::new().await;
    let (one, two) = (Gateway::new(&database, 1), Gateway::new(&database, 2));
    let before = one.of(&one.tick().await);
    assert!(two.of(&two.tick().await).is_empty());
    let mut sql = database.connection().await;
    run(&mut sql, &format!("UPDATE {TABLE} SET locked_until = now() - interval '1 second'")).await;
    run(
        &mut sql,
        "UPDATE queue.metadata_queue_kafka_node SET heartbeat_at = now() - interval '1 minute' WHERE node_id = 1",
    )
    .await;
    let slots = two.tick().await;
    let taken = two.of(&slots);
    assert_eq!(taken.len(), 64);
    assert!(taken.iter().zip(&before).all(|(after, before)| after.fencing == before.fencing + 1));
    assert!(one.of(&one.tick().await).is_empty(), "it was only slow, and sees that it has nothing");
    // What expired without anybody taking it goes on.
    run(&mut sql, &format!("UPDATE {TABLE} SET locked_until = now() - interval '1 second'")).await;
    assert_eq!(two.of(&two.tick().await), taken);
    // At its end it gives all up.
    assert_eq!(two.store.cluster.release_slots(two.node.instance, None).await.unwrap(), 64);
    assert!(two.store.cluster.remove_node(2, two.node.instance).await.unwrap());
    let back = one.of(&one.tick().await);
    assert_eq!(back.len(), 64);
    assert!(back.iter().all(|slot| slot.fencing == 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_never_two_gateways() {
    let database = TestDatabase::new().await;
    let gateways: Vec<Gateway> = (0..6).map(|node_id| Gateway::new(&database, node_id)).collect();
    for gateway in &gateways {
        gateway.store.cluster.heartbeat_node(&gateway.node, LEASE).await.unwrap();
    }
    for round in 0..20 {
        let ticks = gateways.iter().map(Gateway::tick);
        let all = futures::future::join_all(ticks).await;
        let mut seen = BTreeSet::new();
        for (gateway, slots) in gateways.iter().zip(&all) {
            assert!(slots.fair_share == 11 && gateway.of(slots).len() <= 11);
            for lease in gateway.of(slots) {
                assert!(seen.insert(lease.slot), "slot {} twice in round {round}", lease.slot);
            }
        }
        let loser = &gateways[round % gateways.len()];
        loser.store.cluster.release_slots(loser.node.instance, None).await.unwrap();
    }
    let mut sql = database.connection().await;
    let owned = format!("SELECT count(*) FROM {TABLE} WHERE lock_owner IS NOT NULL");
    assert!(number(&mut sql, &owned).await >= 53);
}

#[tokio::test]
async fn the_slots_are_made_once() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    run(&mut sql, &format!("DELETE FROM {TABLE} WHERE slot >= 16")).await;
    run(&mut sql, "DELETE FROM queue.metadata_queue_kafka_migration WHERE script LIKE 'V003%'").await;
    database.store().schema.migrate().await.unwrap();
    let count: i64 =
        sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {TABLE}"))).fetch_one(&mut sql).await.unwrap();
    assert_eq!(count, 16);
    let one = Gateway::new(&database, 1);
    assert_eq!(one.tick().await.fair_share, 16);
}

/// Under load all connections are in use for longer than a lease.
#[tokio::test]
async fn the_lease_is_renewed_while_all_connections_are_in_use() {
    let database = TestDatabase::new().await;
    let store = database.store_with(|config| {
        config.postgres.db_max_connections = 2;
        config.postgres.acquire_timeout = Duration::from_secs(1);
    });
    let node = Node { node_id: 1, host: "h".to_owned(), port: 9092, rack: None, instance: Uuid::new_v4() };
    let gateway = Gateway { store: store.clone(), node };
    let in_use = [store.acquire().await.unwrap(), store.acquire().await.unwrap()];
    assert!(store.acquire().await.is_err());
    let slots = gateway.tick().await;
    assert_eq!(gateway.of(&slots).len(), 64);
    assert_eq!(store.cluster.release_slots(gateway.node.instance, None).await.unwrap(), 64);
    assert!(store.cluster.remove_node(1, gateway.node.instance).await.unwrap());
    drop(in_use);
}

/// A commit of a group may wait for a row that somebody holds; the lease must not wait with it.
#[tokio::test]
async fn a_lease_is_renewed_though_a_save_is_under_way() {
    let database = TestDatabase::new().await;
    let (one, two) = (Gateway::new(&database, 1), Gateway::new(&database, 2));
    let before = one.tick().await;
    let mut saving = database.connection().await;
    run(&mut saving, &format!("BEGIN; SELECT FROM {TABLE} WHERE slot = 7 FOR KEY SHARE")).await;
    let after = tokio::time::timeout(Duration::from_secs(5), one.tick()).await.expect("does not wait");
    assert_eq!(one.of(&after), one.of(&before));
    // Nobody takes the slot before the save has ended, though its lease is over.
    let mut sql = database.connection().await;
    run(&mut sql, &format!("UPDATE {TABLE} SET locked_until = now() - interval '1 second'")).await;
    run(&mut sql, "DELETE FROM queue.metadata_queue_kafka_node").await;
    let taken = two.of(&two.tick().await);
    assert_eq!((taken.len(), taken.iter().any(|lease| lease.slot == 7)), (63, false));
    run(&mut saving, "COMMIT").await;
    assert_eq!(two.of(&two.tick().await).len(), 64);
}
