//! The errors of the group APIs, by Kafka's names; the gateway knows their numbers.

use thiserror::Error;

/// Why a request was refused. Shown as Kafka's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum GroupError {
    /// The group was closed here, or what had to be saved could not be. The client looks the coordinator up again.
    #[error("COORDINATOR_NOT_AVAILABLE")]
    CoordinatorNotAvailable,
    /// Another gateway coordinates this group now.
    #[error("NOT_COORDINATOR")]
    NotCoordinator,
    #[error("ILLEGAL_GENERATION")]
    IllegalGeneration,
    /// Other protocol type than the group's, or no protocol in common with all members.
    #[error("INCONSISTENT_GROUP_PROTOCOL")]
    InconsistentGroupProtocol,
    #[error("INVALID_GROUP_ID")]
    InvalidGroupId,
    #[error("UNKNOWN_MEMBER_ID")]
    UnknownMemberId,
    #[error("INVALID_SESSION_TIMEOUT")]
    InvalidSessionTimeout,
    #[error("REBALANCE_IN_PROGRESS")]
    RebalanceInProgress,
    #[error("NON_EMPTY_GROUP")]
    NonEmptyGroup,
    #[error("GROUP_ID_NOT_FOUND")]
    GroupIdNotFound,
    /// JoinGroup 4 and later (KIP-394): join again with the id in the reply.
    #[error("MEMBER_ID_REQUIRED")]
    MemberIdRequired,
    #[error("GROUP_MAX_SIZE_REACHED")]
    GroupMaxSizeReached,
    /// Another process took the instance id over (KIP-345).
    #[error("FENCED_INSTANCE_ID")]
    FencedInstanceId,
    #[error("GROUP_SUBSCRIBED_TO_TOPIC")]
    GroupSubscribedToTopic,
}
