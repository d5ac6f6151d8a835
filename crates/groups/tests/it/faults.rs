//! Faults that users reported of other implementations (faults.md).

use groups::{ClassicGroupState as State, Group, GroupError, JoinRequest, Settings};

use crate::driver::{Driver, SESSION, new_member, rejoin, static_member, sync};

/// B012: every member's bytes arrive as the leader sent them, for groups of 1, 2 and 10.
#[test]
fn b012_sync_group_reply_without_the_members_assignment() {
    for size in [1, 2, 10] {
        let names: Vec<String> = (0..size).map(|n| format!("m{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut driver, ids) = Driver::stable(&names);
        for id in &ids {
            let token = driver.sync(sync(id, 1, &[]));
            assert_eq!(driver.synced(token).assignment, *id);
        }
    }
}

/// B012: the leader dies before its SyncGroup.
#[test]
fn b012_leader_killed_before_its_sync() {
    let mut driver = Driver::new();
    let ids = ["a", "b"].map(|name| driver.join_new(name).0);
    driver.pass(6_000);
    let waiting = driver.sync(sync(&ids[1], 1, &[]));
    driver.pass(i64::from(SESSION));
    assert_eq!(driver.sync_error(waiting), Some(GroupError::RebalanceInProgress));
    let token = driver.join(rejoin(&ids[1]));
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (2, 1));
}

/// B049: a hundred clients that stop after the first step of joining.
#[test]
fn b049_pending_members_keep_the_group_in_preparing_rebalance() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    for n in 0..100 {
        let token = driver.join(new_member(&format!("ghost{n}")));
        assert_eq!(driver.join_error(token), Some(GroupError::MemberIdRequired));
    }
    let (_, join_b) = driver.join_new("b");
    let join_a = driver.join(rejoin(&ids[0]));
    assert!(!driver.is_answered(join_b), "the ghosts may still come");
    driver.pass(i64::from(SESSION));
    assert_eq!([join_a, join_b].map(|token| driver.joined(token).generation), [2, 2]);
    let members = ["a-uuid", "b-uuid"].map(str::to_owned);
    driver.sync_all(&members, 2);
    driver.pass_alive(600_000, &["a-uuid", "b-uuid"], 2);
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 2), "and stays so");
}

/// B049: the connection is reset while JoinGroup waits, a hundred times.
#[test]
fn b049_vanished_members() {
    let mut driver = Driver::new();
    for n in 0..100 {
        let (_, token) = driver.join_new(&format!("ghost{n}"));
        driver.cancel(token);
    }
    let (b, join_b) = driver.join_new("b");
    driver.pass(i64::from(SESSION));
    let reply = driver.joined(join_b);
    assert_eq!((reply.members.len(), reply.leader.as_str()), (1, b.as_str()));
    driver.sync_all(&[b], reply.generation);
    driver.pass_alive(600_000, &["b-uuid"], reply.generation);
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, reply.generation));
}

/// B049, the other way: no timer of a member that left starts a rebalance.
#[test]
fn b049_leftover_timer_of_a_removed_member() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    driver.leave(&[(&ids[1], None)]);
    driver.join(rejoin(&ids[0]));
    driver.sync_all(&ids[..1], 2);
    let pending = driver.join(new_member("p"));
    let pending = driver.joined(pending).member_id;
    driver.leave(&[(&pending, None)]);
    driver.pass_alive(600_000, &[&ids[0]], 2);
    assert_eq!((driver.state(), driver.group.generation()), (State::Stable, 2));
}

/// B078: kill during the leader's delayed SyncGroup: no empty assignment.
#[test]
fn b078_static_member_killed_while_the_leader_assigns() {
    let mut driver = Driver::new();
    driver.join(static_member("one", "a"));
    driver.join(static_member("two", "a"));
    driver.pass(6_000);
    driver.sync(sync("two-a", 1, &[]));
    let successor = driver.join(static_member("two", "b"));
    let late = driver.sync(sync("one-a", 1, &[("one-a", "A"), ("two-a", "B")]));
    assert_eq!(driver.sync_error(late), Some(GroupError::RebalanceInProgress));
    driver.join(JoinRequest { member_id: "one-a".into(), ..static_member("one", "x") });
    assert_eq!(driver.joined(successor).generation, 2);
    let waiting = driver.sync(sync("two-b", 2, &[]));
    driver.sync(sync("one-a", 2, &[("one-a", "A"), ("two-b", "B")]));
    assert_eq!(driver.synced(waiting).assignment, "B");
}

/// B078: all properties of a returning member are the new ones.
#[test]
fn b078_rejoin_keeps_stale_timeouts() {
    let mut driver = Driver::new();
    driver.join(static_member("one", "a"));
    driver.pass(3_000);
    driver.sync_all(&["one-a".into()], 1);
    let token = driver.join(JoinRequest { session_timeout_ms: 60_000, ..static_member("one", "b") });
    assert_eq!(driver.joined(token).generation, 1);
    driver.pass(59_999);
    assert_eq!(driver.heartbeat("one-b", 1), Ok(()));
}

/// B099: after a restart, from the stored state alone.
#[test]
fn b099_delete_groups_after_a_restart() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    let restored = |driver: &Driver| Group::restore("g", &Settings::default(), driver.stored(), driver.now);
    assert_eq!(restored(&driver).check_delete(), Err(GroupError::NonEmptyGroup));
    driver.leave(&[(&ids[0], None)]);
    assert_eq!(restored(&driver).check_delete(), Ok(()));
}
