//! LeaveGroup, session and rebalance deadlines, lost connections.

use groups::{ClassicGroupState as State, GroupError, JoinRequest, Settings};

use crate::driver::{Driver, REBALANCE, SESSION, new_member, rejoin, rejoin_with, static_member, sync};

fn errors(reply: &groups::LeaveReply) -> Vec<Option<GroupError>> {
    reply.members.iter().map(|member| member.error).collect()
}

#[test]
fn a_batch_has_an_error_per_member() {
    let mut driver = Driver::new();
    let join_s = driver.join(static_member("i", "u"));
    let (a, _) = driver.join_new("a");
    driver.pass(6_000);
    let s = driver.joined(join_s).member_id;
    let pending = driver.join(new_member("p"));
    let pending = driver.joined(pending).member_id;

    let reply = driver.leave(&[
        ("x", None),
        ("", None),
        ("", Some("no such instance")),
        ("stale", Some("i")),
        (&a, Some("no such instance")),
        (&pending, None),
    ]);
    let unknown = Some(GroupError::UnknownMemberId);
    let fenced = Some(GroupError::FencedInstanceId);
    assert_eq!(errors(&reply), [unknown, unknown, unknown, fenced, unknown, None]);
    assert_eq!((reply.error, reply.single_error()), (None, unknown));
    assert_eq!(reply.members[3].member_id, "stale");
    assert_eq!(reply.members[3].instance_id.as_deref(), Some("i"));
    assert_eq!(driver.state(), State::CompletingRebalance, "nobody who joined has left");

    let reply = driver.leave(&[("", Some("i")), (&s, Some("i")), (&a, None)]);
    assert_eq!(errors(&reply), [None, unknown, None]);
    assert_eq!(reply.members[0].member_id, "", "as it was asked for");
    assert_eq!((driver.state(), driver.group.generation()), (State::Empty, 2));
}

#[test]
fn the_others_rebalance_when_one_leaves() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    assert_eq!(driver.leave(&[(&ids[0], None)]).single_error(), None);
    assert_eq!(driver.heartbeat(&ids[1], 1), Err(GroupError::RebalanceInProgress));
    let token = driver.join(rejoin(&ids[1]));
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.leader.as_str()), (2, ids[1].as_str()));
}

#[test]
fn leaving_ends_the_wait_of_the_others() {
    let (mut driver, ids) = Driver::stable(&["a", "b", "c"]);
    let joins = [driver.join(rejoin(&ids[0])), driver.join(rejoin(&ids[1]))];
    driver.leave(&[(&ids[2], None)]);
    assert_eq!(joins.map(|token| driver.joined(token).generation), [2, 2]);
}

#[test]
fn whoever_is_removed_while_waiting_hears_of_it() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let join = driver.join(rejoin(&ids[0]));
    driver.leave(&[(&ids[0], None)]);
    let reply = driver.joined(join);
    assert_eq!((reply.error, reply.member_id.as_str()), (Some(GroupError::UnknownMemberId), ""));

    let mut driver = Driver::new();
    let ids = ["a", "b"].map(|name| driver.join_new(name).0);
    driver.pass(6_000);
    let sync = driver.sync(sync(&ids[1], 1, &[]));
    driver.leave(&[(&ids[1], None)]);
    assert_eq!(driver.sync_error(sync), Some(GroupError::UnknownMemberId));
}

#[test]
fn all_leave_during_the_initial_delay() {
    let mut driver = Driver::new();
    let (a, token) = driver.join_new("a");
    driver.leave(&[(&a, None)]);
    assert_eq!(driver.join_error(token), Some(GroupError::UnknownMemberId));
    assert_eq!(driver.state(), State::PreparingRebalance);
    driver.pass(3_000);
    assert_eq!((driver.state(), driver.group.generation()), (State::Empty, 1));
    assert_eq!(driver.group.wake_at(), None);
    assert!(driver.group.is_idle());
}

