//! Which of several gateways coordinates a group.

use std::time::{Duration, Instant};

use gateway::config::Config;
use kafka_protocol::{
    messages::{FindCoordinatorRequest, FindCoordinatorResponse, MetadataResponse},
    protocol::StrBytes,
};
use store::NewTopic;
use testkit::{Client, TestGateway};

use crate::{
    group_requests::{fast, fetched, heartbeat, join, sync, text, with_topic},
    samples::metadata,
};

/// Two gateways: each group has one coordinator, both name the same, and the other sends away.
#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_share_the_groups_and_one_takes_over() {
    let lease = |config: &mut Config| {
        fast(config);
        config.server.groups.coordinator_lease_ms = 1_500;
    };
    let first = TestGateway::start_with(lease).await;
    with_topic(&first).await;
    let second = second_gateway(&first, lease).await;
    let (mut one, mut two) = (first.client().await, Client::connect(second.kafka_addr()).await);
    let ids: Vec<String> = (0..8).map(|number| format!("group-{number}")).collect();
    let owners = owners(&mut one, &mut two, &ids).await;
    share_the_leadership(&first, &mut one, &mut two).await;
    let of_second = &ids[owners.iter().position(|owner| *owner == 2).unwrap()];
    assert_eq!(one.call(4, heartbeat(of_second, 1, "m")).await.error_code, 16);
    assert_eq!(fetched(&mut one, 9, of_second, "orders").await, (0, -1, String::new()), "offsets are everybody's");
    // The slots may be loading for a moment.
    let deadline = Instant::now() + Duration::from_secs(20);
    let member = loop {
        let member = two.call(9, join(of_second, "")).await;
        if member.error_code != 14 {
            break member;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let member = two.call(9, join(of_second, &member.member_id)).await;
    assert_eq!(member.error_code, 0, "{member:?}");
    assert_eq!(two.call(5, sync(5, of_second, &member)).await.error_code, 0);

    assert!(second.shutdown().await);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let beat = one.call(4, heartbeat(of_second, 1, &member.member_id)).await;
        if beat.error_code == 0 {
            break;
        }
        assert!([14, 15, 16].contains(&beat.error_code), "{beat:?}");
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn second_gateway(first: &TestGateway, options: fn(&mut Config)) -> gateway::Handle {
    let mut config = Config::defaults();
    config.store.postgres.database_url = Some(first.database().url().to_owned());
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.server.http_listen = ([127, 0, 0, 1], 0).into();
    config.server.node_id = 2;
    options(&mut config);
    gateway::Gateway::start(config).await.unwrap()
}

/// Node ids of the coordinators, when both gateways name the same and each has some.
async fn owners(one: &mut Client, two: &mut Client, ids: &[String]) -> Vec<i32> {
    let keys: Vec<StrBytes> = ids.iter().map(|id| text(id)).collect();
    let find = || FindCoordinatorRequest::default().with_coordinator_keys(keys.clone());
    let node_ids = |found: FindCoordinatorResponse| -> Vec<i32> {
        found.coordinators.iter().map(|coordinator| coordinator.node_id.0).collect()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (of_one, of_two) = (node_ids(one.call(6, find()).await), node_ids(two.call(6, find()).await));
        if of_one == of_two && of_one.contains(&1) && of_one.contains(&2) && !of_one.contains(&-1) {
            return of_one;
        }
        assert!(Instant::now() < deadline, "{of_one:?} {of_two:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn share_the_leadership(first: &TestGateway, one: &mut Client, two: &mut Client) {
    let topic = NewTopic {
        name: "wide".to_owned(),
        partition_count: 32,
        retention_max_age_seconds: 86_400,
        configs: Default::default(),
    };
    first.database().store().catalog.create_topic(&topic).await.unwrap();
    let leaders = |found: &MetadataResponse| -> Vec<i32> {
        found.topics[0].partitions.iter().map(|partition| partition.leader_id.0).collect()
    };
    let (of_one, of_two) = (one.call(12, metadata("wide")).await, two.call(12, metadata("wide")).await);
    assert_eq!((of_one.brokers.len(), of_two.brokers.len()), (2, 2));
    assert_eq!(leaders(&of_one), leaders(&of_two));
    assert!((8..24).contains(&leaders(&of_one).iter().filter(|leader| **leader == 1).count()));
}
