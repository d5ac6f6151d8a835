//! CreateTopics: new topics with partitions and configurations.
//!
//! Checks come in Apache Kafka's order (`ReplicationControlManager.createTopics`): duplicate, name,
//! existing topic, configurations, assignment, replication factor, partitions. Once the answer is
//! out, the topic works for every API. `validate_only` does all checks and writes nothing.
//!
//! Deliberate difference: any replication factor from 1 up is accepted, and 1 replica is reported.
//! Durability is that of Postgres, and tools ask for 3 by default (Connect does), which one broker
//! would have to refuse. A replica assignment may name any brokers for the same reason; it only
//! gives the number of partitions. pgQueue's table allows 4096 of them at the most.

use std::collections::{BTreeMap, HashMap, HashSet};

use kafka_protocol::{
    messages::{
        CreateTopicsRequest, CreateTopicsResponse, create_topics_request::CreatableTopic,
        create_topics_response::CreatableTopicResult,
    },
    protocol::StrBytes,
};
use store::{MAX_PARTITIONS, StoreError, TopicRef};
use uuid::Uuid;
use wire::{ErrorCode, TopicName};

use super::describe_configs;
use crate::{
    acl::Operation,
    context::RequestContext,
    error::ApiError,
    resolve::Resolved,
    topic_config,
    topic_creation::{self, Refusal},
};

/// First version whose answer describes the new topic (KIP-525).
const DESCRIBED: i16 = 5;
/// As the broker has it by default. KIP-464 gives it to clients from v4 on; Kafka takes it in all versions.
const BROKER_DEFAULT: i32 = -1;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &CreateTopicsRequest,
) -> Result<CreateTopicsResponse, ApiError> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for topic in &request.topics {
        *counts.entry(topic.name.as_str()).or_default() += 1;
    }
    let names: Vec<_> = request.topics.iter().map(|topic| topic_creation::check_name(&topic.name)).collect();
    let valid = names.iter().flatten().map(|name| TopicRef::Name(name.as_str()));
    let mut present = match ctx.resolve(Operation::Create, valid).await {
        Ok(present) => present.into_iter(),
        Err(error) => {
            let results = request.topics.iter().map(|topic| refused(topic, Refusal::from_store(ctx, &error)));
            return Ok(CreateTopicsResponse::default().with_topics(results.collect()));
        }
    };
    let mut results = Vec::with_capacity(counts.len());
    for (topic, name) in request.topics.iter().zip(names) {
        let name = name.map(|name| (name, present.next()));
        let result = match counts.remove(topic.name.as_str()) {
            None => continue, // the first of its name has answered for it
            Some(1) => create(ctx, version, topic, name, request.validate_only).await,
            Some(_) => Err(Refusal::new(ErrorCode::InvalidRequest, "duplicate topic name")),
        };
        results.push(result.unwrap_or_else(|refusal| refused(topic, refusal)));
    }
    Ok(CreateTopicsResponse::default().with_topics(results))
}

