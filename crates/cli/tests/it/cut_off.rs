//! A gateway that cannot reach Postgres any more, while another can: when its lease is over it
//! confirms nothing and its clients are sent away, and nothing that it sent late counts.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::{
    messages::{
        FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest,
        OffsetCommitResponse, OffsetFetchRequest, SyncGroupRequest, TopicName,
        join_group_request::JoinGroupRequestProtocol,
        offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
        offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics},
        sync_group_request::SyncGroupRequestAssignment,
    },
    protocol::StrBytes,
};
use sqlx::{Connection, PgConnection};
use store::{OffsetQuery, Store};
use testkit::Client;

use crate::{
    chaos_groups::{LEASE, PATIENCE, Run, TOPIC, prepared, start, wait},
    link::Link,
    load::rounds,
    process::GatewayProcess,
};

/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: look the coordinator up
/// again and repeat.
const ELSEWHERE: [i16; 3] = [14, 15, 16];

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_postgres_confirms_nothing_after_its_lease() {
    let _alone = crate::ALONE.lock().await;
    let database = prepared().await;
    let link = Link::to(database.server().port()).await;
    let gateways = [start(&link.url(database.url()), 1), start(database.url(), 2)];
    let mut one = Client::connect(gateways[0].address()).await;
    let mut two = Client::connect(gateways[1].address()).await;
    let [beating, committing, joining, syncing] = groups_of_node_1(&mut one, &mut two).await;
    let member = settled(&mut one, &beating).await;
    let committer = settled(&mut one, &committing).await;
    settled(&mut one, &joining).await;
    let leader = joined(&mut one, &syncing).await;
    assert_eq!(committed(&one.call(9, commit(&committing, &committer, 1)).await), 0);

    link.cut();
    let cut = Instant::now();
    // Each on a connection of its own: they wait.
    let mut waiting = [one_more(&gateways[0]).await, one_more(&gateways[0]).await, one_more(&gateways[0]).await];
    let [by_committer, by_joiner, by_leader] = &mut waiting;
    let commit_sent = by_committer.send(9, commit(&committing, &committer, 2)).await;
    let join_sent = by_joiner.send(9, join(&joining, "").with_group_instance_id(Some("static".into()))).await;
    let sync_sent = by_leader.send(5, sync(&syncing, &leader)).await;

    // Confirmed by the first while it has its lease; then it takes its leave.
    let mut other_had_it = false;
    let sent_away = loop {
        let sent = cut.elapsed();
        let Some(answer) = one.try_call(4, heartbeat(&beating, &member)).await else { break sent };
        match answer.error_code {
            0 => assert!(!other_had_it && sent <= LEASE, "confirmed by both, or {sent:?} after the cut"),
            // The connection is about to close.
            answer => assert!(ELSEWHERE.contains(&answer), "{answer} to a heartbeat {sent:?} after the cut"),
        }
        let answer = two.call(4, heartbeat(&beating, &member)).await.error_code;
        assert!(answer == 0 || ELSEWHERE.contains(&answer), "{answer} to a heartbeat at the other gateway");
        other_had_it |= answer == 0;
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    // All who wait hear of it too, and Postgres is still away.
    let late = by_committer.try_receive(commit_sent).await.map(|answer| committed(&answer));
    assert!(late.is_none_or(|code| ELSEWHERE.contains(&code) || code == 7), "{late:?} to the commit");
    let late = by_joiner.try_receive(join_sent).await.map(|answer| answer.error_code);
    assert!(late.is_none_or(|code| ELSEWHERE.contains(&code)), "{late:?} to JoinGroup");
    let late = by_leader.try_receive(sync_sent).await.map(|answer| answer.error_code);
    assert!(late.is_none_or(|code| ELSEWHERE.contains(&code)), "{late:?} to SyncGroup");
    let mut another = one_more(&gateways[0]).await;
    assert!(another.try_call(4, heartbeat(&beating, &member)).await.is_none(), "a new connection");
    println!("sent away by the first gateway {sent_away:?} after the cut, all {:?} after it", cut.elapsed());

    wait("the other gateway", async || two.call(4, heartbeat(&beating, &member)).await.error_code == 0).await;
    println!("confirmed by the other gateway {:?} after the cut", cut.elapsed());
    until_committed(&mut two, commit(&committing, &committer, 3)).await;
    link.resume();
    // It takes its place again, and what it has sent to Postgres before is known to be late.
    let mut one = until_served(&gateways[0]).await;
    groups_of_node_1::<1>(&mut one, &mut two).await;
    assert_eq!(stored_offset(database.store(), &committing).await, Some(3));
}

/// A connection on which requests are answered.
async fn until_served(gateway: &GatewayProcess) -> Client {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = one_more(gateway).await;
        if client.try_call(6, FindCoordinatorRequest::default()).await.is_some() {
            return client;
        }
        assert!(Instant::now() < deadline, "not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// They are in the database. After NOT_COORDINATOR librdkafka never asks again, and its consumer never
/// starts to read (confluentinc/librdkafka issue 5586).
#[tokio::test(flavor = "multi_thread")]
async fn every_gateway_tells_the_committed_offsets() {
    let _alone = crate::ALONE.lock().await;
    let database = prepared().await;
    let gateways = [start(database.url(), 1), start(database.url(), 2)];
    let mut one = Client::connect(gateways[0].address()).await;
    let mut two = Client::connect(gateways[1].address()).await;
    let [group] = groups_of_node_1(&mut one, &mut two).await;
    let member = settled(&mut one, &group).await;
    assert_eq!(committed(&one.call(9, commit(&group, &member, 7)).await), 0);
    let topic = OffsetFetchRequestTopics::default().with_name(TopicName(TOPIC.into())).with_partition_indexes(vec![0]);
    let asked = OffsetFetchRequestGroup::default().with_group_id(group_id(&group)).with_topics(Some(vec![topic]));
    let told = two.call(9, OffsetFetchRequest::default().with_groups(vec![asked])).await.groups.remove(0);
    assert_eq!(told.error_code, 0);
    let partition = &told.topics[0].partitions[0];
    assert_eq!((partition.error_code, partition.committed_offset), (0, 7));
}

/// The other gateway takes over although the first lives, and what the first still sends to Postgres
/// when it gets through again changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn groups_survive_a_gateway_that_is_cut_off_from_postgres() {
    let _alone = crate::ALONE.lock().await;
    let database = prepared().await;
    let link = Link::to(database.server().port()).await;
    let gateways = [start(&link.url(database.url()), 1), start(database.url(), 2)];
    let bootstrap = gateways.each_ref().map(GatewayProcess::bootstrap).join(",");
    let mut run = Run::start(database.url(), bootstrap).await;
    // A cut takes ten times as long as a kill.
    for round in 0..rounds(20) / 10 {
        coordinators(database.url(), 2).await;
        run.pause(LEASE).await;
        link.cut();
        coordinators(database.url(), 1).await;
        run.progress().await;
        match round % 2 {
            0 => link.resume(),
            _ => link.reset(),
        }
        run.change_members();
    }
    run.finish().await;
}

/// Waits until so many gateways share the coordinator slots.
async fn coordinators(url: &str, count: i64) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = "SELECT count(DISTINCT lock_owner) FROM queue.metadata_queue_kafka_coordinator_slot \
         WHERE locked_until > now()";
    wait("coordinators", async || sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut connection).await.unwrap() == count)
        .await;
}

