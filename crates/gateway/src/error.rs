//! What went wrong, as Kafka error codes. The only place that maps errors of the store and of
//! record batches to codes.
//!
//! A retriable store error becomes the code on which clients of that very API go on by themselves:
//! Fetch and ListOffsets accept only a few codes as "try again" (Java: `FetchCollector`,
//! `OffsetFetcherUtils`), a producer retries NOT_ENOUGH_REPLICAS and keeps its batch, a topic
//! without a leader makes every client refresh its metadata, and an admin call that may or may not
//! have been carried out has timed out.

use groups::GroupError;
use kafka_protocol::messages::ApiKey;
use store::{AppendError, StoreError};
use tracing::{debug, warn};
use wire::{ErrorCode, batch::BatchError};

use crate::context::RequestContext;

/// Why a handler has no answer of its own for a request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}", .0.message())]
    Code(ErrorCode),
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl ApiError {
    /// The code that a client of this API gets.
    pub fn code(&self, api: ApiKey) -> ErrorCode {
        match self {
            Self::Store(error) => store_error_code(error, api),
            Self::Code(code) => *code,
        }
    }
}

/// The code that a client of this API gets for an error of the store.
pub fn store_error_code(error: &StoreError, api: ApiKey) -> ErrorCode {
    match error {
        StoreError::Unavailable(_)
        | StoreError::Contended(_)
        | StoreError::NoTimePartition(_)
        // Another gateway, or a person with `migrate`, is expected to finish the schema.
        | StoreError::SchemaNotReady(_) => try_again(api),
        StoreError::AlreadyExists(_) => ErrorCode::TopicAlreadyExists,
        StoreError::Corrupt(_) => match api {
            ApiKey::Fetch => ErrorCode::CorruptMessage,
            _ => ErrorCode::UnknownServerError,
        },
        StoreError::Denied(_) | StoreError::InvalidConfig(_) | StoreError::Other(_) => ErrorCode::UnknownServerError,
    }
}

fn try_again(api: ApiKey) -> ErrorCode {
    match api {
        ApiKey::Produce => ErrorCode::NotEnoughReplicas,
        ApiKey::Fetch | ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => ErrorCode::KafkaStorageError,
        ApiKey::Metadata => ErrorCode::LeaderNotAvailable,
        // Clients look the coordinator up again, and find the same one when Postgres is back.
        ApiKey::FindCoordinator
        | ApiKey::OffsetCommit
        | ApiKey::JoinGroup
        | ApiKey::SyncGroup
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::DescribeGroups
        | ApiKey::ListGroups
        | ApiKey::DeleteGroups
        | ApiKey::OffsetDelete => ErrorCode::CoordinatorNotAvailable,
        // Never "no offset", and never what Java takes for fatal here (`OffsetFetchResponseHandler`).
        ApiKey::OffsetFetch => ErrorCode::CoordinatorLoadInProgress,
        // Not COORDINATOR_NOT_AVAILABLE: an idempotent producer would look for the coordinator of
        // a transactional id that it does not have (Java: `TransactionManager`).
        ApiKey::InitProducerId => ErrorCode::CoordinatorLoadInProgress,
        _ => ErrorCode::RequestTimedOut,
    }
}

/// The code for a batch that a producer should not have sent (api.md 3.3).
pub fn batch_error_code(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::InvalidLength(_) | BatchError::UnknownMagic(_) | BatchError::CrcMismatch { .. } => {
            ErrorCode::CorruptMessage
        }
        BatchError::TooLarge { .. } | BatchError::DecompressedTooLarge { .. } => ErrorCode::MessageTooLarge,
        BatchError::UnknownCompression(_) => ErrorCode::UnsupportedCompressionType,
        BatchError::LogAppendTimeFromProducer => ErrorCode::InvalidTimestamp,
        BatchError::Empty
        | BatchError::Truncated { .. }
        | BatchError::OldMagic(_)
        | BatchError::MoreThanOneBatch(_)
        | BatchError::Decompression { .. }
        | BatchError::InvalidHeader { .. }
        | BatchError::RecordCount { .. }
        | BatchError::MalformedRecord { .. }
        | BatchError::BytesAfterRecords(_) => ErrorCode::InvalidRecord,
    }
}

/// The code for a batch that was not stored (api.md 3.3 and 3.4).
pub fn append_error_code(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
        AppendError::OutOfOrderSequence => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::StaleProducerEpoch => ErrorCode::InvalidProducerEpoch,
        AppendError::Store(error) => store_error_code(error, ApiKey::Produce),
        AppendError::ShuttingDown => try_again(ApiKey::Produce),
    }
}

