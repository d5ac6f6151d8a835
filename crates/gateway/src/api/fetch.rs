//! Fetch (key 1).
//!
//! A long poll: answered when `min_bytes` are there, when a partition has an error, or after
//! `max_wait_ms`. Waiting costs nothing but memory; appends wake it (storage.md D11).
//!
//! Deliberate differences from Apache Kafka:
//! - No fetch sessions (KIP-227): every answer has session id 0 and lists every partition.
//! - A batch starts at the offset that was asked for, since batches are made from rows.
//! - A partition that does not exist is told at once. Kafka parks the request for the others.
//! - OFFSET_OUT_OF_RANGE comes with the real start and end of the log, where Kafka says -1.
//! - A `max_wait_ms` of 200 and more may end up to 20 ms early, see [`DEADLINE_GRID`].
//! - `last_fetched_epoch` (followers, KIP-595) is not looked at.
//! - READ_COMMITTED and READ_UNCOMMITTED are the same as long as there are no transactions; the
//!   last stable offset is the high watermark.
//!
//! Rules: `ReplicaManager.fetchMessages`, `readFromLog`; KIP-74 for the byte limits.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use kafka_protocol::messages::{
    FetchRequest, FetchResponse,
    fetch_request::{FetchPartition, FetchTopic},
    fetch_response::{FetchableTopicResponse, PartitionData},
};
use store::{LogEnd, Offset, PartitionKey, ReadError, ReadLimit, StoreError, TopicRef};
use tokio::time::{Instant, timeout_at};
use wire::ErrorCode;

use super::leader_epoch;
use crate::{acl::Operation, context::RequestContext, error::ApiError, net::budget::AnswerSpace};

const READ_COMMITTED: i8 = 1;

/// Time that a request waits for memory for its answer at the least; then it is answered without records.
const SPACE_TIME: Duration = Duration::from_secs(1);

/// Requests without records are answered at multiples of this: a thousand idle consumers then wake the
/// gateway fifty times a second and not two thousand times.
const DEADLINE_GRID: Duration = Duration::from_millis(20);

/// No other replica is worth reading from (KIP-392).
const NO_REPLICA: i32 = -1;

/// # Errors
/// [`ApiError`] if a client names a leader epoch that only Postgres can judge; all others are told per
/// partition.
pub(super) async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &FetchRequest,
) -> Result<FetchResponse, ApiError> {
    if request.session_epoch > 0 {
        // No session was ever handed out.
        return Ok(FetchResponse::default().with_error_code(ErrorCode::FetchSessionIdNotFound.code()));
    }
    let named = request.topics.iter().flat_map(|topic| &topic.partitions).map(|asked| asked.current_leader_epoch);
    let epoch = leader_epoch::present(ctx, named).await?;
    let mut fetch = Fetch::resolve(ctx, request, epoch).await?;
    let deadline = deadline(Instant::now(), request.max_wait_ms);
    let min_bytes = i64::from(request.min_bytes).min(fetch.max_bytes as i64);
    let subscription = ctx.shared.store.log.subscribe(fetch.keys());
    loop {
        // Every wake-up may be a topic's deletion.
        fetch.drop_deleted(ctx).await;
        subscription.want(min_bytes);
        let limit = fetch.reserve(ctx, deadline).await;
        let bytes = fetch.read(ctx, limit).await;
        let done = bytes as i64 >= min_bytes.min(limit as i64) || fetch.has_error() || fetch.keys_len() == 0;
        if done || Instant::now() >= deadline || ctx.disconnected.is_cancelled() {
            return Ok(fetch.response());
        }
        subscription.have(bytes as i64);
        let woken = ctx.disconnected.run_until_cancelled(timeout_at(deadline, subscription.moved())).await;
        if !matches!(woken, Some(Ok(()))) {
            // Time is up or the client is gone: what was read stands, there is no need to look again.
            return Ok(fetch.response());
        }
    }
}

/// When a request that finds too little is answered: up to [`DEADLINE_GRID`] before its `max_wait_ms` is
/// over, if that is a small part of it, with all others of that time.
fn deadline(now: Instant, max_wait_ms: i32) -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let wait = Duration::from_millis(u64::try_from(max_wait_ms).unwrap_or(0));
    let deadline = now + wait;
    if wait < 10 * DEADLINE_GRID {
        return deadline;
    }
    let beyond = deadline.saturating_duration_since(*START).as_nanos() % DEADLINE_GRID.as_nanos();
    deadline - Duration::from_nanos(beyond as u64)
}

