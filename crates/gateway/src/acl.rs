//! "Authorized operations" of answers that have the field.
//!
//! There is no authorizer, so whoever asks may do everything that the resource knows, as with
//! Apache Kafka without one (`AuthHelper.authorizedOperations`). Bit n stands for
//! `AclOperation` n; who does not ask gets `i32::MIN` (KIP-430).

const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

const NOT_ASKED: i32 = i32::MIN;

/// Operations on the cluster (Kafka: `AclEntry.supportedOperations(CLUSTER)`).
pub(crate) fn cluster_operations(asked: bool) -> i32 {
    if !asked {
        return NOT_ASKED;
    }
    CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE
}

/// Operations on a topic (Kafka: `AclEntry.supportedOperations(TOPIC)`).
pub(crate) fn topic_operations(asked: bool) -> i32 {
    if !asked {
        return NOT_ASKED;
    }
    READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
}

/// Operations on a group (Kafka: `AclEntry.supportedOperations(GROUP)`).
pub(crate) fn group_operations(asked: bool) -> i32 {
    if !asked {
        return NOT_ASKED;
    }
    READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
}
