//! Static members (KIP-345, KIP-814).

use groups::{ClassicGroupState as State, CommitRequest, GroupError, HeartbeatRequest, JoinRequest};

use crate::driver::{Driver, REBALANCE, SESSION, commit, heartbeat, protocols, static_member, subscription, sync};

/// Stable at generation 1: `one-a` leads, `two-a` follows.
fn stable() -> Driver {
    let mut driver = Driver::new();
    let joins = [driver.join(static_member("one", "a")), driver.join(static_member("two", "a"))];
    driver.pass(6_000);
    assert_eq!(joins.map(|token| driver.joined(token).leader), ["one-a", "one-a"]);
    driver.sync_all(&["one-a".into(), "two-a".into()], 1);
    driver
}

#[test]
fn a_restart_in_stable_takes_over_without_a_rebalance() {
    let mut driver = stable();
    let token = driver.join(JoinRequest { client_host: "/10.0.0.9".into(), ..static_member("two", "b") });
    let reply = driver.joined(token);
    assert_eq!((reply.error, reply.generation, reply.member_id.as_str()), (None, 1, "two-b"));
    assert_eq!((reply.leader.as_str(), reply.members.len(), reply.skip_assignment), ("one-a", 0, false));
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 1));
    let token = driver.sync(sync("two-b", 1, &[]));
    assert_eq!(driver.synced(token).assignment, "two-a", "the assignment of the old id");
    let described = driver.group.describe();
    let member = described.members.iter().find(|member| member.member_id == "two-b").unwrap();
    assert_eq!(member.client_host, "/10.0.0.9");
    assert_eq!(driver.saved.as_ref().unwrap().members[1].member_id, "two-b", "it survives");
}

#[test]
fn the_old_id_is_fenced_everywhere() {
    let mut driver = stable();
    let token = driver.join(static_member("two", "b"));
    assert_eq!(driver.join_error(token), None);
    let fenced = Some(GroupError::FencedInstanceId);
    let instance_id = Some("two".to_owned());
    let heartbeat = HeartbeatRequest { instance_id: instance_id.clone(), ..heartbeat("two-a", 1) };
    assert_eq!(driver.group.heartbeat(driver.now, &heartbeat).err(), fenced);
    let commit = CommitRequest { instance_id: instance_id.clone(), ..commit("two-a", 1) };
    assert_eq!(driver.group.check_commit(driver.now, &commit).err(), fenced);
    let token = driver.join(JoinRequest { member_id: "two-a".into(), ..static_member("two", "x") });
    assert_eq!(driver.join_error(token), fenced);
    let token = driver.sync(groups::SyncRequest { instance_id, ..sync("two-a", 1, &[]) });
    assert_eq!(driver.sync_error(token), fenced);
    assert_eq!(driver.leave(&[("two-a", Some("two"))]).single_error(), fenced);
    assert_eq!(driver.heartbeat("two-a", 1), Err(GroupError::UnknownMemberId), "without its instance id");
}

#[test]
fn a_returning_leader_does_not_assign_anew() {
    for version in 5..=9 {
        let mut driver = stable();
        let token = driver.join(JoinRequest { version, ..static_member("one", "b") });
        let reply = driver.joined(token);
        assert_eq!((reply.generation, reply.member_id.as_str()), (1, "one-b"));
        if version >= 9 {
            assert_eq!((reply.leader.as_str(), reply.skip_assignment, reply.members.len()), ("one-b", true, 2));
        } else {
            assert_eq!((reply.leader.as_str(), reply.skip_assignment, reply.members.len()), ("one-a", false, 0));
        }
        // It leads nevertheless: joining again with its id rebalances.
        driver.join(JoinRequest { member_id: "one-b".into(), ..static_member("one", "x") });
        assert_eq!(driver.state(), State::PreparingRebalance);
    }
}

#[test]
fn a_rolling_restart_of_five_keeps_the_generation() {
    let mut driver = Driver::new();
    let names: Vec<String> = (0..5).map(|n| format!("pod-{n}")).collect();
    for name in &names {
        driver.join(static_member(name, "0"));
    }
    driver.pass(6_000);
    let mut ids: Vec<String> = names.iter().map(|name| format!("{name}-0")).collect();
    driver.sync_all(&ids, 1);
    for round in 1..4 {
        for (name, id) in names.iter().zip(&mut ids) {
            driver.pass_alive(i64::from(SESSION) - 1_000, &[], 1);
            for other in &names {
                let current = format!("{other}-{}", if other < name { round } else { round - 1 });
                assert_eq!(driver.heartbeat(&current, 1), Ok(()));
            }
            let token = driver.join(JoinRequest { version: 9, ..static_member(name, &round.to_string()) });
            *id = driver.joined(token).member_id;
            let token = driver.sync(sync(id, 1, &[]));
            assert_eq!(driver.synced(token).assignment, format!("{name}-0"));
        }
    }
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 1));
}

