//! What is saved when, what happens if that fails, and going on from it.

use groups::{ClassicGroupState as State, Group, GroupError, JoinRequest, Settings, StoredClassicState};

use crate::driver::{Driver, REBALANCE, SESSION, new_member, rejoin, static_member, sync};

fn restarted(driver: &Driver) -> Driver {
    Driver::of(Group::restore("g", &Settings::default(), driver.stored(), driver.now), driver.now)
}

#[test]
fn what_is_saved_when() {
    let mut driver = Driver::new();
    let (a, _) = driver.join_new("a");
    let (b, _) = driver.join_new("b");
    assert_eq!(driver.saves, 0, "nobody has heard of a generation");
    driver.pass(6_000);
    assert_eq!((driver.saves, driver.saved.as_ref().unwrap().state), (1, StoredClassicState::CompletingRebalance));
    driver.sync(sync(&b, 1, &[]));
    assert_eq!(driver.saves, 1);
    driver.sync(sync(&a, 1, &[(&a, "A"), (&b, "B")]));
    let saved = driver.saved.clone().unwrap();
    assert_eq!((driver.saves, saved.state, saved.generation), (2, StoredClassicState::Stable, 1));
    assert_eq!(saved.members.iter().map(|m| m.assignment.clone()).collect::<Vec<_>>(), ["A", "B"]);
    driver.pass_alive(30_000, &[&a, &b], 1);
    driver.commit(&a, 1).unwrap();
    driver.join(rejoin(&b));
    driver.join(new_member("c"));
    driver.join(rejoin(&a));
    assert_eq!(driver.saves, 2, "the stable generation stays until the next one is complete");
    driver.pass(i64::from(SESSION));
    driver.join(rejoin(&b));
    assert_eq!((driver.saves, driver.saved.as_ref().unwrap().generation), (3, 2));
    driver.leave(&[(&a, None), (&b, None)]);
    let saved = driver.saved.clone().unwrap();
    assert_eq!(
        (driver.saves, saved.state, saved.generation, saved.members.len()),
        (4, StoredClassicState::Empty, 3, 0)
    );
    assert_eq!(saved.protocol_type.as_deref(), Some("consumer"), "offsets expire as a group's, not as a simple one's");
}

#[test]
fn a_restart_in_stable_is_not_noticed() {
    let (driver, ids) = Driver::stable(&["a", "b"]);
    let mut after = restarted(&driver);
    assert_eq!(after.group.describe(), driver.group.describe());
    assert_eq!(["t", "u"].map(|topic| after.is_subscribed_to(topic)), [true, false]);
    after.pass(i64::from(SESSION) - 1);
    for id in &ids {
        assert_eq!(after.heartbeat(id, 1), Ok(()));
        assert_eq!(after.commit(id, 1), Ok(()));
        let token = after.sync(sync(id, 1, &[]));
        assert_eq!(after.synced(token).assignment, *id);
    }
    after.pass_alive(300_000, &[&ids[0], &ids[1]], 1);
    assert_eq!((after.state(), after.group.generation(), after.saves), (State::Stable, 1, 0));
    after.pass_alive(i64::from(SESSION), &[&ids[0]], 1);
    assert_eq!(after.state(), State::PreparingRebalance, "and nobody is forgotten");
}

#[test]
fn a_restart_before_the_assignment_goes_on_with_the_generation() {
    let mut driver = Driver::new();
    let ids = ["a", "b"].map(|name| driver.join_new(name).0);
    driver.pass(6_000);
    driver.sync(sync(&ids[1], 1, &[]));
    let mut after = restarted(&driver);
    assert_eq!((after.state(), after.group.generation()), (State::CompletingRebalance, 1));
    assert_eq!(after.heartbeat(&ids[0], 1), Ok(()));
    let (a, b) = (after.join(rejoin(&ids[0])), after.join(rejoin(&ids[1])));
    assert_eq!((after.joined(a).members.len(), after.joined(b).generation), (2, 1));
    after.saved = driver.saved.clone();
    after.sync_all(&ids, 1);

    let mut without_leader = restarted(&driver);
    without_leader.pass_alive(i64::from(REBALANCE), &[&ids[0], &ids[1]], 1);
    assert_eq!(without_leader.state(), State::Empty, "nobody sent SyncGroup");

    let mut alone = restarted(&driver);
    alone.pass(i64::from(SESSION));
    assert_eq!((alone.state(), alone.group.generation()), (State::Empty, 2));
}

#[test]
fn a_restart_while_joining_goes_back_to_the_last_generation() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    driver.join(rejoin(&ids[0]));
    assert_eq!(driver.state(), State::PreparingRebalance);
    let mut after = restarted(&driver);
    assert_eq!(after.heartbeat(&ids[1], 1), Ok(()));
    let join = after.join(rejoin(&ids[0]));
    assert_eq!(after.heartbeat(&ids[1], 1), Err(GroupError::RebalanceInProgress));
    after.join(rejoin(&ids[1]));
    assert_eq!(after.joined(join).generation, 2);
}

