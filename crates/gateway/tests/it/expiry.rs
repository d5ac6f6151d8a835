//! What of a group ends by itself, and when (KIP-211). Time passes by moving what is stored into the past.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gateway::config::Config;
use kafka_protocol::messages::{
    DeleteTopicsRequest, DescribeGroupsRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    OffsetFetchRequest, delete_topics_request::DeleteTopicState, leave_group_request::MemberIdentity,
    offset_fetch_request::OffsetFetchRequestGroup,
};
use testkit::{Client, TestGateway};

use crate::{
    group_requests::{commit, committed, fetched, group, heartbeat, join, sync, with_topic},
    samples::{metadata, topic_name},
};

const PATIENCE: Duration = Duration::from_secs(120);

fn an_hour(config: &mut Config) {
    config.server.groups.group_initial_rebalance_delay_ms = 0;
    config.server.groups.offsets_retention_minutes = 60;
    config.server.groups.offsets_retention_check_interval_ms = 50;
}

/// The id of the only member of a group that reads "orders"; its session does not end in a test.
async fn member(client: &mut Client, group_id: &str, protocol_type: &'static str) -> String {
    let request = join(group_id, "").with_session_timeout_ms(600_000).with_protocol_type(protocol_type.into());
    let joined = client.call(3, request).await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 1), "{joined:?}");
    assert_eq!(client.call(3, sync(3, group_id, &joined)).await.error_code, 0);
    joined.member_id.to_string()
}

async fn commit_as(client: &mut Client, group_id: &str, member_id: &str, offset: i64) {
    commit_to(client, group_id, member_id, "orders", offset).await;
}

/// "other" is not what the member reads.
async fn commit_both(client: &mut Client, group_id: &str, member_id: &str) {
    for topic in ["orders", "other"] {
        commit_to(client, group_id, member_id, topic, 1).await;
    }
}

async fn commit_to(client: &mut Client, group_id: &str, member_id: &str, topic: &str, offset: i64) {
    let request = commit(group_id, topic, offset).with_generation_id_or_member_epoch(1);
    let request = request.with_member_id(member_id.to_owned().into());
    assert_eq!(committed(&client.call(8, request).await), 0);
}

async fn leave(client: &mut Client, group_id: &str, member_id: &str) {
    let identity = MemberIdentity::default().with_member_id(member_id.to_owned().into());
    let request = LeaveGroupRequest::default().with_group_id(group(group_id)).with_members(vec![identity]);
    assert_eq!(client.call(5, request).await.members[0].error_code, 0);
}

/// All but what is young and the group that was left now.
const TWO_HOURS_AGO: &str = "
        SET search_path TO queue;
        UPDATE metadata_queue_consumer_offset SET kafka_committed_at = kafka_committed_at - interval '2 hours'
          WHERE consumer_group <> 'young';
        UPDATE metadata_queue_consumer_offset SET kafka_expire_at = kafka_expire_at - interval '2 hours';
        UPDATE metadata_queue_consumer_registration SET last_heartbeat_at = last_heartbeat_at - interval '2 hours',
          kafka_heartbeat_at = kafka_heartbeat_at - interval '2 hours';
        UPDATE metadata_queue_kafka_group SET updated_at = updated_at - interval '2 hours',
          state = convert_to(replace(convert_from(state, 'UTF8'), '\"state_since\":', '\"state_since\":-'), 'UTF8')
          WHERE group_id <> 'left now'";

