//! What a client may do.
//!
//! There is no authorizer: every client may do whatever there is to be done with a resource, as with
//! Apache Kafka without one (`AuthHelper.authorizedOperations`).

use self::Operation::{
    Alter, AlterConfigs, ClusterAction, Create, Delete, Describe, DescribeConfigs, IdempotentWrite, Read, Write,
};

/// Kafka's `AclOperation`, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Alter = 7,
    Describe = 8,
    ClusterAction = 9,
    DescribeConfigs = 10,
    AlterConfigs = 11,
    IdempotentWrite = 12,
}

/// What an operation is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceType {
    Topic,
    Group,
    Cluster,
}

impl ResourceType {
    /// Kafka: `AclEntry.supportedOperations`.
    const fn operations(self) -> &'static [Operation] {
        match self {
            Self::Topic => &[Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs],
            Self::Group => &[Read, Delete, Describe, DescribeConfigs, AlterConfigs],
            Self::Cluster => &[Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite],
        }
    }
}

pub(crate) fn is_allowed(operation: Operation, resource: ResourceType) -> bool {
    resource.operations().contains(&operation)
}

/// The field of that name: bit n stands for operation n. A client that does not ask gets `i32::MIN` (KIP-430).
pub(crate) fn authorized_operations(resource: ResourceType, is_asked: bool) -> i32 {
    if !is_asked {
        return i32::MIN;
    }
    let allowed = resource.operations().iter().filter(|operation| is_allowed(**operation, resource));
    allowed.fold(0, |bits, operation| bits | 1 << (*operation as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Apache Kafka 4.1 without an authorizer tells them.
    #[test]
    fn the_bits_are_kafkas() {
        assert_eq!(authorized_operations(ResourceType::Topic, true), 0b1101_1111_1000);
        assert_eq!(authorized_operations(ResourceType::Group, true), 0b1101_0100_1000);
        assert_eq!(authorized_operations(ResourceType::Cluster, true), 0b1_1111_1010_0000);
        assert_eq!(authorized_operations(ResourceType::Topic, false), i32::MIN);
    }
}
