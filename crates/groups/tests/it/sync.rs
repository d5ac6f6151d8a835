//! SyncGroup.

use groups::{ClassicGroupState as State, GroupError, JoinRequest, SyncRequest};

use crate::driver::{Driver, REBALANCE, new_member, rejoin, rejoin_with, static_member, sync};

fn completing(names: &[&str]) -> (Driver, Vec<String>) {
    let mut driver = Driver::new();
    let ids = names.iter().map(|name| driver.join_new(name).0).collect();
    driver.pass(6_000);
    assert_eq!(driver.state(), State::CompletingRebalance);
    (driver, ids)
}

#[test]
fn what_does_not_fit_is_refused_in_kafkas_order() {
    let (mut driver, ids) = completing(&["a", "b"]);
    let good = sync(&ids[1], 1, &[]);
    let table: [(SyncRequest, GroupError); 7] = [
        (SyncRequest { member_id: "x".into(), generation: 9, ..good.clone() }, GroupError::UnknownMemberId),
        (SyncRequest { instance_id: Some("i".into()), ..good.clone() }, GroupError::UnknownMemberId),
        (SyncRequest { generation: 2, ..good.clone() }, GroupError::IllegalGeneration),
        (SyncRequest { protocol_type: Some("connect".into()), ..good.clone() }, GroupError::InconsistentGroupProtocol),
        (SyncRequest { protocol_name: Some("sticky".into()), ..good.clone() }, GroupError::InconsistentGroupProtocol),
        (SyncRequest { protocol_type: None, ..good.clone() }, GroupError::InconsistentGroupProtocol),
        (SyncRequest { protocol_name: None, ..good.clone() }, GroupError::InconsistentGroupProtocol),
    ];
    for (request, error) in table {
        let token = driver.sync(request.clone());
        assert_eq!(driver.sync_error(token), Some(error), "{request:?}");
    }
    let before_5 = SyncRequest { version: 4, protocol_type: None, protocol_name: None, ..good };
    let token = driver.sync(before_5);
    assert!(!driver.is_answered(token), "older versions name no protocol");
}

#[test]
fn static_members_are_fenced() {
    let mut driver = Driver::new();
    driver.join(static_member("i", "old"));
    driver.pass(3_000);
    let token = driver.sync(SyncRequest { instance_id: Some("i".into()), ..sync("other", 1, &[]) });
    assert_eq!(driver.sync_error(token), Some(GroupError::FencedInstanceId));
}

#[test]
fn followers_wait_for_the_leader_and_get_its_very_bytes() {
    for leader_delay in [0, 3_000] {
        let (mut driver, ids) = completing(&["a", "b", "c"]);
        let b = driver.sync(sync(&ids[1], 1, &[]));
        driver.pass(leader_delay);
        assert!(!driver.is_answered(b));
        let a = driver.sync(sync(&ids[0], 1, &[(&ids[0], "A"), (&ids[1], "B"), ("stranger", "S")]));
        assert_eq!(driver.synced(a).assignment, "A");
        let reply = driver.synced(b);
        assert_eq!(reply.assignment, "B");
        assert_eq!((reply.protocol_type.as_deref(), reply.protocol_name.as_deref()), (Some("consumer"), Some("range")));
        let c = driver.sync(sync(&ids[2], 1, &[]));
        assert_eq!(driver.synced(c).assignment, "", "left out by the leader");
        assert_eq!(driver.state(), State::Stable);
    }
}

#[test]
fn without_the_leader_the_group_rebalances_after_the_rebalance_timeout() {
    let (mut driver, ids) = completing(&["a", "b"]);
    let b = driver.sync(sync(&ids[1], 1, &[]));
    driver.pass_alive(i64::from(REBALANCE) - 1, &[&ids[0]], 1);
    assert!(!driver.is_answered(b), "a parked SyncGroup keeps the member alive, heartbeats the leader");
    driver.pass(1);
    assert_eq!(driver.sync_error(b), Some(GroupError::RebalanceInProgress));
    assert_eq!(driver.heartbeat(&ids[0], 1), Err(GroupError::UnknownMemberId), "the leader is out");
    let b = driver.join(rejoin(&ids[1]));
    let reply = driver.joined(b);
    assert_eq!((reply.generation, reply.leader), (2, ids[1].clone()));
}

