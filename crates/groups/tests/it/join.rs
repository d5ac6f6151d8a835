//! JoinGroup: ids, limits, the initial delay, the choice of protocol and leader.

use groups::{ClassicGroupState as State, GroupError, JoinRequest, Protocol, Settings};

use crate::driver::{Driver, REBALANCE, SESSION, new_member, protocols, rejoin, rejoin_with, static_member};

#[test]
fn what_is_out_of_range_is_refused_before_anything_else() {
    let settings = Settings::default();
    let check = |id: &str, session_timeout_ms| {
        JoinRequest { session_timeout_ms, ..new_member("c") }.validate(id, &settings).err()
    };
    let table = [
        ("", 10_000, Some(GroupError::InvalidGroupId)),
        ("", 1, Some(GroupError::InvalidGroupId)),
        ("g", 5_999, Some(GroupError::InvalidSessionTimeout)),
        ("g", 6_000, None),
        ("g", 1_800_000, None),
        ("g", 1_800_001, Some(GroupError::InvalidSessionTimeout)),
        ("g", -1, Some(GroupError::InvalidSessionTimeout)),
    ];
    for (id, session, error) in table {
        assert_eq!(check(id, session), error, "{id:?} {session}");
    }
    let mut driver = Driver::new();
    let token = driver.join(JoinRequest { session_timeout_ms: 1, ..new_member("c") });
    assert_eq!(driver.join_error(token), Some(GroupError::InvalidSessionTimeout));
}

#[test]
fn member_id_is_required_from_version_4_on_but_not_of_static_members() {
    for version in 0..=9 {
        let mut driver = Driver::new();
        let token = driver.join(JoinRequest { version, ..new_member("app") });
        if version < 4 {
            assert!(!driver.is_answered(token), "version {version}");
            driver.pass(3_000);
            assert_eq!(driver.joined(token).member_id, "app-uuid");
        } else {
            let reply = driver.joined(token);
            assert_eq!((reply.error, reply.generation), (Some(GroupError::MemberIdRequired), -1));
            assert_eq!(reply.member_id, "app-uuid");
            assert_eq!(driver.state(), State::Empty, "nobody is in the group yet");
        }
    }
    let mut driver = Driver::new();
    let token = driver.join(static_member("pod-0", "u"));
    driver.pass(3_000);
    assert_eq!(driver.joined(token).member_id, "pod-0-u");
}

#[test]
fn version_0_takes_the_session_timeout_for_the_rebalance_timeout() {
    let mut driver = Driver::new();
    let request = JoinRequest { version: 0, rebalance_timeout_ms: -1, ..new_member("old") };
    let token = driver.join(request);
    driver.pass(3_000);
    assert_eq!(driver.joined(token).error, None);
    // SyncGroup never comes: the member is out after the rebalance timeout.
    driver.pass_alive(i64::from(SESSION) - 1, &["old-uuid"], 1);
    assert_eq!(driver.state(), State::CompletingRebalance);
    driver.pass(1);
    assert_eq!(driver.state(), State::Empty);
}

#[test]
fn the_initial_delay_is_extended_while_members_come_up_to_the_rebalance_timeout() {
    // (when members join, in ms; when the joining ends)
    let table: [(&[i64], i64); 5] = [
        (&[0], 3_000),
        (&[0, 1_000], 6_000),
        (&[0, 1_000, 4_000], 9_000),
        (&[0, 2_999, 5_999, 8_999, 11_999, 14_999, 17_999, 19_000], 20_000),
        (&[0, 1_000, 7_000], 6_000),
    ];
    for (joins, end) in table {
        let mut driver = Driver::new();
        let start = driver.now;
        let mut ended = None;
        let mut first = None;
        for ms in 0..=25_000 {
            for (n, _) in joins.iter().enumerate().filter(|(_, at)| **at == ms) {
                if ended.is_some() {
                    continue;
                }
                let name = format!("m{n}");
                let request = JoinRequest { version: 3, rebalance_timeout_ms: 20_000, ..new_member(&name) };
                let token = driver.join(request);
                first.get_or_insert(token);
            }
            driver.pass(0);
            if ended.is_none() && driver.is_answered(first.unwrap()) {
                ended = Some(driver.now - start);
            }
            driver.pass(1);
        }
        assert_eq!(ended, Some(end), "{joins:?}");
    }
}

