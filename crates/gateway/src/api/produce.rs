//! Produce (key 0).
//!
//! A two-phase handler: batches are checked and queued in the order in which requests arrive, and
//! the answer follows when Postgres has committed them, so one pipelining connection can fill a
//! group commit.
//!
//! Deliberate differences from Apache Kafka:
//! - acks=1 and acks=-1 mean the same: the answer comes after the commit. There is no weaker
//!   promise that would be honest.
//! - `timeout_ms` is the time that replicas get. There are none, so it is not looked at.
//! - Codec ids 5 to 7 get UNSUPPORTED_COMPRESSION_TYPE (76), where Kafka fails with -1.
//! - Nothing transactional is accepted yet; InitProducerId says so first.
//! - A partition that is named twice gets both batches and two answers. Kafka forgets the first.
//! - An error has no log start offset (-1), and the repeat of a batch no append time of its own:
//!   Kafka gives the batch's last timestamp there.
//! - A batch that Postgres does not accept, because a trigger or a constraint of the database's owner
//!   refuses a record, gets INVALID_RECORD (87) with Postgres' words in `error_message`: no client sends
//!   it again, and idempotent ones go on behind it with a new epoch. Batches of other partitions and
//!   other producers are stored all the same.
//! - `record_errors` names the first 100 records, so that an answer stays smaller than its request.
//!
//! Rules: `KafkaApis.handleProduceRequest`, `ProduceRequest.validateRecords`, `LogValidator`.

use std::time::{SystemTime, UNIX_EPOCH};

use futures::{FutureExt, future::BoxFuture};
use kafka_protocol::{
    messages::{
        ProduceRequest, ProduceResponse, ResponseKind, TopicName,
        produce_request::{PartitionProduceData, TopicProduceData},
        produce_response::{BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse},
    },
    protocol::StrBytes,
};
use store::{Append, AppendError, AppendReply, TopicConfig, TopicRef};
use wire::{
    ErrorCode,
    batch::{BatchError, Compression, ProduceLimits, ProducedBatch, Record},
};

use super::entry::Reply;
use crate::{
    acl::Operation,
    context::{RequestContext, Shared},
    error::{append_error_code, batch_error_code},
    resolve::Resolved,
};

/// First version in which a producer may use zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;

/// Queues every batch of the request; the future that comes back waits for their commits.
pub(super) async fn accept(ctx: RequestContext, version: i16, request: ProduceRequest) -> BoxFuture<'static, Reply> {
    let acks = request.acks;
    if !(-1..=1).contains(&acks) {
        return answer(error_response(&request, ErrorCode::InvalidRequiredAcks));
    }
    if request.transactional_id.is_some() {
        return refuse(acks, &request, ErrorCode::TransactionalIdAuthorizationFailed);
    }
    let names = request.topic_data.iter().map(|topic| TopicRef::Name(&topic.name));
    let resolved = match ctx.resolve(Operation::Write, names).await {
        Ok(resolved) => resolved,
        Err(error) => return refuse(acks, &request, ctx.store_code(&error)),
    };
    let mut topics = Vec::with_capacity(resolved.len());
    for (data, topic) in request.topic_data.into_iter().zip(&resolved) {
        topics.push(accept_topic(&ctx.shared, version, data, topic).await);
    }
    async move {
        let response = finish(topics, ctx.api.unavailable).await;
        if acks != 0 {
            return Reply::Respond(ResponseKind::Produce(response));
        }
        let failed = response.responses.iter().flat_map(|t| &t.partition_responses).any(|p| p.error_code != 0);
        if failed { Reply::Disconnect("a produce request with acks=0 failed") } else { Reply::Silent }
    }
    .boxed()
}

/// The answer with one error for every partition of the request.
pub(super) fn error_response(request: &ProduceRequest, code: ErrorCode) -> ProduceResponse {
    let topics = request.topic_data.iter().map(|topic| {
        let partitions = topic.partition_data.iter().map(|partition| failed(partition.index, &Failure::from(code)));
        TopicProduceResponse::default().with_name(topic.name.clone()).with_partition_responses(partitions.collect())
    });
    ProduceResponse::default().with_responses(topics.collect())
}

fn answer(response: ProduceResponse) -> BoxFuture<'static, Reply> {
    futures::future::ready(Reply::Respond(ResponseKind::Produce(response))).boxed()
}

fn refuse(acks: i16, request: &ProduceRequest, code: ErrorCode) -> BoxFuture<'static, Reply> {
    if acks == 0 {
        return futures::future::ready(Reply::Disconnect("a produce request with acks=0 was refused")).boxed();
    }
    answer(error_response(request, code))
}

struct AcceptedTopic {
    name: TopicName,
    partitions: Vec<(i32, Result<AppendReply, Failure>)>,
}

/// Why a partition's batch is not stored, as the client is told.
struct Failure {
    code: ErrorCode,
    message: Option<String>,
    /// Index of each refused record within its batch.
    records: Vec<(i32, &'static str)>,
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None, records: Vec::new() }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Self { code: batch_error_code(&error), message: Some(error.to_string()), records: Vec::new() }
    }
}

async fn accept_topic(shared: &Shared, version: i16, data: TopicProduceData, topic: &Resolved) -> AcceptedTopic {
    let mut partitions = Vec::with_capacity(data.partition_data.len());
    for partition in data.partition_data {
        partitions.push((partition.index, accept_partition(shared, version, partition, topic).await));
    }
    AcceptedTopic { name: data.name, partitions }
}

