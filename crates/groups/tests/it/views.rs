//! DescribeGroups, ListGroups, DeleteGroups, OffsetDelete, offset expiry; groups that are not there; commits.

use groups::{
    ClassicGroupState as State, CommitRequest, GroupError, GroupType, JoinRequest, LeaveRequest, LeavingMember,
    ListedGroup, Protocol, SyncRequest, absent,
};

use crate::driver::{Driver, commit, new_member, rejoin, rejoin_with, subscription, sync};

#[test]
fn metadata_and_protocol_are_shown_of_a_stable_group_only() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let described = driver.group.describe();
    assert_eq!((described.state, described.protocol_data.as_str()), (State::Stable, "range"));
    assert_eq!(described.members[0].metadata, subscription(&["t"]));
    assert_eq!(described.members[0].assignment, ids[0]);
    assert_eq!(
        (described.members[0].client_id.as_str(), described.members[0].client_host.as_str()),
        ("a", "/127.0.0.1")
    );
    driver.join(rejoin(&ids[0]));
    let described = driver.group.describe();
    assert_eq!((described.state, described.protocol_data.as_str()), (State::PreparingRebalance, ""));
    assert_eq!((described.protocol_type.as_str(), described.members.len()), ("consumer", 2));
    assert_eq!((described.members[0].metadata.len(), &described.members[0].assignment[..]), (0, ids[0].as_bytes()));
}

#[test]
fn states_filter_without_regard_to_case() {
    let listed = Driver::stable(&["a"]).0.group.list();
    assert_eq!((listed.group_id.as_str(), listed.protocol_type.as_str()), ("g", "consumer"));
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let filter = |names: &[&str]| listed.passes(&texts(names), &[]);
    assert!(filter(&[]) && filter(&["Stable"]) && filter(&["Empty", "sTABLE"]));
    assert!(!filter(&["Empty"]) && !filter(&[""]));
    let types = |names: &[&str]| listed.passes(&[], &texts(names));
    assert!(types(&["Classic"]) && types(&["consumer", "classic"]) && !types(&["consumer"]));
    assert!(!listed.passes(&texts(&["Stable"]), &texts(&["share"])), "both filters count");
    let names = [State::Empty, State::PreparingRebalance, State::CompletingRebalance, State::Stable, State::Dead];
    let expected = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"];
    assert_eq!(names.map(State::name), expected);
    let empty = ListedGroup::empty("g", GroupType::Classic, "");
    assert_eq!((empty.state, empty.group_type.name()), (State::Empty.name(), "classic"));
}

#[test]
fn offsets_of_topics_that_are_read_cannot_be_deleted() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    assert_eq!(driver.group.check_offset_delete(), Ok(()));
    assert_eq!(driver.group.check_offset_delete_of("t"), Err(GroupError::GroupSubscribedToTopic));
    assert_eq!(driver.group.check_offset_delete_of("u"), Ok(()));
    let join = driver.join(rejoin_with(&ids[0], &["u"]));
    driver.join(rejoin_with(&ids[1], &["v"]));
    assert_eq!(driver.joined(join).generation, 2);
    let subscribed = ["t", "u", "v"].map(|topic| driver.is_subscribed_to(topic));
    assert_eq!(subscribed, [false, true, true]);
    driver.leave(&[(&ids[0], None), (&ids[1], None)]);
    assert_eq!(driver.group.check_offset_delete_of("u"), Ok(()));
}

#[test]
fn a_consumer_with_an_unreadable_subscription_may_read_every_topic() {
    let mut driver = Driver::new();
    let protocols = vec![Protocol { name: "range".into(), metadata: bytes::Bytes::from_static(b"\0") }];
    driver.join(JoinRequest { version: 3, protocols, ..new_member("a") });
    driver.pass(3_000);
    assert!(driver.is_subscribed_to("anything"));
    assert_eq!(driver.group.needed_topics(), None);
}

#[test]
fn other_protocol_types_keep_their_offsets_while_they_live() {
    let mut driver = Driver::new();
    let connect = JoinRequest { version: 3, protocol_type: "connect".into(), ..new_member("w") };
    let token = driver.join(connect);
    driver.pass(3_000);
    let id = driver.joined(token).member_id;
    assert_eq!(driver.group.check_offset_delete(), Err(GroupError::NonEmptyGroup));
    assert_eq!(driver.group.check_delete(), Err(GroupError::NonEmptyGroup));
    driver.sync(SyncRequest { protocol_type: Some("connect".into()), ..sync(&id, 1, &[(&id, "work")]) });
    assert_eq!((driver.state(), driver.group.needed_topics()), (State::Stable, None));
    driver.leave(&[(&id, None)]);
    assert_eq!(driver.group.check_offset_delete(), Ok(()));
    assert_eq!(driver.group.check_delete(), Ok(()));
}

