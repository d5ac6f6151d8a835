//! Which partitions a consumer was assigned (Kafka: `ConsumerProtocolAssignment.json`).

use bytes::Buf;

/// Topics with their partitions; `None` when the bytes are not an assignment of protocol type
/// `consumer`. What follows the partitions (user data) belongs to the members.
pub(super) fn assigned_partitions(assignment: &[u8]) -> Option<Vec<(String, Vec<i32>)>> {
    let mut bytes = assignment;
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    if bytes.try_get_i16().ok()? < 0 {
        return None;
    }
    let count = usize::try_from(bytes.try_get_i32().ok()?).ok()?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let len = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
        let name = std::str::from_utf8(bytes.get(..len)?).ok()?.to_owned();
        bytes.advance(len);
        let partitions = usize::try_from(bytes.try_get_i32().ok()?).ok()?;
        let mut list = Vec::new();
        for _ in 0..partitions {
            list.push(bytes.try_get_i32().ok()?);
        }
        topics.push((name, list));
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::assigned_partitions;

    #[test]
    fn topics_and_partitions_are_read_and_nothing_else_is() {
        let whole = b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x03\xff\xff\xff\xff";
        assert_eq!(assigned_partitions(whole), Some(vec![("t".to_owned(), vec![0, 3])]));
        assert_eq!(assigned_partitions(b""), Some(vec![]));
        for len in 1..whole.len() - 4 {
            assert_eq!(assigned_partitions(&whole[..len]), None, "{len} bytes");
        }
        assert_eq!(assigned_partitions(b"\0\0\x7f\xff\xff\xff"), None, "a claimed length allocates nothing");
        assert_eq!(assigned_partitions(b"\xff\xff\0\0\0\0"), None);
    }
}
