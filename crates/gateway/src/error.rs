//! What went wrong, as Kafka error codes. The only place that maps errors of the store and of
//! record batches to codes.
//!
//! What may pass later becomes the code on which clients of the request's API try again by themselves:
//! `unavailable` of the list in `api.rs`.

use groups::GroupError;
use store::{AppendError, StoreError};
use wire::{ErrorCode, batch::BatchError};

/// Why a handler has no answer of its own for a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
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

impl From<GroupError> for ApiError {
    fn from(error: GroupError) -> Self {
        Self::Code(group_error_code(error))
    }
}

impl ApiError {
    /// The code for a client of the API with this code for "try again".
    pub(crate) fn code(&self, unavailable: ErrorCode) -> ErrorCode {
        match self {
            Self::Store(error) => store_error_code(error, unavailable),
            Self::Code(code) => *code,
        }
    }
}

/// The code for an error of the store, for a client of the API with this code for "try again".
pub(crate) fn store_error_code(error: &StoreError, unavailable: ErrorCode) -> ErrorCode {
    match error {
        // Also where a person must help first: nothing is wrong with the request.
        error if error.is_retriable() => unavailable,
        StoreError::AlreadyExists(_) => ErrorCode::TopicAlreadyExists,
        _ => ErrorCode::UnknownServerError,
    }
}

/// The code for a batch that a producer should not have sent (api.md 3.3).
pub(crate) fn batch_error_code(error: &BatchError) -> ErrorCode {
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
pub(crate) fn append_error_code(error: &AppendError, unavailable: ErrorCode) -> ErrorCode {
    match error {
        AppendError::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
        AppendError::OutOfOrderSequence => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::StaleProducerEpoch => ErrorCode::InvalidProducerEpoch,
        AppendError::Store(error) => match **error {
            StoreError::Refused(_) | StoreError::AlreadyExists(_) => ErrorCode::InvalidRecord,
            _ => store_error_code(error, unavailable),
        },
        AppendError::ShuttingDown => unavailable,
    }
}

/// The number of a refusal by a group (api.md 3.7 and 3.8).
pub(crate) fn group_error_code(error: GroupError) -> ErrorCode {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_may_pass_later_gets_the_code_of_the_api() {
        let away: [fn(String) -> StoreError; 6] = [
            StoreError::Unavailable,
            StoreError::Contended,
            StoreError::Internal,
            StoreError::NoTimePartition,
            StoreError::SchemaNotReady,
            StoreError::Denied,
        ];
        for error in away {
            let code = store_error_code(&error("away".to_owned()), ErrorCode::NotEnoughReplicas);
            assert_eq!(code, ErrorCode::NotEnoughReplicas);
        }
    }

    #[test]
    fn a_record_that_the_owner_of_the_database_refuses_is_not_sent_again() {
        let refused = AppendError::Store(Arc::new(StoreError::Refused("a trigger's words".to_owned())));
        assert_eq!(append_error_code(&refused, ErrorCode::NotEnoughReplicas), ErrorCode::InvalidRecord);
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
            StoreError::Refused(String::new()),
            StoreError::InvalidConfig(String::new()),
            StoreError::Corrupt(String::new()),
            StoreError::Other(String::new()),
        ] {
            assert!(!store_error_code(&error, ErrorCode::NotEnoughReplicas).is_retriable(), "{error:?}");
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