async fn accept_partition(
    shared: &Shared,
    version: i16,
    data: PartitionProduceData,
    topic: &Resolved,
) -> Result<AppendReply, Failure> {
    let partition = topic.partition(data.index)?;
    let config = &topic.topic()?.config;
    let default_max_bytes = shared.config.topics.message_max_bytes as usize;
    let limits = ProduceLimits {
        max_batch_bytes: config.max_message_bytes.unwrap_or(default_max_bytes),
        max_decompressed_bytes: shared.config.limits.max_request_bytes as usize,
    };
    let sent = data.records.unwrap_or_default();
    let place = shared.budgets.decompression().await;
    let batch = ProducedBatch::validate(sent, limits)?;
    let inflated = if batch.header.compression() == Ok(Compression::None) { 0 } else { batch.records.len() };
    let reserved = place.keep(inflated).await;
    check_for_topic(&batch, version, config, now_ms())?;
    Ok(shared.store.log.append(Append {
        partition,
        batch,
        log_append_time: config.log_append_time,
        reservation: Box::new(reserved),
    }))
}

/// Milliseconds since 1970, UTC.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// What depends on the version and the topic's configuration.
fn check_for_topic(batch: &ProducedBatch, version: i16, config: &TopicConfig, now_ms: i64) -> Result<(), Failure> {
    if version < FIRST_ZSTD_VERSION && matches!(batch.header.compression(), Ok(Compression::Zstd)) {
        return Err(ErrorCode::UnsupportedCompressionType.into());
    }
    if batch.header.is_transactional() {
        return Err(ErrorCode::TransactionalIdAuthorizationFailed.into());
    }
    let summary = batch.summary;
    if config.compacted && summary.has_null_key {
        refuse_records(batch, ErrorCode::InvalidRecord, NO_KEY, |record| record.key.is_none())?;
    }
    let allowed = config.timestamp_range(now_ms);
    let is_in_range = allowed.contains(&summary.min_timestamp) && allowed.contains(&summary.max_timestamp);
    if !config.log_append_time && !is_in_range {
        // Records without a timestamp carry -1 and are always accepted (`LogValidator.validateTimestamp`).
        refuse_records(batch, ErrorCode::InvalidTimestamp, BAD_TIME, |record| {
            let timestamp = batch.timestamp(record);
            timestamp != -1 && !allowed.contains(&timestamp)
        })?;
    }
    Ok(())
}

const NO_KEY: &str = "Compacted topic cannot accept message without key";
const BAD_TIME: &str = "Timestamp is outside of message.timestamp.before.max.ms and message.timestamp.after.max.ms";
/// Records that one answer names at the most.
const MAX_RECORD_ERRORS: usize = 100;

/// Refuses the whole batch if it has such a record (Kafka: `LogValidator.processRecordErrors`).
fn refuse_records(
    batch: &ProducedBatch,
    code: ErrorCode,
    reason: &'static str,
    is_bad: impl Fn(&Record<'_>) -> bool,
) -> Result<(), Failure> {
    let bad = batch.records().filter(is_bad).map(|record| (record.offset_delta, reason));
    let records: Vec<_> = bad.take(MAX_RECORD_ERRORS).collect();
    if records.is_empty() {
        return Ok(());
    }
    let message = Some("One or more records have been rejected".to_owned());
    Err(Failure { code, message, records })
}

async fn finish(topics: Vec<AcceptedTopic>, unavailable: ErrorCode) -> ProduceResponse {
    let mut responses = Vec::with_capacity(topics.len());
    for topic in topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (index, accepted) in topic.partitions {
            partitions.push(match accepted {
                Ok(reply) => stored(index, reply, unavailable).await,
                Err(failure) => failed(index, &failure),
            });
        }
        responses.push(TopicProduceResponse::default().with_name(topic.name).with_partition_responses(partitions));
    }
    ProduceResponse::default().with_responses(responses)
}

async fn stored(index: i32, reply: AppendReply, unavailable: ErrorCode) -> PartitionProduceResponse {
    match reply.await {
        Ok(Ok(appended)) => PartitionProduceResponse::default()
            .with_index(index)
            .with_base_offset(appended.base_offset.get())
            .with_log_append_time_ms(appended.log_append_time.unwrap_or(-1))
            .with_log_start_offset(appended.log_start_offset.get()),
        Ok(Err(error)) => failed(index, &not_stored(&error, unavailable)),
        // The writer has gone; it is unknown whether the batch is stored.
        Err(_) => failed(index, &unavailable.into()),
    }
}

fn not_stored(error: &AppendError, unavailable: ErrorCode) -> Failure {
    let code = append_error_code(error, unavailable);
    // Of Postgres' words only those that tell the producer what is wrong with its records.
    let message = (code == ErrorCode::InvalidRecord).then(|| error.to_string());
    Failure { code, message, records: Vec::new() }
}

fn failed(index: i32, failure: &Failure) -> PartitionProduceResponse {
    let records = failure.records.iter().map(|(batch_index, message)| {
        BatchIndexAndErrorMessage::default()
            .with_batch_index(*batch_index)
            .with_batch_index_error_message(Some(StrBytes::from_static_str(message)))
    });
    PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(failure.code.code())
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
        .with_record_errors(records.collect())
        .with_error_message(failure.message.clone().map(StrBytes::from_string))
}