/// The number of a refusal by a group (api.md 3.7 and 3.8).
pub fn group_error_code(error: GroupError) -> ErrorCode {
    match error {
        GroupError::CoordinatorNotAvailable => ErrorCode::CoordinatorNotAvailable,
        GroupError::NotCoordinator => ErrorCode::NotCoordinator,
        GroupError::IllegalGeneration => ErrorCode::IllegalGeneration,
        GroupError::InconsistentGroupProtocol => ErrorCode::InconsistentGroupProtocol,
        GroupError::InvalidGroupId => ErrorCode::InvalidGroupId,
        GroupError::UnknownMemberId => ErrorCode::UnknownMemberId,
        GroupError::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
        GroupError::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        GroupError::NonEmptyGroup => ErrorCode::NonEmptyGroup,
        GroupError::GroupIdNotFound => ErrorCode::GroupIdNotFound,
        GroupError::MemberIdRequired => ErrorCode::MemberIdRequired,
        GroupError::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
        GroupError::FencedInstanceId => ErrorCode::FencedInstanceId,
        GroupError::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
    }
}

/// The same, or no error.
pub(crate) fn group_error_or_none(error: Option<GroupError>) -> ErrorCode {
    error.map_or(ErrorCode::None, group_error_code)
}

/// Logs a failed request. What passes by itself is the database's story, told once by the readiness
/// check; a line per request would bury it.
pub(crate) fn report(ctx: &RequestContext, api: &str, code: ErrorCode, error: &ApiError) {
    let client = ctx.client_id.as_deref().unwrap_or_default();
    if code.is_retriable() || matches!(error, ApiError::Code(_)) {
        debug!(peer = %ctx.peer, client, api, code = code.name(), %error, "request failed");
    } else {
        warn!(peer = %ctx.peer, client, api, code = code.name(), %error, "request failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::APIS;

    #[test]
    fn every_api_gets_a_retriable_code_while_postgres_is_away() {
        let away: [fn(String) -> StoreError; 4] =
            [StoreError::Unavailable, StoreError::Contended, StoreError::NoTimePartition, StoreError::SchemaNotReady];
        for api in APIS {
            let key = ApiKey::try_from(api.key).unwrap();
            for error in away {
                let code = store_error_code(&error("away".to_owned()), key);
                assert!(code.is_retriable(), "{}: {}", api.name, code.name());
            }
        }
    }

    /// The codes that the Java consumer takes as "refresh metadata and try again"; any other ends in
    /// an exception (Java: `FetchCollector.handleInitializeErrors`).
    #[test]
    fn a_fetch_is_told_to_try_again_in_words_that_java_knows() {
        let code = store_error_code(&StoreError::Unavailable(String::new()), ApiKey::Fetch);
        assert_eq!(code, ErrorCode::KafkaStorageError);
    }

    #[test]
    fn group_errors_have_the_name_of_their_number() {
        use GroupError::*;
        for error in [
            CoordinatorNotAvailable,
            NotCoordinator,
            IllegalGeneration,
            InconsistentGroupProtocol,
            InvalidGroupId,
            UnknownMemberId,
            InvalidSessionTimeout,
            RebalanceInProgress,
            NonEmptyGroup,
            GroupIdNotFound,
            MemberIdRequired,
            GroupMaxSizeReached,
            FencedInstanceId,
            GroupSubscribedToTopic,
        ] {
            assert_eq!(group_error_code(error).name(), error.to_string());
        }
    }

    #[test]
    fn errors_that_do_not_pass_are_not_retriable() {
        for error in [
            StoreError::Denied(String::new()),
            StoreError::InvalidConfig(String::new()),
            StoreError::Corrupt(String::new()),
            StoreError::Other(String::new()),
        ] {
            assert!(!store_error_code(&error, ApiKey::Produce).is_retriable(), "{error:?}");
        }
    }

    #[test]
    fn batch_errors_have_the_codes_of_api_md() {
        for (error, code) in [
            (BatchError::Empty, 87),
            (BatchError::OldMagic(1), 87),
            (BatchError::CrcMismatch { stored: 0, computed: 1 }, 2),
            (BatchError::Truncated { needed: 61, available: 3 }, 87),
            (BatchError::TooLarge { size: 2, limit: 1 }, 10),
            (BatchError::DecompressedTooLarge { limit: 1 }, 10),
            (BatchError::UnknownCompression(7), 76),
            (BatchError::LogAppendTimeFromProducer, 32),
            (BatchError::MoreThanOneBatch(1), 87),
            (BatchError::RecordCount { claimed: 1, actual: 2 }, 87),
        ] {
            assert_eq!(batch_error_code(&error).code(), code, "{error:?}");
        }
    }
}