/// The answer with one error for every partition of the request.
pub(super) fn error_response(_version: i16, request: &FetchRequest, code: ErrorCode) -> FetchResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| without_records(partition.partition, code, None));
        FetchableTopicResponse::default().with_topic(topic.topic.clone()).with_partitions(partitions.collect())
    });
    FetchResponse::default().with_responses(topics.collect())
}

/// One partition of the request and what was found for it last.
struct Part {
    index: i32,
    key: Option<PartitionKey>,
    offset: Offset,
    max_bytes: usize,
    answer: PartitionData,
}

struct Fetch<'r> {
    topics: Vec<(&'r FetchTopic, Vec<Part>)>,
    max_bytes: usize,
    read_committed: bool,
    /// Of the read that is under way.
    space: Option<AnswerSpace>,
}

impl<'r> Fetch<'r> {
    /// Finds the partitions; those that do not exist have their error from here on.
    async fn resolve(ctx: &RequestContext, request: &'r FetchRequest, epoch: i32) -> Result<Self, StoreError> {
        let limit = ctx.shared.config.limits.fetch_max_bytes;
        let names = request.topics.iter().map(|asked| TopicRef::Name(&asked.topic));
        let resolved = ctx.resolve(Operation::Read, names).await?;
        let topics = request.topics.iter().zip(&resolved).map(|(asked, topic)| {
            let parts = asked.partitions.iter().map(|asked| match topic.partition(asked.partition) {
                Ok(key) => match leader_epoch::error(asked.current_leader_epoch, epoch) {
                    None => Part::wanted(asked, key),
                    Some(code) => Part::failed(asked, code),
                },
                Err(code) => Part::failed(asked, code),
            });
            (asked, parts.collect())
        });
        // `max_bytes` came with version 3, and 0 or less still returns one batch.
        let max_bytes = usize::try_from(request.max_bytes.min(limit)).unwrap_or(0);
        let read_committed = request.isolation_level == READ_COMMITTED;
        Ok(Self { topics: topics.collect(), max_bytes, read_committed, space: None })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.topics.iter().flat_map(|(_, parts)| parts)
    }

    fn keys(&self) -> Vec<PartitionKey> {
        self.parts().filter_map(|part| part.key).collect()
    }

    fn keys_len(&self) -> usize {
        self.parts().filter(|part| part.key.is_some()).count()
    }

    fn has_error(&self) -> bool {
        self.parts().any(|part| part.answer.error_code != 0)
    }

    /// Gives partitions their error whose topic has been deleted since the request came.
    async fn drop_deleted(&mut self, ctx: &RequestContext) {
        let names = self.topics.iter().map(|(asked, _)| TopicRef::Name(&asked.topic));
        // While Postgres is away, what was known stands.
        let Ok(resolved) = ctx.resolve(Operation::Read, names).await else { return };
        for ((_, parts), topic) in self.topics.iter_mut().zip(&resolved) {
            for part in parts.iter_mut().filter(|part| part.key.is_some()) {
                let code = match topic.partition(part.index) {
                    Ok(key) if part.key == Some(key) => continue,
                    Ok(_) => ErrorCode::UnknownTopicOrPartition,
                    Err(code) => code,
                };
                part.key = None;
                part.fail(code, None);
            }
        }
    }

    /// Lets go of what was read before and waits for memory: the bytes that the answer may have.
    async fn reserve(&mut self, ctx: &RequestContext, deadline: Instant) -> usize {
        for part in self.topics.iter_mut().flat_map(|(_, parts)| parts) {
            part.answer.records = Some(Bytes::new());
        }
        ctx.answer_memory.set(None);
        let wanted = self.max_bytes.max(1).min(self.parts().map(|part| part.max_bytes.max(1)).sum());
        let until = deadline.max(Instant::now() + SPACE_TIME);
        match timeout_at(until, ctx.shared.budgets.answer(wanted)).await {
            Ok(space) => {
                let bytes = space.bytes();
                self.space = Some(space);
                bytes
            }
            Err(_) => 0,
        }
    }