#[test]
fn a_session_lasts_as_long_as_it_is_refreshed() {
    let session = i64::from(SESSION);
    for sign_of_life in ["heartbeat", "commit", "none"] {
        let (mut driver, ids) = Driver::stable(&["a"]);
        for _ in 0..5 {
            driver.pass(session - 1);
            let alive = match sign_of_life {
                "heartbeat" => driver.heartbeat(&ids[0], 1),
                "commit" => driver.commit(&ids[0], 1),
                _ => break,
            };
            assert_eq!(alive, Ok(()), "{sign_of_life}");
        }
        driver.pass(session);
        assert_eq!(driver.heartbeat(&ids[0], 1), Err(GroupError::UnknownMemberId), "{sign_of_life}");
        assert_eq!(driver.state(), State::Empty);
    }
}

#[test]
fn a_heartbeat_that_hears_of_a_rebalance_counts() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    driver.join(rejoin(&ids[0]));
    for _ in 0..5 {
        driver.pass(i64::from(SESSION) - 1);
        assert_eq!(driver.heartbeat(&ids[1], 1), Err(GroupError::RebalanceInProgress));
    }
    assert_eq!(driver.group.generation(), 1);
}

#[test]
fn a_member_that_fails_ends_the_wait_by_its_session_timeout() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let token = driver.join(rejoin(&ids[0]));
    driver.pass(i64::from(SESSION));
    let reply = driver.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (2, 1));
}

