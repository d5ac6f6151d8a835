//! InitProducerId: the identity of an idempotent producer (KIP-98, KIP-360).
//!
//! Without a transactional id a new producer id with epoch 0. From v3 on a producer may name its
//! present id and epoch to get the next epoch; when epochs are used up it gets a new id. A producer
//! id that was never handed out gets a new one too: raising its epoch would shut out the producer
//! that receives it later.
//!
//! Transactions do not exist yet. A transactional id is refused with
//! TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), the one code that Java and librdkafka both take as
//! fatal at once; librdkafka would repeat most others until its time-out
//! (`rd_kafka_idemp_check_error`). The log line says the real reason. An empty transactional id is
//! INVALID_REQUEST, and so are an id without an epoch and the reverse
//! (Kafka: `TransactionCoordinator.handleInitProducerId`, `KafkaApis.handleInitProducerIdRequest`).

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use tracing::warn;
use wire::ErrorCode;

use crate::{context::RequestContext, error::ApiError};

/// "None" for producer id and epoch alike.
const NONE: i64 = -1;

pub async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &InitProducerIdRequest,
) -> Result<InitProducerIdResponse, ApiError> {
    if let Some(id) = &request.transactional_id {
        return Ok(error_response(version, request, refuse_transactional(ctx, id)));
    }
    let store = &ctx.shared.store;
    let (current, epoch) = (request.producer_id.0, request.producer_epoch);
    let (producer_id, epoch) = match (current, i64::from(epoch)) {
        (NONE, NONE) => (store.next_producer_id().await?, 0),
        (NONE, _) | (_, NONE) => return Ok(error_response(version, request, ErrorCode::InvalidRequest)),
        _ => match next_epoch(epoch) {
            Some(next) if store.is_known_producer_id(current).await? => (current, next),
            _ => (store.next_producer_id().await?, 0),
        },
    };
    Ok(InitProducerIdResponse::default().with_producer_id(ProducerId(producer_id)).with_producer_epoch(epoch))
}

pub fn error_response(_version: i16, _request: &InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code.code())
        .with_producer_id(ProducerId(NONE))
        .with_producer_epoch(-1)
}

fn refuse_transactional(ctx: &RequestContext, id: &str) -> ErrorCode {
    if id.is_empty() {
        return ErrorCode::InvalidRequest;
    }
    if ctx.shared.log_limit.allows(ctx.peer.ip()) {
        warn!(
            peer = %ctx.peer,
            client = ctx.client_id.as_deref().unwrap_or_default(),
            "refused a transactional producer: transactions are not supported yet; unset transactional.id"
        );
    }
    ErrorCode::TransactionalIdAuthorizationFailed
}

/// `None` when the epochs of an id are used up. The last one is kept free, as in Apache Kafka
/// (`TransactionMetadata.isEpochExhausted`).
fn next_epoch(epoch: i16) -> Option<i16> {
    (0..i16::MAX - 1).contains(&epoch).then(|| epoch + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_end_before_their_type_does() {
        assert_eq!(next_epoch(0), Some(1));
        assert_eq!(next_epoch(i16::MAX - 2), Some(i16::MAX - 1));
        assert_eq!(next_epoch(i16::MAX - 1), None);
        assert_eq!(next_epoch(i16::MAX), None);
        assert_eq!(next_epoch(-5), None);
    }
}