    /// Reads all partitions in the order of the request within the byte limits; the first one with
    /// records returns at least one, however large, if there may be any. Returns the bytes read.
    async fn read(&mut self, ctx: &RequestContext, limit: usize) -> usize {
        let store = &ctx.shared.store;
        let ends = store.log.last_ends(&self.keys()).await;
        let mut left = limit;
        let mut total = 0;
        for part in self.topics.iter_mut().flat_map(|(_, parts)| parts) {
            let Some(key) = part.key else { continue };
            let end = match &ends {
                Ok(ends) => ends.get(&key).copied(),
                Err(error) => {
                    part.fail(code(ctx, error), None);
                    continue;
                }
            };
            let Some(end) = end else { continue };
            if total > 0 && left == 0 {
                part.answer = answered(part.index, end, Bytes::new());
                continue;
            }
            let limit = ReadLimit { max_bytes: part.max_bytes.min(left), at_least_one: total == 0 && limit > 0 };
            match store.log.fetch(key, part.offset, limit, end).await {
                Ok(fetched) => {
                    total += fetched.records.len();
                    left = left.saturating_sub(fetched.records.len());
                    part.answer = answered(part.index, fetched.end, fetched.records);
                }
                Err(ReadError::OffsetOutOfRange(end)) => part.fail(ErrorCode::OffsetOutOfRange, Some(end)),
                Err(ReadError::Store(error)) => {
                    tracing::debug!(%error, ?key, "fetch failed");
                    part.fail(code(ctx, &error), None);
                }
            }
        }
        ctx.answer_memory.set(self.space.take().map(|space| space.keep(total)));
        total
    }

    fn response(self) -> FetchResponse {
        // Null is "not asked for" (Kafka: `FetchResponse`); with READ_COMMITTED there are none.
        let aborted = || self.read_committed.then(Vec::new);
        let topics = self.topics.into_iter().map(|(topic, parts)| {
            let answers = parts.into_iter().map(|part| part.answer.with_aborted_transactions(aborted()));
            FetchableTopicResponse::default().with_topic(topic.topic.clone()).with_partitions(answers.collect())
        });
        FetchResponse::default().with_responses(topics.collect())
    }
}

impl Part {
    fn wanted(asked: &FetchPartition, key: PartitionKey) -> Self {
        Self {
            index: asked.partition,
            key: Some(key),
            offset: Offset::new(asked.fetch_offset),
            max_bytes: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
            answer: without_records(asked.partition, ErrorCode::None, None),
        }
    }

    fn failed(asked: &FetchPartition, code: ErrorCode) -> Self {
        Self {
            index: asked.partition,
            key: None,
            offset: Offset::new(asked.fetch_offset),
            max_bytes: 0,
            answer: without_records(asked.partition, code, None),
        }
    }

    fn fail(&mut self, code: ErrorCode, end: Option<LogEnd>) {
        self.answer = without_records(self.index, code, end);
    }
}

fn code(ctx: &RequestContext, error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Corrupt(_) => ErrorCode::CorruptMessage,
        error => ctx.store_code(error),
    }
}

fn answered(index: i32, end: LogEnd, records: Bytes) -> PartitionData {
    PartitionData::default()
        .with_partition_index(index)
        .with_high_watermark(end.high.get())
        .with_last_stable_offset(end.stable.get())
        .with_log_start_offset(end.start.get())
        .with_aborted_transactions(None)
        .with_preferred_read_replica(NO_REPLICA.into())
        .with_records(Some(records))
}

/// Records are empty and never null: librdkafka takes null for a broken answer (KAFKA-18646).
fn without_records(index: i32, code: ErrorCode, end: Option<LogEnd>) -> PartitionData {
    const UNKNOWN: LogEnd = LogEnd::new(Offset::new(-1), Offset::new(-1));
    answered(index, end.unwrap_or(UNKNOWN), Bytes::new()).with_error_code(code.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_end_together_and_never_late() {
        let start = Instant::now() + Duration::from_secs(60);
        let mut ends = std::collections::BTreeSet::new();
        for ms in 0..100 {
            let now = start + Duration::from_millis(ms);
            let end = deadline(now, 500);
            let last = now + Duration::from_millis(500);
            assert!(end <= last && end > last - DEADLINE_GRID, "{ms}");
            ends.insert(end);
            assert_eq!(deadline(now, 199), now + Duration::from_millis(199), "too short to be cut");
            assert_eq!(deadline(now, -1), now);
        }
        assert!((5..=6).contains(&ends.len()), "100 ms have so many multiples of the grid: {}", ends.len());
    }
}