/// Ids and states; waits for the groups to be loaded.
async fn list(client: &mut Client) -> Vec<(String, String)> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = client.call(5, ListGroupsRequest::default()).await;
        if listed.error_code == 0 {
            let entry = |group: &kafka_protocol::messages::list_groups_response::ListedGroup| {
                (group.group_id.to_string(), group.group_state.to_string())
            };
            return listed.groups.iter().map(entry).collect();
        }
        assert!(listed.error_code == 14 && Instant::now() < deadline, "{listed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_end_with_their_retention_and_groups_with_their_offsets() {
    let gateway = TestGateway::start_with(an_hour).await;
    let mut client = with_topic(&gateway).await;
    for group_id in ["simple", "young"] {
        assert_eq!(committed(&client.call(8, commit(group_id, "orders", 1)).await), 0);
    }
    // OffsetCommit 2 to 4 say themselves for how long.
    for (group_id, hours) in [("short", 1), ("long", 100)] {
        let request = commit(group_id, "orders", 1).with_retention_time_ms(hours * 3_600_000);
        assert_eq!(committed(&client.call(4, request).await), 0);
    }
    let live = member(&mut client, "live", "consumer").await;
    commit_as(&mut client, "live", &live, 1).await;
    // Nobody knows which topics it reads.
    let opaque = member(&mut client, "opaque", "connect").await;
    commit_as(&mut client, "opaque", &opaque, 1).await;
    for group_id in ["left", "left now", "left without"] {
        let id = member(&mut client, group_id, "consumer").await;
        if group_id != "left without" {
            commit_as(&mut client, group_id, &id, 1).await;
        }
        leave(&mut client, group_id, &id).await;
    }
    assert_eq!(list(&mut client).await.len(), 9);
    let (database, in_time) = gateway.stop().await;
    assert!(in_time);

    sqlx::raw_sql(TWO_HOURS_AGO).execute(&mut database.connection().await).await.unwrap();
    let gateway = TestGateway::start_on(database, an_hour).await;
    let mut client = gateway.client().await;
    let left = [("left now", "Empty"), ("live", "Stable"), ("long", "Empty"), ("opaque", "Stable"), ("young", "Empty")];
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = list(&mut client).await;
        if listed.len() <= left.len() {
            assert!(listed.iter().map(|(id, state)| (id.as_str(), state.as_str())).eq(left), "{listed:?}");
            break;
        }
        assert!(Instant::now() < deadline, "{listed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (group_id, _) in left {
        assert_eq!(fetched(&mut client, 8, group_id, "orders").await, (0, 1, "note".to_owned()), "{group_id}");
    }
    for group_id in ["simple", "short", "left", "left without"] {
        assert_eq!(fetched(&mut client, 8, group_id, "orders").await, (0, -1, String::new()), "{group_id}");
        let described = client.call(6, DescribeGroupsRequest::default().with_groups(vec![group(group_id)])).await;
        let described = &described.groups[0];
        assert_eq!((described.error_code, described.group_state.as_str()), (69, "Dead"));
        assert_eq!(described.error_message.as_deref(), Some(format!("Group {group_id} not found.").as_str()));
    }
    assert_eq!(client.call(4, heartbeat("live", 1, &live)).await.error_code, 0);
    commit_as(&mut client, "live", &live, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_keep_the_offsets_of_the_topics_that_they_read() {
    let gateway = TestGateway::start_with(an_hour).await;
    let mut client = with_topic(&gateway).await;
    assert_eq!(client.call(12, metadata("other")).await.topics[0].error_code, 0);
    let unreadable = join("unreadable", "").with_session_timeout_ms(600_000);
    let unreadable = with_subscription(unreadable, b"\0");
    // As if it were a topic; Postgres knows no such text.
    let strange = join("strange", "").with_session_timeout_ms(600_000);
    let strange = with_subscription(strange, b"\0\0\0\0\0\x02\0\x01\0\0\x06orders\xff\xff\xff\xff");
    for request in [unreadable, strange] {
        let group_id = request.group_id.to_string();
        let joined = client.call(3, request).await;
        assert_eq!(client.call(3, sync(3, &group_id, &joined)).await.error_code, 0);
        commit_both(&mut client, &group_id, &joined.member_id).await;
    }
    for (group_id, protocol_type) in [("live", "consumer"), ("shared", "consumer"), ("opaque", "connect")] {
        let id = member(&mut client, group_id, protocol_type).await;
        commit_both(&mut client, group_id, &id).await;
    }
    let two_hours_ago = "
        SET search_path TO queue;
        BEGIN;
        INSERT INTO metadata_queue_consumer_registration (consumer_group, topic_id)
          SELECT 'shared', id FROM metadata_queue_topic WHERE topic_name = 'other';
        UPDATE metadata_queue_consumer_offset SET kafka_committed_at = kafka_committed_at - interval '2 hours';
        COMMIT";
    sqlx::raw_sql(two_hours_ago).execute(&mut gateway.database().connection().await).await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    for group_id in ["live", "strange"] {
        while fetched(&mut client, 8, group_id, "other").await.1 != -1 {
            assert!(Instant::now() < deadline, "{group_id}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // One statement looks at all of them.
    for group_id in ["live", "opaque", "shared", "strange", "unreadable"] {
        assert_eq!(fetched(&mut client, 8, group_id, "orders").await.1, 1, "{group_id}");
    }
    for group_id in ["opaque", "shared", "unreadable"] {
        assert_eq!(fetched(&mut client, 8, group_id, "other").await.1, 1, "{group_id}");
    }
}

fn with_subscription(mut request: JoinGroupRequest, subscription: &'static [u8]) -> JoinGroupRequest {
    request.protocols[0].metadata = Bytes::from_static(subscription);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_anew_has_no_old_commits_of_a_group_with_members() {
    let gateway = TestGateway::start_with(an_hour).await;
    let mut client = with_topic(&gateway).await;
    let id = member(&mut client, "live", "consumer").await;
    commit_as(&mut client, "live", &id, 1).await;
    let state = DeleteTopicState::default().with_name(Some(topic_name("orders")));
    let deleted = client.call(6, DeleteTopicsRequest::default().with_topics(vec![state])).await;
    assert_eq!(deleted.responses[0].error_code, 0);
    assert_eq!(fetched(&mut client, 8, "live", "orders").await, (0, -1, String::new()));
    // Made by the question.
    assert_eq!(client.call(12, metadata("orders")).await.topics[0].error_code, 0);
    assert_eq!(fetched(&mut client, 8, "live", "orders").await, (0, -1, String::new()));
    let (database, in_time) = gateway.stop().await;
    assert!(in_time);

    let gateway = TestGateway::start_on(database, an_hour).await;
    let mut client = gateway.client().await;
    assert_eq!(list(&mut client).await, [("live".to_owned(), "Stable".to_owned())]);
    assert_eq!(fetched(&mut client, 8, "live", "orders").await, (0, -1, String::new()));
    let all = OffsetFetchRequestGroup::default().with_group_id(group("live")).with_topics(None);
    let all = client.call(8, OffsetFetchRequest::default().with_groups(vec![all])).await;
    assert!(all.groups[0].topics.is_empty(), "{all:?}");
    commit_as(&mut client, "live", &id, 0).await;
    assert_eq!(fetched(&mut client, 8, "live", "orders").await, (0, 0, "note".to_owned()));
}