#[test]
fn another_protocol_rebalances() {
    let mut driver = stable();
    let token = driver.join(JoinRequest { protocols: protocols(&["roundrobin"]), ..static_member("two", "b") });
    assert!(!driver.is_answered(token));
    assert_eq!(driver.state(), State::PreparingRebalance);
    driver.join(JoinRequest { member_id: "one-a".into(), ..static_member("one", "x") });
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.protocol_name.as_deref()), (2, Some("roundrobin")));
}

#[test]
fn other_metadata_of_the_same_protocol_does_not_rebalance_but_is_known() {
    let mut driver = stable();
    let mut request = static_member("two", "b");
    request.protocols[0].metadata = subscription(&["more"]);
    let token = driver.join(request);
    assert_eq!(driver.joined(token).generation, 1);
    assert!(driver.is_subscribed_to("more") && driver.is_subscribed_to("t"));
}

#[test]
fn a_restart_in_completing_rebalance_starts_another_one() {
    let mut driver = Driver::new();
    let joins = [driver.join(static_member("one", "a")), driver.join(static_member("two", "a"))];
    driver.pass(6_000);
    assert_eq!(joins.map(|token| driver.joined(token).generation), [1, 1]);
    let parked = driver.sync(sync("two-a", 1, &[]));
    let token = driver.join(static_member("two", "b"));
    assert_eq!(driver.sync_error(parked), Some(GroupError::FencedInstanceId));
    assert_eq!(driver.state(), State::PreparingRebalance);
    // The leader's assignment to the old id comes too late.
    let late = driver.sync(sync("one-a", 1, &[("two-a", "lost")]));
    assert_eq!(driver.sync_error(late), Some(GroupError::RebalanceInProgress));
    driver.join(JoinRequest { member_id: "one-a".into(), ..static_member("one", "x") });
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.member_id.as_str()), (2, "two-b"));
    driver.sync_all(&["one-a".into(), "two-b".into()], 2);
}

#[test]
fn a_restart_while_joining_fences_the_request_that_waits() {
    let mut driver = stable();
    let old = driver.join(JoinRequest { member_id: "one-a".into(), ..static_member("one", "x") });
    let new = driver.join(static_member("one", "b"));
    let reply = driver.joined(old);
    assert_eq!((reply.error, reply.member_id.as_str()), (Some(GroupError::FencedInstanceId), "one-a"));
    driver.join(JoinRequest { member_id: "two-a".into(), ..static_member("two", "x") });
    let reply = driver.joined(new);
    assert_eq!((reply.generation, reply.leader.as_str(), reply.members.len()), (2, "one-b", 2));
}

#[test]
fn an_absent_static_member_stays_until_its_session_ends() {
    let mut driver = stable();
    let long = JoinRequest { session_timeout_ms: 300_000, ..static_member("two", "b") };
    let token = driver.join(long);
    assert_eq!(driver.joined(token).generation, 1);
    let token = driver.join(JoinRequest { member_id: "one-a".into(), ..static_member("one", "x") });
    driver.pass(i64::from(REBALANCE));
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (2, 2), "not removed with the laggards");
    // It gets an assignment, and is out when it does not fetch it.
    driver.sync(sync("one-a", 2, &[("two-b", "B")]));
    driver.pass_alive(i64::from(REBALANCE), &["one-a"], 2);
    assert_eq!(driver.heartbeat("two-b", 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn nobody_of_the_static_members_comes() {
    let mut driver = stable();
    // The follower leaves; the leader never joins again, but its session lasts.
    driver.leave(&[("", Some("two"))]);
    driver.pass_alive(i64::from(REBALANCE) * 3, &["one-a"], 1);
    assert_eq!((driver.state(), driver.group.generation()), (State::PreparingRebalance, 1));
    assert_eq!(driver.heartbeat("one-a", 1), Err(GroupError::RebalanceInProgress));
    driver.pass(i64::from(SESSION));
    assert_eq!(driver.state(), State::Empty);
}

#[test]
fn a_sync_that_was_due_is_due_from_the_new_id() {
    let mut driver = Driver::new();
    driver.join(static_member("one", "a"));
    driver.join(static_member("two", "a"));
    driver.pass(6_000);
    driver.sync(sync("one-a", 1, &[("two-a", "B")]));
    let token = driver.join(static_member("two", "b"));
    assert_eq!(driver.joined(token).generation, 1);
    let token = driver.sync(sync("two-b", 1, &[]));
    assert_eq!(driver.synced(token).assignment, "B");
    driver.pass_alive(i64::from(REBALANCE) * 2, &["one-a", "two-b"], 1);
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 1));
}