#[test]
fn a_static_member_that_restarted_is_not_fenced_after_the_gateway_restarts() {
    let mut driver = Driver::new();
    driver.join(static_member("one", "a"));
    driver.pass(3_000);
    driver.sync_all(&["one-a".into()], 1);
    // Its successor rebalances and knows its id, the assignment is not saved yet.
    let other = JoinRequest { protocols: crate::driver::protocols(&["roundrobin"]), ..static_member("one", "b") };
    let token =
        driver.join(JoinRequest { protocols: [other.protocols.clone(), new_member("x").protocols].concat(), ..other });
    assert_eq!(driver.joined(token).member_id, "one-b");
    let mut after = restarted(&driver);
    let token = after.join(JoinRequest { member_id: "one-b".into(), ..static_member("one", "x") });
    assert_eq!(after.join_error(token), None);
}

#[test]
fn an_empty_group_keeps_its_generation_and_the_time_it_became_empty() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    driver.leave(&[(&ids[0], None)]);
    let empty_since = driver.now;
    driver.pass(100_000);
    let mut after = restarted(&driver);
    assert_eq!(driver.saved.map(|saved| saved.state_since), Some(empty_since));
    assert_eq!((after.state(), after.group.wake_at()), (State::Empty, None));
    let token = after.join(JoinRequest { version: 3, ..new_member("b") });
    after.pass(3_000);
    assert_eq!(after.joined(token).generation, 3);
}

#[test]
fn a_generation_that_cannot_be_saved_is_tried_again_with_everyone_waiting() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let a = driver.join(rejoin(&ids[0]));
    let b = driver.join_token();
    let mut attempt = driver.group.join(driver.now, b, rejoin(&ids[1]));
    for _ in 0..3 {
        assert!(attempt.save.is_some());
        assert_eq!(attempt.replies.len(), 2);
        let undone = driver.group.undo(driver.now, attempt, GroupError::CoordinatorNotAvailable);
        assert!(undone.is_empty());
        assert_eq!((driver.state(), driver.group.generation()), (State::PreparingRebalance, 1));
        assert_eq!(driver.group.wake_at(), Some(driver.now + 1_000));
        driver.now += 1_000;
        attempt = driver.group.tick(driver.now);
    }
    driver.apply(attempt);
    assert_eq!([a, b].map(|token| driver.joined(token).generation), [2, 2]);
}

#[test]
fn a_leader_whose_assignment_cannot_be_saved_is_refused_and_may_repeat_it() {
    let mut driver = Driver::new();
    let ids = ["a", "b"].map(|name| driver.join_new(name).0);
    driver.pass(6_000);
    let b = driver.sync(sync(&ids[1], 1, &[]));
    let a = driver.sync_token();
    let outcome = driver.group.sync(driver.now, a, sync(&ids[0], 1, &[(&ids[1], "lost")]));
    let replies = driver.group.undo(driver.now, outcome, GroupError::CoordinatorNotAvailable);
    driver.answer(replies);
    assert_eq!(driver.sync_error(a), Some(GroupError::CoordinatorNotAvailable));
    assert!(!driver.is_answered(b));
    assert_eq!(driver.state(), State::CompletingRebalance);
    let rejoined = driver.join(rejoin(&ids[0]));
    assert_eq!(driver.joined(rejoined).generation, 1);
    driver.sync(sync(&ids[0], 1, &[(&ids[1], "B")]));
    assert_eq!(driver.synced(b).assignment, "B");
}

#[test]
fn a_static_member_whose_new_id_cannot_be_saved_keeps_the_old_one() {
    let mut driver = Driver::new();
    driver.join(static_member("one", "a"));
    driver.pass(3_000);
    driver.sync_all(&["one-a".into()], 1);
    let before = driver.group.describe();
    let token = driver.join_token();
    let outcome = driver.group.join(driver.now, token, static_member("one", "b"));
    let replies = driver.group.undo(driver.now, outcome, GroupError::CoordinatorNotAvailable);
    driver.answer(replies);
    let reply = driver.joined(token);
    assert_eq!((reply.error, reply.member_id.as_str()), (Some(GroupError::CoordinatorNotAvailable), ""));
    assert_eq!(driver.group.describe(), before);
    let token = driver.join(static_member("one", "c"));
    assert_eq!(driver.joined(token).member_id, "one-c");
}

#[test]
fn leaving_succeeds_also_if_the_empty_group_cannot_be_saved_yet() {
    let (mut driver, ids) = Driver::stable(&["a"]);
    let member = groups::LeavingMember { member_id: ids[0].clone(), instance_id: None };
    let (left, outcome) = driver.group.leave(driver.now, groups::LeaveRequest { members: vec![member] });
    assert!(outcome.save.is_some());
    let replies = driver.group.undo(driver.now, outcome, GroupError::CoordinatorNotAvailable);
    driver.answer(replies);
    assert_eq!(left.single_error(), None);
    assert_eq!(driver.state(), State::PreparingRebalance);
    driver.pass(1_000);
    assert_eq!((driver.state(), driver.saved.as_ref().unwrap().state), (State::Empty, StoredClassicState::Empty));
}

/// A thousand members join, sync and survive in time that is linear enough.
#[test]
fn a_thousand_members() {
    let mut driver = Driver::new();
    let started = std::time::Instant::now();
    let names: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    let joins: Vec<_> = names.iter().map(|name| driver.join_new(name)).collect();
    driver.pass(6_000);
    let ids: Vec<String> = joins.into_iter().map(|(id, token)| (driver.joined(token).generation, id).1).collect();
    driver.sync_all(&ids, 1);
    assert_eq!(restarted(&driver).group.describe(), driver.group.describe());
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}