#[test]
fn a_stable_group_needs_the_topics_of_all_its_members_and_one_that_rebalances_needs_everything() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let needed =
        |driver: &Driver| driver.group.needed_topics().map(|topics| topics.iter().cloned().collect::<Vec<_>>());
    assert_eq!(needed(&driver), Some(vec!["t".to_owned()]));
    let join = driver.join(rejoin_with(&ids[0], &["u"]));
    assert_eq!((driver.state(), needed(&driver)), (State::PreparingRebalance, None));
    driver.join(rejoin_with(&ids[1], &["v"]));
    assert_eq!(driver.joined(join).generation, 2);
    assert_eq!((driver.state(), needed(&driver)), (State::CompletingRebalance, None));
    driver.sync_all(&ids, 2);
    assert_eq!((driver.state(), needed(&driver)), (State::Stable, Some(vec!["u".to_owned(), "v".to_owned()])));
}

#[test]
fn who_may_commit() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    let now = driver.now;
    let mut check = |request: CommitRequest| driver.group.check_commit(now, &request).err();
    let unknown = Some(GroupError::UnknownMemberId);
    let illegal = Some(GroupError::IllegalGeneration);
    assert_eq!(check(commit(&ids[0], 1)), None);
    assert_eq!(check(commit(&ids[0], 2)), illegal);
    assert_eq!(check(commit(&ids[0], -1)), illegal);
    assert_eq!(check(commit("", 1)), unknown);
    assert_eq!(check(commit("", -1)), unknown);
    assert_eq!(check(CommitRequest { instance_id: Some("i".into()), ..commit("", -1) }), unknown);
    let transactional =
        |member_id: &str, generation| CommitRequest { transactional: true, ..commit(member_id, generation) };
    assert_eq!(check(transactional("", -1)), None);
    assert_eq!(check(transactional(&ids[0], 2)), illegal);
    assert_eq!(check(transactional("x", 1)), unknown);
}

#[test]
fn commits_while_the_group_rebalances() {
    let (mut driver, ids) = Driver::stable(&["a", "b"]);
    driver.join(rejoin(&ids[0]));
    assert_eq!(driver.commit(&ids[1], 1), Ok(()), "what was revoked is committed before joining again");
    driver.join(rejoin(&ids[1]));
    assert_eq!(driver.commit(&ids[1], 1), Err(GroupError::IllegalGeneration));
    assert_eq!(driver.commit(&ids[1], 2), Err(GroupError::RebalanceInProgress));
    driver.sync(sync(&ids[0], 2, &[]));
    assert_eq!(driver.commit(&ids[1], 2), Ok(()));
}

#[test]
fn groups_that_are_not_there() {
    let joined = absent::join(&rejoin("x")).unwrap();
    assert_eq!((joined.error, joined.member_id.as_str()), (Some(GroupError::UnknownMemberId), "x"));
    assert_eq!(absent::join(&new_member("a")), None);
    assert_eq!(absent::sync().error, Some(GroupError::UnknownMemberId));
    assert_eq!(absent::heartbeat(), GroupError::UnknownMemberId);
    let leaving = LeavingMember { member_id: "x".into(), instance_id: None };
    let left = absent::leave(&LeaveRequest { members: vec![leaving] });
    assert_eq!((left.error, left.single_error()), (None, Some(GroupError::UnknownMemberId)));
    assert_eq!(absent::check_commit(9, &commit("", -1)), Ok(()));
    assert_eq!(absent::check_commit(8, &commit("x", 1)), Err(GroupError::IllegalGeneration));
    assert_eq!(absent::check_commit(9, &commit("x", 1)), Err(GroupError::GroupIdNotFound));
    let transactional = CommitRequest { transactional: true, ..commit("x", 1) };
    assert_eq!(absent::check_commit(9, &transactional), Err(GroupError::IllegalGeneration));
    assert_eq!(absent::delete(), GroupError::GroupIdNotFound);
    let (described, error) = absent::describe(5, "g", false);
    assert_eq!((described.state, described.group_id.as_str(), error), (State::Dead, "g", None));
    assert_eq!(absent::describe(6, "g", false).1, Some(GroupError::GroupIdNotFound));
    let (described, error) = absent::describe(6, "g", true);
    assert_eq!((described.state, error), (State::Empty, None), "a simple group");
}
