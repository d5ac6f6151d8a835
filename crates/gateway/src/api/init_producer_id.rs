//! InitProducerId: the identity of an idempotent producer (KIP-98, KIP-360).
//!
//! Without a transactional id always a new producer id with epoch 0, even if the producer names a
//! present one (v3+, librdkafka does): its epoch is raised for transactional producers only.
//!
//! Transactions do not exist yet. A transactional id is refused with
//! TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), the one code that Java and librdkafka both take as
//! fatal at once; librdkafka would repeat most others until its time-out
//! (`rd_kafka_idemp_check_error`). The log line says the real reason. An empty transactional id is
//! INVALID_REQUEST, and so are an id without an epoch and the reverse
//! (Kafka: `TransactionCoordinator.handleInitProducerId`, `KafkaApis.handleInitProducerIdRequest`).

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use tracing::{field, warn};
use wire::ErrorCode;

use crate::{context::RequestContext, error::ApiError};

/// "None" for producer id and epoch alike.
const NONE: i64 = -1;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &InitProducerIdRequest,
) -> Result<InitProducerIdResponse, ApiError> {
    if let Some(id) = &request.transactional_id {
        return Ok(error_response(version, request, refuse_transactional(ctx, id)));
    }
    if (request.producer_id.0 == NONE) != (i64::from(request.producer_epoch) == NONE) {
        return Ok(error_response(version, request, ErrorCode::InvalidRequest));
    }
    let producer_id = ctx.shared.store.cluster.next_producer_id().await?;
    Ok(InitProducerIdResponse::default().with_producer_id(ProducerId(producer_id)).with_producer_epoch(0))
}

pub(super) fn error_response(
    _version: i16,
    _request: &InitProducerIdRequest,
    code: ErrorCode,
) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code.code())
        .with_producer_id(ProducerId(NONE))
        .with_producer_epoch(-1)
}

fn refuse_transactional(ctx: &RequestContext, id: &str) -> ErrorCode {
    if id.is_empty() {
        return ErrorCode::InvalidRequest;
    }
    if ctx.shared.log_limit.allows(ctx.session.peer.ip()) {
        warn!(
            peer = %ctx.session.peer,
            client = ctx.client_id.as_deref().unwrap_or_default(),
            software = ctx.session.software().map(field::display),
            "refused a transactional producer: transactions are not supported yet; unset transactional.id"
        );
    }
    ErrorCode::TransactionalIdAuthorizationFailed
}
