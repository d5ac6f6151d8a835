//! Consumer groups over the socket: every step at every version, and what survives.

use std::time::{Duration, Instant};

use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteTopicsRequest, DescribeGroupsRequest, JoinGroupResponse, LeaveGroupRequest,
    ListGroupsRequest, OffsetDeleteRequest, OffsetFetchRequest,
    delete_topics_request::DeleteTopicState,
    leave_group_request::MemberIdentity,
    offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic},
    offset_fetch_request::OffsetFetchRequestGroup,
};
use local_postgres::StopMode;
use testkit::{TestDatabase, TestGateway};

use crate::{
    group_requests::{
        ASSIGNMENT, commit, committed, fast, fetched, group, heartbeat, join, joined, sync, text, with_topic,
    },
    samples::{metadata, topic_name},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_lives_and_leaves_at_every_version() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    for version in 0..=9 {
        let id = format!("group-{version}");
        let joined = joined(&mut client, version, &id).await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 1), "v{version}: {joined:?}");
        assert_eq!((joined.leader == joined.member_id, joined.members.len()), (true, 1), "v{version}");
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert_eq!(joined.protocol_type.as_deref(), (version >= 7).then_some("consumer"));

        let at = |max: i16| version.min(max);
        let synced = client.call(at(5), sync(at(5), &id, &joined)).await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, ASSIGNMENT), "v{version}");
        let beat = client.call(at(4), heartbeat(&id, 1, &joined.member_id)).await;
        assert_eq!(beat.error_code, 0);
        let beat = client.call(at(4), heartbeat(&id, 2, &joined.member_id)).await;
        assert_eq!(beat.error_code, 22);
        let mut request = commit(&id, "orders", 1).with_generation_id_or_member_epoch(1);
        request.member_id = joined.member_id.clone();
        assert_eq!(committed(&client.call(version.max(2), request.clone()).await), 0, "v{version}");
        request.generation_id_or_member_epoch = 7;
        assert_eq!(committed(&client.call(version.max(2), request).await), 22);
        let from = version.max(1);
        assert_eq!(fetched(&mut client, from, &id, "orders").await, (0, 1, "note".to_owned()), "v{from}");

        let described = client.call(at(6), DescribeGroupsRequest::default().with_groups(vec![group(&id)])).await;
        let described = &described.groups[0];
        assert_eq!((described.error_code, described.group_state.as_str()), (0, "Stable"), "v{version}");
        assert_eq!(
            (&described.members[0].member_assignment[..], described.protocol_data.as_str()),
            (ASSIGNMENT, "range")
        );
        let deleted = client.call(at(2), DeleteGroupsRequest::default().with_groups_names(vec![group(&id)])).await;
        assert_eq!(deleted.results[0].error_code, 68);

        let leave = LeaveGroupRequest::default().with_group_id(group(&id));
        let leave = match at(5) {
            3.. => leave.with_members(vec![MemberIdentity::default().with_member_id(joined.member_id.clone())]),
            _ => leave.with_member_id(joined.member_id.clone()),
        };
        assert_eq!(client.call(at(5), leave.clone()).await.error_code, 0, "v{version}");
        let again = client.call(at(5), leave).await;
        let code = again.members.first().map_or(again.error_code, |member| member.error_code);
        assert_eq!(code, 25, "v{version}");
        let beat = client.call(at(4), heartbeat(&id, 1, &joined.member_id)).await;
        assert_eq!(beat.error_code, 25);

        let listed = client.call(at(5), ListGroupsRequest::default()).await;
        let listed = listed.groups.iter().find(|listed| listed.group_id.as_str() == id).unwrap();
        assert_eq!(listed.protocol_type.as_str(), "consumer");
        assert_eq!(listed.group_state.as_str(), if version >= 4 { "Empty" } else { "" });
        let deleted = client.call(at(2), DeleteGroupsRequest::default().with_groups_names(vec![group(&id)])).await;
        assert_eq!(deleted.results[0].error_code, 0);
        let deleted = client.call(at(2), DeleteGroupsRequest::default().with_groups_names(vec![group(&id)])).await;
        assert_eq!(deleted.results[0].error_code, 69);
        assert_eq!(fetched(&mut client, from, &id, "orders").await, (0, -1, String::new()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_rebalance_and_the_second_waits_for_the_first() {
    let gateway = TestGateway::start_with(fast).await;
    let (mut one, mut two) = (with_topic(&gateway).await, gateway.client().await);
    let first = joined(&mut one, 9, "g").await;
    assert_eq!(one.call(5, sync(5, "g", &first)).await.error_code, 0);
    let asked = two.call(9, join("g", "")).await;
    let waiting = two.send(9, join("g", &asked.member_id)).await;
    // The first learns of it by its heartbeat.
    let deadline = Instant::now() + Duration::from_secs(5);
    while one.call(4, heartbeat("g", 1, &first.member_id)).await.error_code != 27 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let rejoined = one.call(9, join("g", &first.member_id)).await;
    let second = two.receive(waiting).await;
    assert_eq!((rejoined.generation_id, second.generation_id), (2, 2));
    assert_eq!((rejoined.leader.as_str(), rejoined.members.len(), second.members.len()), (&*first.member_id, 2, 0));
    let waiting = two.send(5, sync(5, "g", &second)).await;
    assert_eq!(one.call(5, sync(5, "g", &rejoined)).await.error_code, 0);
    assert_eq!(two.receive(waiting).await.assignment, ASSIGNMENT);
}

/// Whoever waits in JoinGroup and loses the connection is no member for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_while_it_waits_is_forgotten() {
    let gateway = TestGateway::start_with(fast).await;
    let (mut one, mut two) = (with_topic(&gateway).await, gateway.client().await);
    let first = joined(&mut one, 0, "g").await;
    assert_eq!(one.call(0, sync(0, "g", &first)).await.error_code, 0);
    drop(two.send(0, join("g", "")).await);
    let deadline = Instant::now() + Duration::from_secs(5);
    while one.call(0, heartbeat("g", 1, &first.member_id)).await.error_code != 27 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(two);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let rejoined = one.call(0, join("g", &first.member_id)).await;
    assert_eq!((rejoined.error_code, rejoined.members.len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_static_member_that_restarts_keeps_its_assignment_and_fences_its_predecessor() {
    let gateway = TestGateway::start_with(fast).await;
    let (mut one, mut two) = (with_topic(&gateway).await, gateway.client().await);
    let request = || join("g", "").with_group_instance_id(Some(text("instance")));
    let first = one.call(9, request()).await;
    assert_eq!((first.error_code, first.generation_id), (0, 1));
    let to_sync = sync(5, "g", &first).with_group_instance_id(Some(text("instance")));
    assert_eq!(one.call(5, to_sync).await.error_code, 0);

    let second = two.call(9, request()).await;
    assert_eq!((second.error_code, second.generation_id, second.skip_assignment), (0, 1, true));
    assert_ne!(second.member_id, first.member_id);
    let mut to_sync = sync(5, "g", &second).with_group_instance_id(Some(text("instance")));
    to_sync.assignments.clear();
    assert_eq!(two.call(5, to_sync).await.assignment, ASSIGNMENT);
    let beat = heartbeat("g", 1, &first.member_id).with_group_instance_id(Some(text("instance")));
    assert_eq!(one.call(4, beat).await.error_code, 82);
    // An administrator removes it by its instance id.
    let member = MemberIdentity::default().with_group_instance_id(Some(text("instance")));
    let leave = LeaveGroupRequest::default().with_group_id(group("g")).with_members(vec![member]);
    assert_eq!(one.call(5, leave).await.members[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_gateway_goes_on_with_members_generation_and_offsets() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    let member = joined(&mut client, 9, "g").await;
    assert_eq!(client.call(5, sync(5, "g", &member)).await.error_code, 0);
    let mut request = commit("g", "orders", 1).with_generation_id_or_member_epoch(1);
    request.member_id = member.member_id.clone();
    assert_eq!(committed(&client.call(9, request.clone()).await), 0);
    let (database, in_time) = gateway.stop().await;
    assert!(in_time);

    let gateway = TestGateway::start_on(database, fast).await;
    let mut client = gateway.client().await;
    assert_eq!(client.call(4, heartbeat("g", 1, &member.member_id)).await.error_code, 0);
    let mut again = sync(5, "g", &member);
    again.assignments.clear();
    assert_eq!(client.call(5, again).await.assignment, ASSIGNMENT);
    assert_eq!(fetched(&mut client, 9, "g", "orders").await, (0, 1, "note".to_owned()));
    assert_eq!(committed(&client.call(9, request).await), 0);
}

/// A gateway that was killed leaves its slots leased: until they can be had, members keep their
/// places, commits are told to wait, and nobody hears that there is no offset.
#[tokio::test(flavor = "multi_thread")]
async fn while_another_process_has_the_slots_nobody_hears_no_offset() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    let simple = client.call(9, commit("g", "orders", 1)).await;
    assert_eq!(committed(&simple), 0);
    let (database, _) = gateway.stop().await;
    // As a former process of the same node that died a moment ago.
    let node =
        store::Node { node_id: 1, host: "127.0.0.1".to_owned(), port: 1, rack: None, instance: Default::default() };
    let store = store::Store::connect(database.config()).unwrap();
    let lease = Duration::from_secs(3);
    store.cluster.heartbeat_node(&node, lease).await.unwrap();
    store.cluster.keep_slots(node.instance, lease).await.unwrap();

    let gateway = TestGateway::start_on(database, |config| config.server.groups.coordinator_lease_ms = 3_000).await;
    let mut client = gateway.client().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut members_stayed = false;
    loop {
        for version in [1, 7, 9] {
            assert_eq!(fetched(&mut client, version, "g", "orders").await, (0, 1, "note".to_owned()), "v{version}");
        }
        let code = committed(&client.call(9, commit("g", "orders", 1)).await);
        if code == 0 {
            break;
        }
        assert_eq!(code, 14);
        // Unknown as soon as the group is loaded, and only then.
        let beat = client.call(4, heartbeat("g", 1, "member")).await;
        assert!([0, 25].contains(&beat.error_code), "{beat:?}");
        let synced = client.call(5, sync(5, "g", &JoinGroupResponse::default())).await;
        assert!([27, 25].contains(&synced.error_code), "{synced:?}");
        members_stayed |= beat.error_code == 0 && synced.error_code == 27;
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(members_stayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_without_members_and_what_is_refused() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    assert_eq!(committed(&client.call(9, commit("simple", "orders", 1)).await), 0);
    assert_eq!(committed(&client.call(9, commit("simple", "nowhere", 1)).await), 3);
    let mut large = commit("simple", "orders", 1);
    large.topics[0].partitions[0].committed_metadata = Some(text(&"x".repeat(4_097)));
    assert_eq!(committed(&client.call(9, large).await), 12);
    let unknown = || commit("unknown", "orders", 1).with_generation_id_or_member_epoch(3);
    assert_eq!(committed(&client.call(8, unknown()).await), 22);
    assert_eq!(committed(&client.call(9, unknown()).await), 69);

    let listed = client.call(5, ListGroupsRequest::default()).await;
    assert_eq!(listed.groups.len(), 1);
    assert_eq!((listed.groups[0].group_state.as_str(), listed.groups[0].group_type.as_str()), ("Empty", "classic"));
    let filtered = client.call(5, ListGroupsRequest::default().with_states_filter(vec![text("stable")])).await;
    assert!(filtered.groups.is_empty());
    let described = |name: &str| DescribeGroupsRequest::default().with_groups(vec![group(name)]);
    assert_eq!(client.call(6, described("simple")).await.groups[0].group_state.as_str(), "Empty");
    let dead = client.call(5, described("none")).await;
    assert_eq!((dead.groups[0].error_code, dead.groups[0].group_state.as_str()), (0, "Dead"));
    assert_eq!(client.call(6, described("none")).await.groups[0].error_code, 69);

    let offset_delete = |name: &str, topic: &str| {
        let partition = OffsetDeleteRequestPartition::default().with_partition_index(0);
        let topic = OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
        OffsetDeleteRequest::default().with_group_id(group(name)).with_topics(vec![topic])
    };
    assert_eq!(client.call(0, offset_delete("none", "orders")).await.error_code, 69);
    let deleted = client.call(0, offset_delete("simple", "nowhere")).await;
    assert_eq!((deleted.error_code, deleted.topics[0].partitions[0].error_code), (0, 3));
    let deleted = client.call(0, offset_delete("simple", "orders")).await;
    assert_eq!((deleted.error_code, deleted.topics[0].partitions[0].error_code), (0, 0));
    assert_eq!(fetched(&mut client, 9, "simple", "orders").await.1, -1);

    // With members: the topics that they read are theirs, and nobody else commits.
    let member = joined(&mut client, 9, "live").await;
    assert_eq!(client.call(5, sync(5, "live", &member)).await.error_code, 0);
    assert_eq!(committed(&client.call(9, commit("live", "orders", 1)).await), 25);
    let refused = client.call(0, offset_delete("live", "orders")).await;
    assert_eq!((refused.error_code, refused.topics[0].partitions[0].error_code), (0, 86));

    let empty = client.call(9, join("", "")).await;
    assert_eq!(empty.error_code, 24);
    assert_eq!(client.call(4, heartbeat("", 1, "member")).await.error_code, 24);
    let member = JoinGroupResponse::default().with_generation_id(1).with_member_id(text("member"));
    assert_eq!(client.call(5, sync(5, "", &member)).await.error_code, 24);
    assert_eq!(client.call(2, LeaveGroupRequest::default().with_member_id(text("member"))).await.error_code, 24);
    assert_eq!(client.call(0, offset_delete("", "orders")).await.error_code, 24);
    assert_eq!(committed(&client.call(9, commit("", "orders", 1)).await), 0, "as in Kafka");
    let hasty = client.call(9, join("live", "").with_session_timeout_ms(5)).await;
    assert_eq!(hasty.error_code, 26);
    let other = client.call(9, join("live", "").with_protocol_type(text("connect"))).await;
    assert_eq!(other.error_code, 23);
    let stranger = client.call(9, join("live", "stranger")).await;
    assert_eq!(stranger.error_code, 25);
    let zero = client.call(9, commit("nul\0", "orders", 1)).await;
    assert_eq!(committed(&zero), 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_anew_has_no_old_commits() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    assert_eq!(committed(&client.call(9, commit("g", "orders", 1)).await), 0);
    let state = DeleteTopicState::default().with_name(Some(topic_name("orders")));
    client.call(6, DeleteTopicsRequest::default().with_topics(vec![state])).await;
    client.call(12, metadata("orders")).await;
    assert_eq!(fetched(&mut client, 9, "g", "orders").await, (0, -1, String::new()));
    let all = OffsetFetchRequestGroup::default().with_group_id(group("g")).with_topics(None);
    let all = client.call(9, OffsetFetchRequest::default().with_groups(vec![all])).await;
    assert!(all.groups[0].topics.is_empty(), "{all:?}");
}

/// Members keep their places, commits may be repeated, and whoever joins meanwhile is answered when
/// the generation could be stored.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_goes_away_and_nobody_loses_membership() {
    let gateway = TestGateway::start_on(TestDatabase::on_private_server().await, fast).await;
    let (mut one, mut two) = (with_topic(&gateway).await, gateway.client().await);
    let first = joined(&mut one, 9, "g").await;
    assert_eq!(one.call(5, sync(5, "g", &first)).await.error_code, 0);
    gateway.database().server().stop(StopMode::Immediate).unwrap();

    let mut request = commit("g", "orders", 1).with_generation_id_or_member_epoch(1);
    request.member_id = first.member_id.clone();
    assert_eq!(committed(&one.call(9, request.clone()).await), 15);
    assert_eq!(fetched(&mut one, 9, "g", "orders").await.0, 14);
    assert_eq!(one.call(4, heartbeat("g", 1, &first.member_id)).await.error_code, 0);
    let waiting = two.send(9, join("other", "").with_group_instance_id(Some(text("static")))).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    gateway.database().server().restart().unwrap();

    let joined = two.receive(waiting).await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 1), "{joined:?}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while committed(&one.call(9, request.clone()).await) != 0 {
        assert_eq!(one.call(4, heartbeat("g", 1, &first.member_id)).await.error_code, 0);
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What a pgQueue worker and aggressive retention see of a Kafka member (storage.md D9, D10).
#[tokio::test(flavor = "multi_thread")]
async fn members_lease_their_partitions_and_are_registered() {
    let gateway = TestGateway::start_with(fast).await;
    let mut client = with_topic(&gateway).await;
    let mut connection = gateway.database().connection().await;
    let member = joined(&mut client, 9, "g").await;
    assert_eq!(client.call(5, sync(5, "g", &member)).await.error_code, 0);
    let mut wait = async |sql: &'static str, count: i64| {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let found: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
            if found == count {
                return;
            }
            assert!(Instant::now() < deadline, "{found} instead of {count}: {sql}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let leased = "SELECT count(*) FROM queue.metadata_queue_kafka_partition_lease \
        WHERE consumer_group = 'g' AND lock_owner LIKE 'g:%' AND locked_until > now()";
    let from_the_answer_on: i64 =
        sqlx::query_scalar(leased).fetch_one(&mut gateway.database().connection().await).await.unwrap();
    assert_eq!(from_the_answer_on, 2, "of both partitions");
    wait("SELECT count(*) FROM queue.metadata_queue_consumer_registration WHERE consumer_group = 'g'", 1).await;
    assert_eq!(client.call(4, heartbeat("g", 1, &member.member_id)).await.error_code, 0);
    let identity = MemberIdentity::default().with_member_id(member.member_id.clone());
    let leave = LeaveGroupRequest::default().with_group_id(group("g")).with_members(vec![identity]);
    assert_eq!(client.call(5, leave).await.error_code, 0);
    wait(leased, 0).await;
    assert_eq!(committed(&client.call(9, commit("simple", "orders", 1)).await), 0);
    wait("SELECT count(*) FROM queue.metadata_queue_consumer_registration WHERE consumer_group = 'simple'", 1).await;
}
