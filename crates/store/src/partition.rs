//! A Kafka partition as the tables know it.

use sha2::{Digest, Sha256};

/// One partition of one topic: `topic_id` and `partition_id` of the message table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    pub topic_id: i64,
    pub partition_id: i32,
}

impl PartitionKey {
    pub fn new(topic_id: i64, partition_id: i32) -> Self {
        Self { topic_id, partition_id }
    }

    /// Key of the advisory lock under which every writer, pgQueue's clients included, appends to
    /// this partition: the first 8 bytes of SHA-256("topic_id:partition_id"), big-endian, mod 2^62
    /// (`advisory_lock_key` of `datahub.pgqueue.repository`).
    pub fn lock_key(&self) -> i64 {
        let digest = Sha256::digest(format!("{}:{}", self.topic_id, self.partition_id));
        let first: [u8; 8] = std::array::from_fn(|i| digest[i]);
        (u64::from_be_bytes(first) % (1 << 62)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::PartitionKey;

    #[test]
    fn lock_keys_equal_those_of_the_python_client() {
        // advisory_lock_key(topic_id, partition_id) of acryl-datahub 1.7.0.17.
        assert_eq!(PartitionKey::new(1, 0).lock_key(), LOCK_1_0);
        assert_eq!(PartitionKey::new(42, 7).lock_key(), LOCK_42_7);
        assert_eq!(PartitionKey::new(i64::MAX, 4095).lock_key(), LOCK_MAX_4095);
    }

    const LOCK_1_0: i64 = 2_767_566_679_685_037_052;
    const LOCK_42_7: i64 = 3_845_419_009_755_487_790;
    const LOCK_MAX_4095: i64 = 1_544_523_386_158_410_786;
}