#[test]
fn who_never_syncs_in_a_stable_group_is_removed_and_the_others_rebalance() {
    let (mut driver, ids) = completing(&["a", "b"]);
    let a = driver.sync(sync(&ids[0], 1, &[]));
    assert_eq!(driver.sync_error(a), None);
    driver.pass_alive(i64::from(REBALANCE) - 1, &[&ids[0], &ids[1]], 1);
    assert_eq!(driver.state(), State::Stable);
    driver.pass(1);
    assert_eq!(driver.state(), State::PreparingRebalance);
    assert_eq!(driver.heartbeat(&ids[1], 1), Err(GroupError::UnknownMemberId));
    assert_eq!(driver.heartbeat(&ids[0], 1), Err(GroupError::RebalanceInProgress));
}

#[test]
fn everyone_synced_leaves_no_timer_behind() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    driver.pass_alive(i64::from(REBALANCE) * 3, &[&ids[0], &ids[1]], 1);
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 1));
}

#[test]
fn a_rebalance_answers_those_who_wait_for_the_assignment() {
    let (mut driver, ids) = completing(&["a", "b"]);
    let b = driver.sync(sync(&ids[1], 1, &[]));
    let a = driver.join(rejoin_with(&ids[0], &["other"]));
    assert_eq!(driver.sync_error(b), Some(GroupError::RebalanceInProgress));
    let late = driver.sync(sync(&ids[1], 1, &[]));
    assert_eq!(driver.sync_error(late), Some(GroupError::RebalanceInProgress));
    assert!(driver.group.describe().members.iter().all(|member| member.assignment.is_empty()));
    driver.join(rejoin(&ids[1]));
    assert_eq!(driver.joined(a).generation, 2);
    let late = driver.sync(sync(&ids[1], 1, &[]));
    assert_eq!(driver.sync_error(late), Some(GroupError::IllegalGeneration));
}

#[test]
fn a_second_request_of_a_waiting_member_replaces_the_first() {
    let (mut driver, ids) = completing(&["a", "b"]);
    let first = driver.sync(sync(&ids[1], 1, &[]));
    let second = driver.sync(sync(&ids[1], 1, &[]));
    assert_eq!(driver.sync_error(first), Some(GroupError::RebalanceInProgress));
    driver.sync(sync(&ids[0], 1, &[(&ids[1], "B")]));
    assert_eq!(driver.synced(second).assignment, "B");
}

#[test]
fn old_assignments_do_not_come_back() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let (c, join_c) = driver.join_new("c");
    driver.join(rejoin(&ids[0]));
    driver.join(rejoin(&ids[1]));
    assert_eq!(driver.joined(join_c).generation, 2);
    driver.sync(sync(&ids[0], 2, &[(&ids[0], "all")]));
    for id in [&ids[1], &c] {
        let token = driver.sync(sync(id, 2, &[]));
        assert_eq!(driver.synced(token).assignment, "");
    }
}

#[test]
fn a_leader_of_any_version_may_sync() {
    for version in 0..=5 {
        let mut driver = Driver::new();
        let token = driver.join(JoinRequest { version: 2, ..new_member("a") });
        driver.pass(3_000);
        let id = driver.joined(token).member_id;
        let named = (version == 5).then(|| "consumer".to_owned());
        let request = SyncRequest {
            version,
            protocol_type: named,
            protocol_name: (version == 5).then(|| "range".to_owned()),
            ..sync(&id, 1, &[(&id, "A")])
        };
        let token = driver.sync(request);
        assert_eq!(driver.synced(token).assignment, "A");
    }
}
