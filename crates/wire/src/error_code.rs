//! Kafka's table of error codes (Kafka: `Errors.java`, 4.1), as numbers on the wire.

macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $retriable:literal, $message:literal;)*) => {
        /// A code of Kafka's protocol. The name of a variant is Kafka's name in camel case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in numerical order.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The number on the wire: −1 (unknown server error), 0 (none) or above.
            pub const fn code(self) -> i16 {
                match self {
                    $(ErrorCode::$variant => $code,)*
                }
            }

            /// The variant of a number on the wire; `None` when the number is not in the table.
            pub const fn from_code(code: i16) -> Option<ErrorCode> {
                match code {
                    $($code => Some(ErrorCode::$variant),)*
                    _ => None,
                }
            }

            /// Kafka's name, such as `NOT_COORDINATOR`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }

            /// Clients repeat the request by themselves (Kafka: the exception is a `RetriableException`).
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(ErrorCode::$variant => $retriable,)*
                }
            }

            /// One plain sentence for `error_message` fields and logs.
            pub const fn message(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $message,)*
                }
            }
        }
    };
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", false, "unexpected server error";
    None = 0, "NONE", false, "no error";
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", false, "offset is outside the partition's range";
    CorruptMessage = 2, "CORRUPT_MESSAGE", true, "the record batch is corrupt";
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", true, "no such topic or partition here";
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", false, "invalid fetch size";
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", true, "the partition has no leader at the moment";
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", true, "this broker is not the partition's leader";
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", true, "the request timed out";
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE", false, "the broker is not available";
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", true, "the replica is not available";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", false, "the record batch is larger than the broker accepts";
    StaleControllerEpoch = 11, "STALE_CONTROLLER_EPOCH", false, "stale controller epoch";
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", false, "offset metadata is too large";
    NetworkException = 13, "NETWORK_EXCEPTION", true, "disconnected before a response arrived";
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", true, "the coordinator is loading";
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", true, "the coordinator is not available";
    NotCoordinator = 16, "NOT_COORDINATOR", true, "this broker is not the coordinator";
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", false, "invalid topic";
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", false, "the record batch is larger than a segment";
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", true, "too few replicas are in sync";
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", true, "written, but to too few in-sync replicas";
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", false, "invalid value for required acks";
    IllegalGeneration = 22, "ILLEGAL_GENERATION", false, "the group generation is not valid";
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", false, "the member's protocols do not fit the group";
    InvalidGroupId = 24, "INVALID_GROUP_ID", false, "invalid group id";
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", false, "the coordinator does not know this member";
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", false, "session timeout is outside the allowed range";
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", false, "the group is rebalancing, rejoin needed";
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", false, "the committed offset data is too large";
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", false, "not authorized for the topic";
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", false, "not authorized for the group";
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", false, "not authorized for the cluster";
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", false, "timestamp is out of the acceptable range";
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", false, "unsupported SASL mechanism";
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", false, "request not valid in this SASL state";
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", false, "the version of this API is not supported";
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", false, "the topic exists already";
    InvalidPartitions = 37, "INVALID_PARTITIONS", false, "invalid number of partitions";
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", false, "invalid replication factor";
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", false, "invalid replica assignment";
    InvalidConfig = 40, "INVALID_CONFIG", false, "invalid configuration";
    NotController = 41, "NOT_CONTROLLER", true, "this broker is not the controller";
    InvalidRequest = 42, "INVALID_REQUEST", false, "the request is malformed or does not belong here";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", false, "not supported by the record format";
    PolicyViolation = 44, "POLICY_VIOLATION", false, "refused by a policy";
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", false, "sequence number out of order";
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", false, "duplicate sequence number";
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", false, "a newer producer epoch exists";
    InvalidTxnState = 48, "INVALID_TXN_STATE", false, "operation not allowed in the transaction's state";
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", false, "the producer id does not belong to the transactional id";
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", false, "transaction timeout is larger than the broker allows";
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", false, "another operation on the transaction is in progress";
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED", false, "the transaction coordinator is no longer current";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false, "not authorized for the transactional id";
    SecurityDisabled = 54, "SECURITY_DISABLED", false, "security features are disabled";
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", false, "the operation was not attempted";
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", true, "storage error";
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", false, "no such log directory";
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", false, "SASL authentication failed";
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", false, "unknown producer id";
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS", false, "a partition reassignment is in progress";
    DelegationTokenAuthDisabled = 61, "DELEGATION_TOKEN_AUTH_DISABLED", false, "delegation tokens are not enabled";
    DelegationTokenNotFound = 62, "DELEGATION_TOKEN_NOT_FOUND", false, "no such delegation token";
    DelegationTokenOwnerMismatch = 63, "DELEGATION_TOKEN_OWNER_MISMATCH", false, "not an owner or renewer of the token";
    DelegationTokenRequestNotAllowed = 64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false, "delegation token requests are not allowed on this channel";
    DelegationTokenAuthorizationFailed = 65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", false, "delegation token authorization failed";
    DelegationTokenExpired = 66, "DELEGATION_TOKEN_EXPIRED", false, "the delegation token has expired";
    InvalidPrincipalType = 67, "INVALID_PRINCIPAL_TYPE", false, "unsupported principal type";
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", false, "the group is not empty";
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", false, "no such group";
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", true, "no such fetch session";
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", true, "invalid fetch session epoch";
    ListenerNotFound = 72, "LISTENER_NOT_FOUND", true, "the leader has no such listener";
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED", false, "topic deletion is disabled";
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", true, "the leader epoch of the request is too old";
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", true, "the leader epoch of the request is too new";
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", false, "unsupported compression type";
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH", false, "stale broker epoch";
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", true, "the offset is not available yet";
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", false, "the member needs a member id before it joins";
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", true, "the preferred leader is not available";
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", false, "the group is full";
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", false, "another member uses this group.instance.id";
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", true, "no eligible leader is available";
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", true, "no leader election is needed";
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", false, "no partition reassignment is in progress";
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", false, "the group is subscribed to the topic";
    InvalidRecord = 87, "INVALID_RECORD", false, "the record failed validation";
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", true, "there are unstable offsets";
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", true, "the throttling quota is exceeded";
    ProducerFenced = 90, "PRODUCER_FENCED", false, "a newer producer has fenced this one";
    ResourceNotFound = 91, "RESOURCE_NOT_FOUND", false, "no such resource";
    DuplicateResource = 92, "DUPLICATE_RESOURCE", false, "the same resource appears twice";
    UnacceptableCredential = 93, "UNACCEPTABLE_CREDENTIAL", false, "the credential is not acceptable";
    InconsistentVoterSet = 94, "INCONSISTENT_VOTER_SET", false, "sender or recipient is not an expected voter";
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION", false, "invalid update version";
    FeatureUpdateFailed = 96, "FEATURE_UPDATE_FAILED", false, "the features could not be updated";
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE", false, "the principal could not be read";
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND", false, "no such snapshot";
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE", false, "position is outside the snapshot";
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", true, "no topic with this id here";
    DuplicateBrokerRegistration = 101, "DUPLICATE_BROKER_REGISTRATION", false, "the broker id is in use";
    BrokerIdNotRegistered = 102, "BROKER_ID_NOT_REGISTERED", false, "the broker id is not registered";
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", true, "the topic id does not match";
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID", false, "the cluster id does not match";
    TransactionalIdNotFound = 105, "TRANSACTIONAL_ID_NOT_FOUND", false, "no such transactional id";
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", true, "the fetch session mixes topic ids and names";
    IneligibleReplica = 107, "INELIGIBLE_REPLICA", false, "a replica is not eligible for the ISR";
    NewLeaderElected = 108, "NEW_LEADER_ELECTED", false, "the partition has a new leader";
    OffsetMovedToTieredStorage = 109, "OFFSET_MOVED_TO_TIERED_STORAGE", false, "the offset has moved to tiered storage";
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", false, "the member epoch is fenced";
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", false, "another member still uses this instance id";
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", false, "the assignor is not supported";
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", false, "the member epoch is stale";
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", false, "the endpoint has the wrong type";
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", false, "the endpoint type is not supported";
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID", false, "unknown controller id";
    UnknownSubscriptionId = 117, "UNKNOWN_SUBSCRIPTION_ID", false, "unknown telemetry subscription";
    TelemetryTooLarge = 118, "TELEMETRY_TOO_LARGE", false, "the telemetry is too large";
    InvalidRegistration = 119, "INVALID_REGISTRATION", false, "invalid registration";
    TransactionAbortable = 120, "TRANSACTION_ABORTABLE", false, "the transaction must be aborted";
    InvalidRecordState = 121, "INVALID_RECORD_STATE", false, "invalid record state";
    ShareSessionNotFound = 122, "SHARE_SESSION_NOT_FOUND", true, "no such share session";
    InvalidShareSessionEpoch = 123, "INVALID_SHARE_SESSION_EPOCH", true, "invalid share session epoch";
    FencedStateEpoch = 124, "FENCED_STATE_EPOCH", false, "the share state epoch is fenced";
    InvalidVoterKey = 125, "INVALID_VOTER_KEY", false, "the voter's key does not match";
    DuplicateVoter = 126, "DUPLICATE_VOTER", false, "the voter exists already";
    VoterNotFound = 127, "VOTER_NOT_FOUND", false, "no such voter";
    InvalidRegularExpression = 128, "INVALID_REGULAR_EXPRESSION", false, "invalid regular expression";
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED", false, "metadata is stale, bootstrap again";
    StreamsInvalidTopology = 130, "STREAMS_INVALID_TOPOLOGY", false, "invalid streams topology";
    StreamsInvalidTopologyEpoch = 131, "STREAMS_INVALID_TOPOLOGY_EPOCH", false, "invalid streams topology epoch";
    StreamsTopologyFenced = 132, "STREAMS_TOPOLOGY_FENCED", false, "the streams topology epoch is fenced";
    ShareSessionLimitReached = 133, "SHARE_SESSION_LIMIT_REACHED", true, "too many share sessions";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> i16 {
        code.code()
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn numbers_are_dense_and_convert_both_ways() {
        for (position, &error) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(error.code(), position as i16 - 1, "{error}");
            assert_eq!(ErrorCode::from_code(error.code()), Some(error));
        }
        assert_eq!(ErrorCode::from_code(ErrorCode::ALL.len() as i16 - 1), None);
        assert_eq!(ErrorCode::from_code(-2), None);
    }

    /// The message crate was generated from the same Kafka release; it is an independent reading.
    #[test]
    fn table_agrees_with_the_message_crate() {
        for &error in ErrorCode::ALL.iter().filter(|&&error| error != ErrorCode::None) {
            let other = kafka_protocol::ResponseError::try_from_code(error.code()).unwrap();
            assert_eq!(other.is_retriable(), error.is_retriable(), "{error}");
            assert_eq!(other.to_string(), format!("{error:?}"));
            assert_eq!(error.name().replace('_', ""), format!("{error:?}").to_uppercase());
        }
    }
}