#[test]
fn without_a_delay_the_first_member_starts_at_once() {
    let mut driver = Driver::with(Settings { initial_rebalance_delay_ms: 0, ..Settings::default() });
    let (_, token) = driver.join_new("a");
    driver.pass(0);
    assert_eq!(driver.joined(token).generation, 1);
}

#[test]
fn the_leader_gets_the_list_and_the_others_do_not() {
    let mut driver = Driver::new();
    let (a, join_a) = driver.join_new("z");
    let (b, join_b) = driver.join_new("b");
    let join_c = driver.join(static_member("i", "u"));
    driver.pass(6_000);
    let reply = driver.joined(join_a);
    assert_eq!(reply.leader, a, "the first to join leads");
    let mut members: Vec<_> =
        reply.members.iter().map(|member| (member.member_id.as_str(), member.instance_id.as_deref())).collect();
    members.sort_unstable();
    assert_eq!(members, [(b.as_str(), None), ("i-u", Some("i")), (a.as_str(), None)]);
    assert_eq!(reply.members[0].metadata, protocols(&["range"])[0].metadata);
    assert_eq!((reply.protocol_type.as_deref(), reply.protocol_name.as_deref()), (Some("consumer"), Some("range")));
    for token in [join_b, join_c] {
        let reply = driver.joined(token);
        assert_eq!((reply.members.len(), reply.leader, reply.generation), (0, a.clone(), 1));
        assert!(!reply.skip_assignment);
    }
}

#[test]
fn the_protocol_with_most_votes_among_the_common_ones_wins() {
    let table: [(&[&[&str]], &str); 6] = [
        (&[&["range"]], "range"),
        (&[&["range", "sticky"], &["sticky", "range"], &["sticky", "range"]], "sticky"),
        (&[&["range", "sticky"], &["sticky"]], "sticky"),
        (&[&["a", "b", "c"], &["c", "b"], &["b", "c"]], "b"),
        (&[&["a", "b"], &["b", "a"]], "a"),
        (&[&["cooperative-sticky", "range"], &["cooperative-sticky", "range"], &["range"]], "range"),
    ];
    for (members, chosen) in table {
        let mut driver = Driver::new();
        let tokens: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(n, names)| {
                let protocols = protocols(names);
                driver.join(JoinRequest { version: 3, protocols, ..new_member(&format!("m{n}")) })
            })
            .collect();
        driver.pass(6_000);
        for token in tokens {
            assert_eq!(driver.joined(token).protocol_name.as_deref(), Some(chosen), "{members:?}");
        }
    }
}

#[test]
fn a_protocol_offered_twice_counts_once() {
    let mut driver = Driver::new();
    let doubled =
        |name: &str| JoinRequest { version: 3, protocols: protocols(&["range", "range"]), ..new_member(name) };
    driver.join(doubled("a"));
    let token = driver.join(doubled("b"));
    driver.pass(6_000);
    assert_eq!(driver.joined(token).protocol_name.as_deref(), Some("range"));
}

#[test]
fn the_group_size_is_limited() {
    let mut driver = Driver::with(Settings { max_size: 2, ..Settings::default() });
    let joins = ["a", "b", "c"].map(|name| driver.join(JoinRequest { version: 3, ..new_member(name) }));
    let reply = driver.joined(joins[2]);
    assert_eq!((reply.error, reply.member_id.as_str()), (Some(GroupError::GroupMaxSizeReached), ""));
    driver.pass(6_000);
    assert_eq!(driver.joined(joins[0]).generation, 1);
    let late = driver.join(new_member("d"));
    assert_eq!(driver.join_error(late), Some(GroupError::GroupMaxSizeReached), "also before an id is given out");
    let again = driver.join(rejoin("a-uuid"));
    assert_eq!(driver.join_error(again), None, "members are let in");
}

