//! Every event in every state: what is answered, and which state and generation follow.

use groups::{ClassicGroupState as State, CommitRequest, GroupError, JoinRequest, JoinToken, SyncRequest, SyncToken};

use crate::driver::{Driver, commit, new_member, rejoin, rejoin_with, sync};

/// Members `a` (the leader) and `b`; `p` has a pending member id.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Empty,
    /// Both wait in JoinGroup, the initial delay runs.
    Initial,
    /// Generation 1 was stable, `a` rejoined with other topics and waits, `b` did not come yet.
    Preparing,
    /// Generation 1, nobody sent SyncGroup.
    Completing,
    /// Generation 1.
    Stable,
    Dead,
}

const A: &str = "a-uuid";
const B: &str = "b-uuid";

fn before(state: Before) -> Driver {
    let mut driver = match state {
        Before::Empty | Before::Dead => Driver::new(),
        Before::Initial | Before::Completing => {
            let mut driver = Driver::new();
            driver.join_new("a");
            driver.join_new("b");
            if state == Before::Completing {
                driver.pass(6_000);
            }
            driver
        }
        Before::Preparing | Before::Stable => Driver::stable(&["a", "b"]).0,
    };
    match state {
        Before::Preparing => drop(driver.join(rejoin_with(A, &["other"]))),
        Before::Dead => {
            let closed = driver.group.close(GroupError::NotCoordinator);
            driver.answer(closed);
        }
        _ => {}
    }
    driver
}

fn join_answer(driver: &mut Driver, token: JoinToken) -> String {
    if !driver.is_answered(token) {
        return "waits".into();
    }
    let reply = driver.joined(token);
    match reply.error {
        Some(error) => error.to_string(),
        None => format!("gen {} with {} members", reply.generation, reply.members.len()),
    }
}

fn sync_answer(driver: &mut Driver, token: SyncToken) -> String {
    if !driver.is_answered(token) {
        return "waits".into();
    }
    let reply = driver.synced(token);
    match reply.error {
        Some(error) => error.to_string(),
        None => format!("got {:?}", String::from_utf8_lossy(&reply.assignment)),
    }
}

fn result(result: Result<(), GroupError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "ok".into())
}

/// `None`: another event.
fn join_request(event: &str) -> Option<JoinRequest> {
    let request = match event {
        "new member, v4+" => new_member("c"),
        "new member, v3" => JoinRequest { version: 3, ..new_member("c") },
        "new member, no common protocol" => {
            JoinRequest { version: 3, protocols: crate::driver::protocols(&["sticky"]), ..new_member("c") }
        }
        "new member, no protocols" => JoinRequest { version: 3, protocols: vec![], ..new_member("c") },
        "new member, other type" => JoinRequest { version: 3, protocol_type: "connect".into(), ..new_member("c") },
        "unknown id joins" => rejoin("x"),
        "leader joins, same" => rejoin(A),
        "follower joins, same" => rejoin(B),
        "follower joins, changed" => rejoin_with(B, &["other"]),
        _ => return None,
    };
    Some(request)
}

/// `None`: another event.
fn sync_request(event: &str) -> Option<SyncRequest> {
    let request = match event {
        "leader syncs" => sync(A, 1, &[(A, "for a"), ("x", "for nobody")]),
        "follower syncs" => sync(B, 1, &[]),
        "old generation syncs" => sync(B, 0, &[]),
        _ => return None,
    };
    Some(request)
}

fn happen(driver: &mut Driver, event: &str) -> String {
    if let Some(request) = join_request(event) {
        let token = driver.join(request);
        return join_answer(driver, token);
    }
    if let Some(request) = sync_request(event) {
        let token = driver.sync(request);
        return sync_answer(driver, token);
    }
    match event {
        "heartbeat" => result(driver.heartbeat(B, 1)),
        "heartbeat, old generation" => result(driver.heartbeat(B, 0)),
        "heartbeat, unknown id" => result(driver.heartbeat("x", 1)),
        "leader leaves" => leave(driver, A),
        "unknown id leaves" => leave(driver, "x"),
        "commit of nobody" => result(driver.commit("", -1)),
        "commit" => result(driver.commit(B, 1)),
        "commit, old generation" => result(driver.commit(B, 0)),
        "transactional commit" => transactional_commit(driver, B, 1),
        "transactional commit of nobody" => transactional_commit(driver, "", -1),
        "time passes" => {
            driver.pass(400_000);
            "-".into()
        }
        "group is deleted" => result(driver.group.check_delete()),
        "offsets are deleted" => result(driver.group.check_offset_delete()),
        other => panic!("{other}"),
    }
}

fn transactional_commit(driver: &mut Driver, member_id: &str, generation: i32) -> String {
    let request = CommitRequest { transactional: true, ..commit(member_id, generation) };
    result(driver.group.check_commit(driver.now, &request))
}

fn leave(driver: &mut Driver, member_id: &str) -> String {
    let reply = driver.leave(&[(member_id, None)]);
    reply.single_error().map_or_else(|| "ok".into(), |error| error.to_string())
}

fn after(state: Before, event: &str) -> String {
    let mut driver = before(state);
    let answer = happen(&mut driver, event);
    format!("{answer}; {} {}", driver.state().name(), driver.group.generation())
}

#[test]
fn every_event_in_every_state() {
    let table = include_str!("transitions.txt");
    let mut wrong = Vec::new();
    let mut rows = 0;
    for row in table.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [state, event, expected] = columns[..] else { panic!("{row}") };
        let state = match state {
            "Empty" => Before::Empty,
            "Initial" => Before::Initial,
            "Preparing" => Before::Preparing,
            "Completing" => Before::Completing,
            "Stable" => Before::Stable,
            "Dead" => Before::Dead,
            other => panic!("{other}"),
        };
        let is = after(state, event);
        if is != expected {
            wrong.push(format!("{state:?} | {event} | {is}\n    expected: {expected}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(rows, 25 * 6, "every event in every state");
}

#[test]
fn the_states_before_are_what_they_say() {
    let states = [Before::Empty, Before::Initial, Before::Preparing, Before::Completing, Before::Stable, Before::Dead];
    let is = states.map(|state| before(state).state());
    let rebalance = State::PreparingRebalance;
    assert_eq!(is, [State::Empty, rebalance, rebalance, State::CompletingRebalance, State::Stable, State::Dead]);
}
