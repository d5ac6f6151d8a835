//! What consumers say in JoinGroup and SyncGroup (Kafka: `ConsumerProtocolSubscription.json` and
//! `ConsumerProtocolAssignment.json`). Only the head is read, which is the same in every version; what follows (user
//! data, owned partitions, generation, rack) is between the members.

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};

/// The protocol type of Kafka's consumers: the only one whose bytes are ever parsed.
pub(crate) const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// The topics of a subscription blob of protocol type `consumer`; `None` when it cannot be parsed.
pub(crate) fn subscribed_topics(metadata: &Bytes) -> Option<BTreeSet<String>> {
    let mut bytes = &metadata[..];
    let count = read_head(&mut bytes)?;
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        topics.insert(read_topic(&mut bytes)?);
    }
    Some(topics)
}

/// The partitions of an assignment blob of protocol type `consumer`, none if it is empty; `None` when it cannot be
/// parsed.
pub(crate) fn assigned_partitions(assignment: &[u8]) -> Option<Vec<(String, i32)>> {
    let mut bytes = assignment;
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let count = read_head(&mut bytes)?;
    let mut assigned = Vec::new();
    for _ in 0..count {
        let topic = read_topic(&mut bytes)?;
        let partitions = read_count(&mut bytes)?;
        for _ in 0..partitions {
            assigned.push((topic.clone(), bytes.try_get_i32().ok()?));
        }
    }
    Some(assigned)
}

/// A version (≥ 0) and the number of topics.
fn read_head(bytes: &mut &[u8]) -> Option<usize> {
    if bytes.try_get_i16().ok()? < 0 {
        return None;
    }
    read_count(bytes)
}

fn read_count(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(bytes.try_get_i32().ok()?).ok()
}

fn read_topic(bytes: &mut &[u8]) -> Option<String> {
    let len = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
    let topic = std::str::from_utf8(bytes.get(..len)?).ok()?.to_owned();
    bytes.advance(len);
    Some(topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(bytes: &'static [u8]) -> Option<Vec<String>> {
        subscribed_topics(&Bytes::from_static(bytes)).map(|topics| topics.into_iter().collect())
    }

    #[test]
    fn every_version_begins_with_version_and_topics() {
        assert_eq!(topics(b"\0\0\0\0\0\x02\0\x01b\0\x02aa\xff\xff\xff\xff"), Some(vec!["aa".into(), "b".into()]));
        assert_eq!(topics(b"\0\x03\0\0\0\x01\0\x01t\0\0\0\0future"), Some(vec!["t".into()]));
        assert_eq!(topics(b"\0\x01\0\0\0\0"), Some(vec![]));
    }

    #[test]
    fn what_is_cut_off_or_negative_is_no_subscription() {
        let whole = b"\0\0\0\0\0\x02\0\x01b\0\x02aa";
        for len in 0..whole.len() {
            assert_eq!(subscribed_topics(&Bytes::copy_from_slice(&whole[..len])), None, "{len} bytes");
        }
        assert_eq!(topics(b"\xff\xff\0\0\0\0"), None);
        assert_eq!(topics(b"\0\0\xff\xff\xff\xff"), None);
        assert_eq!(topics(b"\0\0\x7f\xff\xff\xff\0\0"), None, "a claimed length allocates nothing");
        assert_eq!(topics(b"\0\0\0\0\0\x01\xff\xff"), None);
        assert_eq!(topics(b"\0\0\0\0\0\x01\0\x01\xff"), None, "not UTF-8");
    }

    #[test]
    fn topics_and_partitions_are_read_and_nothing_else_is() {
        let whole = b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x03\xff\xff\xff\xff";
        assert_eq!(assigned_partitions(whole), Some(vec![("t".to_owned(), 0), ("t".to_owned(), 3)]));
        assert_eq!(assigned_partitions(b""), Some(vec![]));
        for len in 1..whole.len() - 4 {
            assert_eq!(assigned_partitions(&whole[..len]), None, "{len} bytes");
        }
        assert_eq!(assigned_partitions(b"\0\0\x7f\xff\xff\xff"), None, "a claimed length allocates nothing");
        assert_eq!(assigned_partitions(b"\xff\xff\0\0\0\0"), None);
    }
}
