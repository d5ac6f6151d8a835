//! Every event in every state: what is answered, and which state and generation follow.

use groups::{GroupError, JoinRequest, State, Token};

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
            driver.apply(closed);
        }
        _ => {}
    }
    driver
}

fn join_answer(driver: &mut Driver, token: Token) -> String {
    if !driver.is_answered(token) {
        return "waits".into();
    }
    let reply = driver.joined(token);
    match reply.error {
        Some(error) => error.to_string(),
        None => format!("gen {} with {} members", reply.generation, reply.members.len()),
    }
}

fn sync_answer(driver: &mut Driver, token: Token) -> String {
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

fn happen(driver: &mut Driver, event: &str) -> String {
    match event {
        "new member, v4+" => {
            let token = driver.join(new_member("c"));
            join_answer(driver, token)
        }
        "new member, v3" => {
            let token = driver.join(JoinRequest { version: 3, ..new_member("c") });
            join_answer(driver, token)
        }
        "new member, no common protocol" => {
            let protocols = crate::driver::protocols(&["sticky"]);
            let token = driver.join(JoinRequest { version: 3, protocols, ..new_member("c") });
            join_answer(driver, token)
        }
        "new member, no protocols" => {
            let token = driver.join(JoinRequest { version: 3, protocols: vec![], ..new_member("c") });
            join_answer(driver, token)
        }
        "new member, other type" => {
            let token = driver.join(JoinRequest { version: 3, protocol_type: "connect".into(), ..new_member("c") });
            join_answer(driver, token)
        }
        "unknown id joins" => {
            let token = driver.join(rejoin("x"));
            join_answer(driver, token)
        }
        "leader joins, same" => {
            let token = driver.join(rejoin(A));
            join_answer(driver, token)
        }
        "follower joins, same" => {
            let token = driver.join(rejoin(B));
            join_answer(driver, token)
        }
        "follower joins, changed" => {
            let token = driver.join(rejoin_with(B, &["other"]));
            join_answer(driver, token)
        }
        "leader syncs" => {
            let token = driver.sync(sync(A, 1, &[(A, "for a"), ("x", "for nobody")]));
            sync_answer(driver, token)
        }
        "follower syncs" => {
            let token = driver.sync(sync(B, 1, &[]));
            sync_answer(driver, token)
        }
        "old generation syncs" => {
            let token = driver.sync(sync(B, 0, &[]));
            sync_answer(driver, token)
        }
        "heartbeat" => result(driver.heartbeat(B, 1)),
        "heartbeat, old generation" => result(driver.heartbeat(B, 0)),
        "heartbeat, unknown id" => result(driver.heartbeat("x", 1)),
        "leader leaves" => leave(driver, A),
        "unknown id leaves" => leave(driver, "x"),
        "commit of nobody" => result(driver.commit("", -1)),
        "commit" => result(driver.commit(B, 1)),
        "commit, old generation" => result(driver.commit(B, 0)),
        "transactional commit" => {
            let mut request = commit(B, 1);
            request.transactional = true;
            result(driver.group.check_commit(driver.now, &request))
        }
        "transactional commit of nobody" => {
            let mut request = commit("", -1);
            request.transactional = true;
            result(driver.group.check_commit(driver.now, &request))
        }
        "time passes" => {
            driver.pass(400_000);
            "-".into()
        }
        "group is deleted" => result(driver.group.check_delete()),
        "offsets are deleted" => result(driver.group.check_offset_delete()),
        other => panic!("{other}"),
    }
}

fn leave(driver: &mut Driver, member_id: &str) -> String {
    let reply = driver.leave(&[(member_id, None)]);
    reply.single_error().map_or_else(|| "ok".into(), |error| error.to_string())
}

fn after(state: Before, event: &str) -> String {
    let mut driver = before(state);
    let answer = happen(&mut driver, event);
    let group = &driver.group;
    format!("{answer}; {} {}", group.state().name(), group.generation())
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
    let is = states.map(|state| before(state).group.state());
    let rebalance = State::PreparingRebalance;
    assert_eq!(is, [State::Empty, rebalance, rebalance, State::CompletingRebalance, State::Stable, State::Dead]);
}
