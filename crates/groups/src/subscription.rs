//! The topics in a consumer's subscription (Kafka: `ConsumerProtocolSubscription.json`).

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};

/// The topics of a subscription blob of protocol type `consumer`; `None` when it cannot be parsed.
///
/// Only the head is read: a version (≥ 0) and the list of topics, which begin every version. What follows (user
/// data, owned partitions, generation, rack) belongs to the members.
pub fn subscribed_topics(metadata: &Bytes) -> Option<BTreeSet<String>> {
    let mut bytes = &metadata[..];
    if bytes.try_get_i16().ok()? < 0 {
        return None;
    }
    let count = usize::try_from(bytes.try_get_i32().ok()?).ok()?;
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let len = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
        let topic = bytes.get(..len)?;
        topics.insert(std::str::from_utf8(topic).ok()?.to_owned());
        bytes.advance(len);
    }
    Some(topics)
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
}