/// Ids of groups that the first gateway coordinates, when both say so.
async fn groups_of_node_1<const N: usize>(one: &mut Client, two: &mut Client) -> [String; N] {
    let ids: Vec<String> = (0..8 * N).map(|number| format!("group-{number}")).collect();
    let keys: Vec<StrBytes> = ids.iter().map(|id| StrBytes::from_string(id.clone())).collect();
    let find = || FindCoordinatorRequest::default().with_coordinator_keys(keys.clone());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (of_one, of_two) = (one.call(6, find()).await.coordinators, two.call(6, find()).await.coordinators);
        let is_shared = [1, 2].iter().all(|id| of_one.iter().any(|coordinator| coordinator.node_id.0 == *id));
        if of_one == of_two && is_shared {
            let first = ids.iter().zip(of_one).filter(|(_, coordinator)| coordinator.node_id.0 == 1);
            let first: Vec<String> = first.map(|(id, _)| id.clone()).take(N).collect();
            return first.try_into().unwrap();
        }
        assert!(Instant::now() < deadline, "{of_one:?} {of_two:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The only member of a stable group.
async fn settled(client: &mut Client, group: &str) -> JoinGroupResponse {
    let member = joined(client, group).await;
    assert_eq!(client.call(5, sync(group, &member)).await.error_code, 0);
    member
}

async fn joined(client: &mut Client, group: &str) -> JoinGroupResponse {
    let first = client.call(9, join(group, "")).await;
    let member = client.call(9, join(group, &first.member_id)).await;
    assert_eq!(member.error_code, 0, "{member:?}");
    member
}

async fn one_more(gateway: &GatewayProcess) -> Client {
    Client::connect(gateway.address()).await
}

/// Until a new coordinator is ready.
async fn until_committed(client: &mut Client, commit: OffsetCommitRequest) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match committed(&client.call(9, commit.clone()).await) {
            0 => return,
            answer => assert!(ELSEWHERE.contains(&answer) && Instant::now() < deadline, "{answer}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn stored_offset(store: &Store, group: &str) -> Option<i64> {
    let offsets = store.groups.fetch_offsets(&[OffsetQuery { group, partitions: None }]).await.unwrap();
    offsets.first().map(|stored| stored.offset)
}

fn group_id(id: &str) -> GroupId {
    StrBytes::from_string(id.to_owned()).into()
}

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    // Version 1, no topics, no user data.
    let subscription = Bytes::from_static(b"\0\x01\0\0\0\0\xff\xff\xff\xff");
    let protocol = JoinGroupRequestProtocol::default().with_name("range".into()).with_metadata(subscription);
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_session_timeout_ms(120_000)
        .with_rebalance_timeout_ms(120_000)
        .with_member_id(StrBytes::from_string(member_id.to_owned()))
        .with_protocol_type("consumer".into())
        .with_protocols(vec![protocol])
}

fn sync(group: &str, member: &JoinGroupResponse) -> SyncGroupRequest {
    let assignment = SyncGroupRequestAssignment::default().with_member_id(member.member_id.clone());
    SyncGroupRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id(member.generation_id)
        .with_member_id(member.member_id.clone())
        .with_protocol_type(Some("consumer".into()))
        .with_protocol_name(Some("range".into()))
        .with_assignments(vec![assignment])
}

fn heartbeat(group: &str, member: &JoinGroupResponse) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id(member.generation_id)
        .with_member_id(member.member_id.clone())
}

fn commit(group: &str, member: &JoinGroupResponse, offset: i64) -> OffsetCommitRequest {
    let partition =
        OffsetCommitRequestPartition::default().with_committed_offset(offset).with_committed_metadata(Some("".into()));
    let topic = OffsetCommitRequestTopic::default().with_name(TopicName(TOPIC.into())).with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(member.generation_id)
        .with_member_id(member.member_id.clone())
        .with_topics(vec![topic])
}

fn committed(response: &OffsetCommitResponse) -> i16 {
    response.topics[0].partitions[0].error_code
}