pub(super) fn error_response(_version: i16, request: &CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse {
    let results = request.topics.iter().map(|topic| refused(topic, Refusal::new(code, code.message())));
    CreateTopicsResponse::default().with_topics(results.collect())
}

fn refused(topic: &CreatableTopic, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(topic.name.clone())
        .with_error_code(refusal.code.code())
        .with_error_message(Some(StrBytes::from_string(refusal.message)))
}

async fn create(
    ctx: &RequestContext,
    version: i16,
    topic: &CreatableTopic,
    name: Result<(TopicName, Option<Resolved>), Refusal>,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refusal> {
    let (name, present) = name?;
    topic_creation::check_collision(ctx, &name).await?;
    check_absent(&name, present)?;
    let configs = topic_config::validate(
        topic.configs.iter().map(|config| (config.name.as_str(), config.value.as_ref().map(StrBytes::as_str))),
    )
    .map_err(|message| Refusal::new(ErrorCode::InvalidConfig, message))?;
    let partitions = match topic.assignments.is_empty() {
        true => partition_count(topic, ctx.shared.config.topics.num_partitions)?,
        false => assigned_partitions(topic)?,
    };
    let topic_id = match validate_only {
        true => Uuid::nil(),
        false => store(ctx, &name, partitions, configs.clone()).await?,
    };
    let mut result = CreatableTopicResult::default().with_name(topic.name.clone()).with_error_message(None);
    if version >= DESCRIBED {
        result.num_partitions = partitions;
        result.replication_factor = 1;
        result.configs = Some(describe_configs::of_new_topic(&configs, &ctx.shared.config));
    }
    result.topic_id = topic_id;
    Ok(result)
}

fn check_absent(name: &TopicName, present: Option<Resolved>) -> Result<(), Refusal> {
    match present.map(Resolved::into_topic) {
        None | Some(Err(ErrorCode::UnknownTopicOrPartition)) => Ok(()),
        Some(Err(code)) => Err(Refusal::new(code, code.message())),
        Some(Ok(_)) => Err(already_exists(name)),
    }
}

async fn store(
    ctx: &RequestContext,
    name: &TopicName,
    partitions: i32,
    configs: BTreeMap<String, String>,
) -> Result<Uuid, Refusal> {
    match topic_creation::create(ctx, name, partitions, configs).await {
        Ok(topic) => Ok(topic.topic_id),
        Err(StoreError::AlreadyExists(_)) => Err(already_exists(name)),
        Err(error) => Err(Refusal::from_store(ctx, &error)),
    }
}

/// In Kafka's words, which scripts around its tools look for.
fn already_exists(name: &TopicName) -> Refusal {
    Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists."))
}

/// Partitions of a topic without an assignment; checks the replication factor too.
fn partition_count(topic: &CreatableTopic, default: i32) -> Result<i32, Refusal> {
    let factor = i32::from(topic.replication_factor);
    if factor < 1 && factor != BROKER_DEFAULT {
        let message = format!("replication factor is {factor}; it must be at least 1");
        return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
    }
    let partitions = match topic.num_partitions {
        BROKER_DEFAULT => default,
        count if count >= 1 => count,
        count => {
            let message = format!("number of partitions is {count}; it must be at least 1");
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
    };
    check_maximum(partitions)?;
    Ok(partitions)
}

/// Partitions of a topic with an assignment, which must be numbered from 0 without a gap
/// and have the same number of brokers, each once (Kafka: `ReplicationControlManager.createTopic`).
fn assigned_partitions(topic: &CreatableTopic) -> Result<i32, Refusal> {
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        let message = "partitions and replication factor must be -1 when replicas are assigned";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let refuse = |message: &str| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    let mut indexes: Vec<i32> = topic.assignments.iter().map(|assignment| assignment.partition_index).collect();
    indexes.sort_unstable();
    if !indexes.iter().zip(0..).all(|(index, expected)| *index == expected) {
        return refuse("partitions of the assignment must be numbered from 0 without a gap");
    }
    let factor = topic.assignments.first().map_or(0, |assignment| assignment.broker_ids.len());
    for assignment in &topic.assignments {
        let brokers = &assignment.broker_ids;
        if brokers.is_empty() {
            return refuse("a partition is assigned to no broker");
        }
        if brokers.len() != factor {
            return refuse("partitions are assigned to unequal numbers of brokers");
        }
        if brokers.iter().any(|broker| broker.0 < 0) {
            return refuse("a broker id is negative");
        }
        if brokers.iter().collect::<HashSet<_>>().len() != factor {
            return refuse("a partition is assigned to the same broker twice");
        }
    }
    let partitions = i32::try_from(indexes.len()).unwrap_or(i32::MAX);
    check_maximum(partitions)?;
    Ok(partitions)
}

fn check_maximum(partitions: i32) -> Result<(), Refusal> {
    if partitions > MAX_PARTITIONS {
        let message = format!("number of partitions is {partitions}; pgQueue allows {MAX_PARTITIONS}");
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::{BrokerId, create_topics_request::CreatableReplicaAssignment};

    use super::*;

    fn count(partitions: i32, factor: i16) -> Result<i32, i16> {
        let topic = CreatableTopic::default().with_num_partitions(partitions).with_replication_factor(factor);
        partition_count(&topic, 2).map_err(|refusal| refusal.code.code())
    }

    #[test]
    fn partitions_and_replication_factor() {
        assert_eq!(count(-1, -1), Ok(2));
        assert_eq!(count(5, 3), Ok(5));
        assert_eq!(count(0, 1), Err(37));
        assert_eq!(count(-2, 1), Err(37));
        assert_eq!(count(4097, 1), Err(37));
        assert_eq!(count(1, 0), Err(38));
        assert_eq!(count(1, -2), Err(38));
        assert_eq!(count(0, 0), Err(38), "the replication factor is looked at first");
    }

    #[test]
    fn assignments_are_whole_and_even() {
        let assigned = |partitions: &[(i32, &[i32])]| {
            let assignments = partitions.iter().map(|(index, brokers)| {
                CreatableReplicaAssignment::default()
                    .with_partition_index(*index)
                    .with_broker_ids(brokers.iter().copied().map(BrokerId).collect())
            });
            let topic = CreatableTopic::default()
                .with_num_partitions(-1)
                .with_replication_factor(-1)
                .with_assignments(assignments.collect());
            assigned_partitions(&topic).map_err(|refusal| refusal.code.code())
        };
        assert_eq!(assigned(&[(1, &[9]), (0, &[8]), (2, &[9])]), Ok(3));
        assert_eq!(assigned(&[(1, &[9]), (2, &[9])]), Err(39), "a gap");
        assert_eq!(assigned(&[(0, &[9]), (0, &[9])]), Err(39), "twice");
        assert_eq!(assigned(&[(0, &[])]), Err(39), "no broker");
        assert_eq!(assigned(&[(0, &[9, 9])]), Err(39), "the same broker twice");
        assert_eq!(assigned(&[(0, &[-1])]), Err(39), "no id");
        assert_eq!(assigned(&[(0, &[1]), (1, &[1, 2])]), Err(39), "uneven");
    }
}
