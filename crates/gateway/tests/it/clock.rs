//! The database's clock and the gateway's differ: rows have the database's time.

use store::PartitionInterval;
use testkit::{TestDatabase, TestGateway};

use crate::{
    group_requests::{commit, committed, fetched, joined, sync},
    samples::{batch, fetch, metadata, produce},
};

#[tokio::test(flavor = "multi_thread")]
async fn records_and_groups_are_stored_whatever_the_clock_of_the_database_says() {
    for (hours, interval) in [(26, PartitionInterval::Hour), (-26, PartitionInterval::Day)] {
        let database = TestDatabase::empty().await;
        database.set_clock(&format!("pg_catalog.now() + interval '{hours} hours'")).await;
        let gateway = TestGateway::start_on(database, |config| {
            config.store.postgres.time_partition_interval = interval;
            config.server.groups.group_initial_rebalance_delay_ms = 0;
        })
        .await;
        let mut client = gateway.client().await;
        client.call(12, metadata("orders")).await;
        let stored = client.call(9, produce("orders", -1, batch(b"x"))).await;
        assert_eq!(stored.responses[0].partition_responses[0].error_code, 0, "{hours} hours");
        let read = client.call(11, fetch("orders", 0, 1_000)).await;
        let partition = &read.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 1), "{hours} hours");

        assert_eq!(committed(&client.call(8, commit("reader", "orders", 1)).await), 0, "{hours} hours");
        assert_eq!(fetched(&mut client, 8, "reader", "orders").await, (0, 1, "note".to_owned()), "{hours} hours");
        let member = joined(&mut client, 5, "group").await;
        let synced = client.call(3, sync(3, "group", &member)).await;
        assert_eq!((member.error_code, synced.error_code), (0, 0), "{hours} hours");
    }
}
