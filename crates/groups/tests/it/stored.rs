//! The stored form, of this gateway and of those before it.

use bytes::Bytes;
use groups::{ClassicGroupState as State, Group, GroupType, Settings, StoredClassicState, StoredError, StoredGroup};

use crate::driver::{Driver, REBALANCE, SESSION};

/// As the first gateways wrote it, which did not name the type. Never change the file: rows like it are in databases.
const WITHOUT_TYPE: &str = include_str!("../../testdata/stored/v1.json");
/// Never change the file either.
const CLASSIC_V1: &str = include_str!("../../testdata/stored/classic_v1.json");

#[test]
fn golden_file_of_version_1() {
    let golden = CLASSIC_V1.trim_end();
    let read = StoredGroup::from_json(golden).unwrap();
    assert_eq!((read.group_type(), read.generation(), read.protocol_type()), (GroupType::Classic, 7, "consumer"));
    assert!(read.has_members() && read.is_assigned());
    let StoredGroup::Classic(stored) = &read;
    assert_eq!(
        (stored.state, stored.generation, stored.state_since),
        (StoredClassicState::Stable, 7, 1_700_000_000_123)
    );
    assert_eq!(stored.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(stored.protocol_name.as_deref(), Some("range"));
    assert_eq!(stored.leader.as_deref(), Some("one-a"));
    let member = &stored.members[1];
    assert_eq!((member.member_id.as_str(), member.instance_id.as_deref()), ("two-a", Some("two")));
    assert_eq!((member.client_id.as_str(), member.client_host.as_str()), ("client", "/127.0.0.1"));
    assert_eq!((member.session_timeout_ms, member.rebalance_timeout_ms), (SESSION, REBALANCE));
    assert_eq!(member.protocols.len(), 2);
    assert_eq!(member.assignment, Bytes::from_static(b"\x00\xffB"));
    assert_eq!(read.to_json().unwrap(), golden, "what is written is what is read");
}

#[test]
fn what_the_first_gateways_wrote_is_read() {
    assert_eq!(StoredGroup::from_json(WITHOUT_TYPE).unwrap(), StoredGroup::from_json(CLASSIC_V1).unwrap());
}

#[test]
fn what_cannot_be_read_is_refused() {
    for newer in [r#"{"version":2,"shape":"new"}"#, r#"{"type":"classic","version":2,"shape":"new"}"#] {
        assert!(matches!(StoredGroup::from_json(newer), Err(StoredError::TooNew(2))));
    }
    let unknown = StoredGroup::from_json(r#"{"type":"consumer","version":1}"#);
    assert!(matches!(unknown, Err(StoredError::UnknownType(group_type)) if group_type == "consumer"));
    for golden in [WITHOUT_TYPE, CLASSIC_V1] {
        for bad in ["", "{}", "null", &golden[..golden.len() / 2], &golden.replace("AP9C", "!!")] {
            assert!(matches!(StoredGroup::from_json(bad), Err(StoredError::Malformed(_))), "{bad}");
        }
    }
}

#[test]
fn any_text_survives() {
    let strange = "NUL \0, \u{1f600}, \u{ffff}, \u{7f}, \" and \\";
    let quoted = serde_json::to_string(strange).unwrap();
    let json = CLASSIC_V1.replace("\"client\"", &quoted).replace("\"two\"", &quoted).replace("\"consumer\"", &quoted);
    let read = StoredGroup::from_json(&json).unwrap();
    let StoredGroup::Classic(stored) = &read;
    assert_eq!((stored.members[1].client_id.as_str(), read.protocol_type()), (strange, strange));
    assert_eq!(stored.members[1].instance_id.as_deref(), Some(strange));
    assert_eq!(StoredGroup::from_json(&read.to_json().unwrap()).unwrap(), read);
}

#[test]
fn a_row_that_makes_no_sense_is_taken_as_well_as_it_can_be() {
    let strange = CLASSIC_V1
        .replace(r#""leader":"one-a""#, r#""leader":"gone""#)
        .replace(r#""protocol_name":"range""#, r#""protocol_name":"none of theirs""#)
        .replace(r#""generation":7"#, r#""generation":2147483647"#)
        .replace(r#""session_timeout_ms":10000"#, r#""session_timeout_ms":-5"#);
    let stored = StoredGroup::from_json(&strange).unwrap();
    let mut driver = Driver::of(Group::restore("g", &Settings::default(), stored, 0), 0);
    assert_eq!(driver.group.describe().members.len(), 2);
    assert!(driver.is_subscribed_to("anything"), "subscriptions not known");
    driver.pass(i64::from(REBALANCE));
    assert_eq!((driver.state(), driver.group.generation()), (State::Empty, 1));
}

#[test]
fn partitions_are_owned_once_the_assignment_is_known() {
    let assignment = b"\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x03\xff\xff\xff\xff";
    let StoredGroup::Classic(mut stored) = StoredGroup::from_json(CLASSIC_V1).unwrap();
    stored.members[0].assignment = Bytes::from_static(assignment);
    let owned = |stored: &groups::StoredClassicGroup| StoredGroup::Classic(stored.clone()).owned_partitions();
    let [partition] = &owned(&stored)[..] else { panic!("another member's assignment is none") };
    assert_eq!((partition.member_id.as_str(), partition.session_timeout_ms), ("one-a", SESSION));
    assert_eq!((partition.topic.as_str(), partition.partition), ("t", 3));
    let mut connect = stored.clone();
    connect.protocol_type = Some("connect".into());
    assert_eq!(owned(&connect), []);
    stored.state = StoredClassicState::CompletingRebalance;
    assert_eq!(owned(&stored), []);
}