#[test]
fn laggards_are_out_after_the_rebalance_timeout_of_the_slowest() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let slow = JoinRequest { rebalance_timeout_ms: 2 * REBALANCE, ..rejoin(&ids[0]) };
    let token = driver.join(slow);
    driver.pass_alive(i64::from(2 * REBALANCE) - 1, &[&ids[1]], 1);
    assert!(!driver.is_answered(token));
    driver.pass(1);
    assert_eq!(driver.joined(token).generation, 2);
    assert_eq!(driver.heartbeat(&ids[1], 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn new_members_may_wait_five_minutes() {
    let settings = Settings::default();
    let mut driver = Driver::with(settings);
    let hour =
        JoinRequest { version: 3, rebalance_timeout_ms: 3_600_000, session_timeout_ms: 60_000, ..new_member("a") };
    let a = driver.join(hour);
    driver.pass(3_000);
    let a = driver.joined(a).member_id;
    let token = driver.join(JoinRequest { version: 3, ..new_member("b") });
    driver.pass_alive(i64::from(settings.new_member_join_timeout_ms) - 1, &[&a], 1);
    assert!(!driver.is_answered(token));
    driver.pass(1);
    assert_eq!(driver.join_error(token), Some(GroupError::UnknownMemberId));
}

#[test]
fn a_lost_connection_starts_the_session_timeout_of_a_waiting_member() {
    let (mut driver, ids) = Driver::stable(&["a", "b", "c"]);
    let a = driver.join(rejoin(&ids[0]));
    let b = driver.join(rejoin(&ids[1]));
    driver.cancel(b);
    driver.pass(1_000);
    // It may come back ...
    let again = driver.join(rejoin(&ids[1]));
    driver.cancel(b);
    assert!(!driver.is_answered(again), "the token of the first request is gone");
    // ... or not.
    driver.cancel(again);
    driver.pass(1);
    driver.join(rejoin(&ids[2]));
    assert!(!driver.is_answered(a));
    driver.pass(i64::from(SESSION));
    let reply = driver.joined(a);
    assert_eq!((reply.generation, reply.members.len()), (2, 2));
    assert!(!driver.is_answered(b) && !driver.is_answered(again));
}

#[test]
fn a_lost_connection_is_noticed_before_the_deadlines_of_the_other_members() {
    let mut driver = Driver::new();
    let patient =
        |request: JoinRequest| JoinRequest { session_timeout_ms: 300_000, rebalance_timeout_ms: 300_000, ..request };
    let first = driver.join(patient(JoinRequest { version: 3, ..new_member("a") }));
    let second = driver.join(JoinRequest { version: 3, ..new_member("b") });
    driver.pass(6_000);
    let ids = [first, second].map(|token| driver.joined(token).member_id);
    driver.sync_all(&ids, 1);
    // The session of `b` was due in 10 s; a tick that finds nothing to do leaves the deadlines of `a` only.
    let b = driver.join(rejoin_with(&ids[1], &["other"]));
    driver.pass(i64::from(SESSION));
    driver.cancel(b);
    assert_eq!(driver.group.wake_at(), Some(driver.now + i64::from(SESSION)));
    driver.pass(i64::from(SESSION));
    assert!(driver.group.describe().members.iter().all(|member| member.member_id != ids[1]));
}

#[test]
fn a_lost_connection_removes_a_new_member_whose_id_nobody_knows() {
    let mut driver = Driver::new();
    for n in 0..100 {
        let token = driver.join(JoinRequest { version: 3, ..new_member(&format!("ghost{n}")) });
        driver.cancel(token);
    }
    let token = driver.join(JoinRequest { version: 3, ..new_member("a") });
    driver.pass(6_000);
    assert_eq!(driver.joined(token).members.len(), 1);
}

#[test]
fn a_lost_connection_in_sync() {
    let mut driver = Driver::new();
    let ids = ["a", "b"].map(|name| driver.join_new(name).0);
    driver.pass(6_000);
    let token = driver.sync(sync(&ids[1], 1, &[]));
    driver.cancel(token);
    let leader = driver.sync(sync(&ids[0], 1, &[(&ids[1], "B")]));
    assert_eq!(driver.sync_error(leader), None);
    assert!(!driver.is_answered(token));
    // The client joins again, is told the same generation, and asks again.
    let join = driver.join(rejoin(&ids[1]));
    assert_eq!(driver.joined(join).generation, 1);
    let token = driver.sync(sync(&ids[1], 1, &[]));
    assert_eq!(driver.synced(token).assignment, "B");
}

#[test]
fn a_closed_group_answers_everyone() {
    let mut driver = Driver::new();
    let (_, a) = driver.join_new("a");
    let b = driver.join(JoinRequest { version: 3, ..new_member("b") });
    let closed = driver.group.close(GroupError::NotCoordinator);
    driver.answer(closed);
    assert_eq!([a, b].map(|token| driver.join_error(token)), [Some(GroupError::NotCoordinator); 2]);
    assert_eq!((driver.state(), driver.group.wake_at()), (State::Dead, None));
}

#[test]
fn nobody_waits_for_a_new_member_whose_id_nobody_knows() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    let ghost = driver.join(JoinRequest { version: 3, ..new_member("ghost") });
    driver.cancel(ghost);
    let token = driver.join(rejoin(&ids[0]));
    assert_eq!(driver.joined(token).members.len(), 1);
}

#[test]
fn a_late_tick_does_one_generation_at_a_time() {
    let mut driver = Driver::new();
    let (_, token) = driver.join_new("a");
    driver.now += 1_000_000;
    let outcome = driver.group.tick(driver.now);
    assert_eq!(outcome.save.as_ref().map(|saved| saved.generation()), Some(1));
    assert!(driver.group.wake_at().is_some_and(|at| at > driver.now), "the member's session starts now");
    driver.apply(outcome);
    assert_eq!(driver.joined(token).generation, 1);

    // The session of the only member ended, and its rebalance: first the empty generation, then the rest.
    let pending = driver.join(new_member("p"));
    assert_eq!(driver.join_error(pending), Some(GroupError::MemberIdRequired));
    driver.now += 1_000_000;
    let outcome = driver.group.tick(driver.now);
    driver.apply(outcome);
    driver.pass(0);
    assert_eq!((driver.state(), driver.group.generation()), (State::Empty, 2));
    assert!(driver.group.is_idle());
}

#[test]
fn a_member_id_that_is_given_back_ends_the_wait() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    let pending = driver.join(new_member("p"));
    let pending = driver.joined(pending).member_id;
    let token = driver.join(rejoin(&ids[0]));
    assert!(!driver.is_answered(token));
    driver.leave(&[(&pending, None)]);
    assert_eq!(driver.joined(token).generation, 2);
}
