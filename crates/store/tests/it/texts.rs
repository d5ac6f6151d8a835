//! Texts of clients that Postgres cannot hold as text: with NUL, or with characters that the database's
//! encoding lacks.

use std::time::Duration;

use store::{PartitionHold, PartitionKey, StoredGroup};
use testkit::TestDatabase;

use crate::{
    offsets::create,
    pgqueue::{Worker, enqueue},
};

/// The members of a group keep workers off, whatever their ids are made of; a name that no topic can have
/// is no topic.
#[tokio::test]
async fn ids_and_names_that_postgres_cannot_hold() {
    for encoding in ["UTF8", "LATIN1"] {
        let database = TestDatabase::with_encoding(encoding).await;
        let store = database.store();
        let partition = PartitionKey::new(create(store, "t", 1).await.id, 0);

        let names = ["nul\0", "t", "emoji 😀"];
        let found: Vec<bool> = store.catalog.topics(&names).await.unwrap().iter().map(Option::is_some).collect();
        assert_eq!(found, [false, true, false], "{encoding}");
        for name in names {
            assert_eq!(store.delete_topic(name).await.unwrap(), name == "t", "{encoding}");
        }

        let partition = PartitionKey::new(create(store, "t", 1).await.id, partition.partition_id);
        enqueue(&mut database.connection().await, partition, 1, &[5]).await;
        let hold = |member_id| PartitionHold { group: "g", member_id, partition, duration: Duration::from_secs(60) };
        store.groups.hold_partitions(&[hold("client\0😀-1")]).await.unwrap();
        let mut worker = Worker::new(&database, "g").await;
        assert!(worker.receive(partition, 60.0).await.is_empty(), "{encoding}");
        store.groups.renew_partitions(&[hold("client\0😀-2")]).await.unwrap();

        let instance = uuid::Uuid::new_v4();
        let slots = store.cluster.keep_slots(instance, Duration::from_secs(60)).await.unwrap();
        let group = StoredGroup {
            group_id: "g".to_owned(),
            generation: 1,
            protocol_type: "con\0sumer 😀".to_owned(),
            has_members: true,
            state: b"\0".to_vec(),
        };
        assert!(store.groups.save_group(&group, slots.of(instance).next().unwrap()).await.unwrap(), "{encoding}");
    }
}