#[test]
fn a_lowered_limit_turns_the_last_ones_away_and_the_others_go_on_at_once() {
    let (driver, ids) = Driver::stable(&["a", "b", "c"]);
    let settings = Settings { max_size: 2, ..Settings::default() };
    let group = groups::Group::restore("g", &settings, driver.stored(), driver.now);
    let mut driver = Driver::of(group, driver.now);
    assert_eq!(driver.state(), State::PreparingRebalance);
    assert_eq!(driver.heartbeat(&ids[1], 1), Err(GroupError::RebalanceInProgress));
    let first = driver.join(rejoin(&ids[2]));
    let second = driver.join(rejoin(&ids[1]));
    let third = driver.join(rejoin(&ids[0]));
    assert_eq!(driver.join_error(third), Some(GroupError::GroupMaxSizeReached));
    assert_eq!((driver.joined(first).generation, driver.joined(second).generation), (2, 2));
}

#[test]
fn a_second_request_of_a_waiting_member_replaces_the_first() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let first = driver.join(rejoin(&ids[0]));
    let second = driver.join(rejoin(&ids[0]));
    assert_eq!(driver.join_error(first), Some(GroupError::RebalanceInProgress));
    driver.join(rejoin(&ids[1]));
    assert_eq!(driver.joined(second).generation, 2);
}

#[test]
fn the_member_list_holds_what_was_offered_last() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let b = driver.join(rejoin_with(&ids[1], &["other"]));
    let a = driver.join(rejoin(&ids[0]));
    assert_eq!(driver.joined(b).generation, 2);
    let reply = driver.joined(a);
    let changed = reply.members.iter().find(|member| member.member_id == ids[1]).unwrap();
    assert_eq!(changed.metadata, crate::driver::subscription(&["other"]));
}

#[test]
fn the_only_member_cannot_swap_all_its_protocols() {
    // Kafka compares with what the member itself offered before.
    let (mut driver, ids) = Driver::stable(&["a"]);
    let token = driver.join(JoinRequest { protocols: protocols(&["sticky"]), ..rejoin(&ids[0]) });
    assert_eq!(driver.join_error(token), Some(GroupError::InconsistentGroupProtocol));
    let token = driver.join(JoinRequest { protocols: protocols(&["sticky", "range"]), ..rejoin(&ids[0]) });
    assert_eq!(driver.joined(token).protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn any_protocol_type_with_opaque_bytes() {
    for kind in ["connect", "sr", "streams"] {
        let mut driver = Driver::new();
        let metadata = bytes::Bytes::from_static(b"\xff\xfe not a subscription");
        let protocols = vec![Protocol { name: "v0".into(), metadata: metadata.clone() }];
        let token = driver.join(JoinRequest { version: 2, protocol_type: kind.into(), protocols, ..new_member("w") });
        driver.pass(3_000);
        let reply = driver.joined(token);
        assert_eq!((reply.protocol_type.as_deref(), &reply.members[0].metadata), (Some(kind), &metadata));
        assert!(!driver.is_subscribed_to("t"));
    }
}

#[test]
fn a_leader_that_does_not_come_is_replaced() {
    let (mut driver, ids) = Driver::stable(&["a", "b", "c"]);
    let (_, join_d) = driver.join_new("d");
    let joins = [driver.join(rejoin(&ids[1])), driver.join(rejoin(&ids[2]))];
    driver.pass_alive(i64::from(REBALANCE) - 1, &[&ids[0]], 1);
    assert!(!driver.is_answered(joins[0]), "the leader still heartbeats");
    driver.pass(1);
    let leader = driver.joined(joins[0]).leader;
    assert_ne!(leader, ids[0]);
    assert_eq!(driver.joined(joins[1]).leader, leader);
    assert_eq!(driver.joined(join_d).leader, leader);
    assert_eq!(driver.heartbeat(&ids[0], 1), Err(GroupError::UnknownMemberId));
}
