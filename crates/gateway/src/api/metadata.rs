//! Metadata: brokers, controller, cluster id, topics and their partitions.
//!
//! Brokers are all gateways that live on the database (storage.md D12). Each partition has one of them
//! as its leader and only replica (rendezvous hash). That is for clients to gather at one place; any
//! gateway may write and read (D2). Leaders and leader epoch are those of the last heartbeat, so an
//! answer costs no statement and may be a heartbeat old. Another gateway may know newer ones then, but
//! never others of the same epoch, so that clients tell which to keep. Until they are known, topics get
//! LEADER_NOT_AVAILABLE.
//!
//! A topic that is missing is created if the client allows it (v4+; always in v0–3),
//! `auto.create.topics.enable` is on and it was asked for by name; unlike in Apache Kafka it is usable
//! at once and the first answer says so. All topics are asked for by null, in v0 by an empty list. A
//! topic asked for twice is told once. Topic ids come with v10 (KIP-516), asking by id with v12.
//!
//! Versions before 13 have no error for the whole answer. While Postgres is away each topic asked
//! for gets LEADER_NOT_AVAILABLE, and the list of all topics is the last one known. Without one the
//! answer has no brokers either, which clients take for "nothing learnt, ask again" (Java:
//! `NetworkClient.handleSuccessfulResponse`); no topics beside a broker would mean that all are gone.

use std::{collections::HashSet, sync::Arc};

use kafka_protocol::{
    messages::{
        BrokerId, MetadataRequest, MetadataResponse, TopicName,
        metadata_request::MetadataRequestTopic,
        metadata_response::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic},
    },
    protocol::StrBytes,
};
use store::{Leadership, StoreError, Topic, TopicRef};
use wire::ErrorCode;

use crate::{
    acl::{Operation, ResourceType, authorized_operations},
    broker,
    context::RequestContext,
    error::ApiError,
    topic_creation,
};

/// First version whose topics may be asked for by id, and have no name then.
const BY_ID: i16 = 12;
/// First version with the client's consent to make missing topics; before it there is no choice.
const CONSENT: i16 = 4;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &MetadataRequest,
) -> Result<MetadataResponse, ApiError> {
    let leadership = ctx.shared.store.cluster.leadership();
    let topics = match wanted(version, request) {
        None => {
            let leadership = leadership.as_deref().ok_or(ErrorCode::LeaderNotAvailable)?;
            let all = ctx.shared.resolver.all(Operation::Describe).await?;
            all.iter().map(|topic| found(leadership, request, topic)).collect()
        }
        Some(wanted) if wanted.iter().any(|topic| is_malformed(version, topic)) => {
            return Ok(error_response(version, request, ErrorCode::InvalidRequest));
        }
        Some(wanted) => describe(ctx, version, request, wanted, leadership.as_deref()).await,
    };
    let brokers = broker::all(ctx, leadership.as_deref()).into_iter().map(|broker| {
        MetadataResponseBroker::default().with_node_id(broker.id).with_host(broker.host).with_port(broker.port)
    });
    Ok(MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_cluster_id(cluster_id(ctx).await)
        .with_controller_id(broker::own(ctx).id)
        .with_topics(topics)
        .with_cluster_authorized_operations(authorized_operations(
            ResourceType::Cluster,
            request.include_cluster_authorized_operations,
        )))
}

pub(super) fn error_response(version: i16, request: &MetadataRequest, code: ErrorCode) -> MetadataResponse {
    let topics = wanted(version, request).unwrap_or_default().iter();
    MetadataResponse::default().with_topics(topics.map(|topic| not_found(version, topic, code)).collect())
}

/// The topics asked for; `None` for all.
fn wanted(version: i16, request: &MetadataRequest) -> Option<&[MetadataRequestTopic]> {
    match request.topics.as_deref() {
        Some([]) if version == 0 => None,
        topics => topics,
    }
}

/// A topic has a name, and from v12 on a name or an id (Kafka: `MetadataRequest`).
fn is_malformed(version: i16, topic: &MetadataRequestTopic) -> bool {
    let has_id = !topic.topic_id.is_nil();
    match version {
        BY_ID.. => topic.name.is_none() && !has_id,
        _ => topic.name.is_none() || has_id,
    }
}

/// Known once Postgres was reached; until then null, which clients read as "not known yet".
async fn cluster_id(ctx: &RequestContext) -> Option<StrBytes> {
    ctx.shared.store.cluster.cluster_id().await.ok().map(StrBytes::from_string)
}

/// The topics that were asked for, each found, made, or with its error.
async fn describe(
    ctx: &RequestContext,
    version: i16,
    request: &MetadataRequest,
    wanted: &[MetadataRequestTopic],
    leadership: Option<&Leadership>,
) -> Vec<MetadataResponseTopic> {
    let wanted = once_each(wanted);
    let topics = match ctx.resolve(Operation::Describe, wanted.iter().map(|topic| asked(topic))).await {
        Ok(topics) => topics,
        Err(error) => {
            let code = ctx.store_code(&error);
            return wanted.into_iter().map(|topic| not_found(version, topic, code)).collect();
        }
    };
    let mut answers = Vec::with_capacity(wanted.len());
    for (wanted, topic) in wanted.into_iter().zip(&topics) {
        let result = match (topic.topic(), asked(wanted)) {
            (Err(ErrorCode::UnknownTopicOrPartition), TopicRef::Name(name)) => {
                auto_create(ctx, version, request, name).await
            }
            (result, _) => result.cloned(),
        };
        answers.push(match result.and_then(|topic| Ok((topic, leadership.ok_or(ErrorCode::LeaderNotAvailable)?))) {
            Ok((topic, leadership)) => found(leadership, request, &topic),
            Err(code) => not_found(version, wanted, code),
        });
    }
    answers
}

/// The topics without those that are named before in the same way.
fn once_each(topics: &[MetadataRequestTopic]) -> Vec<&MetadataRequestTopic> {
    let mut seen = HashSet::with_capacity(topics.len());
    topics.iter().filter(|topic| seen.insert(asked(topic))).collect()
}

/// An id goes before a name.
fn asked(topic: &MetadataRequestTopic) -> TopicRef<'_> {
    match topic.topic_id.is_nil() {
        true => TopicRef::Name(topic.name.as_ref().map_or("", |name| name.as_str())),
        false => TopicRef::Id(topic.topic_id),
    }
}

async fn auto_create(
    ctx: &RequestContext,
    version: i16,
    request: &MetadataRequest,
    name: &str,
) -> Result<Arc<Topic>, ErrorCode> {
    let name = topic_creation::check_name(name).map_err(|refusal| refusal.code)?;
    let consent = version < CONSENT || request.allow_auto_topic_creation;
    if !consent || !ctx.shared.config.topics.auto_create_topics {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    topic_creation::check_collision(ctx, &name).await.map_err(|refusal| refusal.code)?;
    match topic_creation::create(ctx, &name, ctx.shared.config.topics.num_partitions, Default::default()).await {
        Ok(topic) => Ok(topic),
        // Another client asked at the same moment.
        Err(StoreError::AlreadyExists(_)) => match ctx.shared.store.catalog.topic(name.as_str()).await {
            Ok(topic) => topic.ok_or(ErrorCode::LeaderNotAvailable),
            Err(error) => Err(ctx.store_code(&error)),
        },
        Err(error) => Err(ctx.store_code(&error)),
    }
}

/// The node whose hash with the partition is highest: when one comes or goes, only its own partitions
/// move.
fn leader(leadership: &Leadership, topic: &Topic, partition: i32) -> BrokerId {
    let hash = |node: &store::Node| {
        let bytes = node.node_id.to_be_bytes().into_iter().chain(topic.topic_id.into_bytes());
        // FNV-1a, and the finisher of MurmurHash3 so that the last bytes count as much as the first.
        let mut hash = bytes
            .chain(partition.to_be_bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    };
    leadership.leaders.iter().max_by_key(|node| hash(node)).map_or(BrokerId(-1), |node| BrokerId(node.node_id))
}

fn found(leadership: &Leadership, request: &MetadataRequest, topic: &Topic) -> MetadataResponseTopic {
    let partition = |index: i32| {
        let leader = leader(leadership, topic, index);
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(leader)
            .with_leader_epoch(leadership.epoch)
            .with_replica_nodes(vec![leader])
            .with_isr_nodes(vec![leader])
    };
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(topic.name.clone()))))
        .with_topic_id(topic.topic_id)
        .with_partitions((0..topic.partition_count).map(partition).collect())
        .with_topic_authorized_operations(authorized_operations(
            ResourceType::Topic,
            request.include_topic_authorized_operations,
        ))
}

fn not_found(version: i16, topic: &MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic {
    // Only from v12 on may a name be null; it is null where the topic was asked for by its id.
    let name = match &topic.name {
        _ if version >= BY_ID && !topic.topic_id.is_nil() => None,
        None if version < BY_ID => Some(TopicName::default()),
        name => name.clone(),
    };
    MetadataResponseTopic::default().with_name(name).with_topic_id(topic.topic_id).with_error_code(code.code())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn asking(topics: Option<Vec<MetadataRequestTopic>>) -> MetadataRequest {
        MetadataRequest::default().with_topics(topics)
    }

    #[test]
    fn empty_means_all_in_version_0_and_none_later() {
        assert!(wanted(0, &asking(Some(vec![]))).is_none());
        assert_eq!(wanted(1, &asking(Some(vec![]))).map(<[_]>::len), Some(0));
        assert!(wanted(1, &asking(None)).is_none());
    }

    #[test]
    fn names_and_ids_by_version() {
        let named = MetadataRequestTopic::default().with_name(Some(TopicName("t".into())));
        let with_id = MetadataRequestTopic::default().with_name(None).with_topic_id(Uuid::from_u128(1));
        let neither = MetadataRequestTopic::default().with_name(None);
        assert!(!is_malformed(1, &named) && !is_malformed(12, &named));
        assert!(is_malformed(11, &with_id) && !is_malformed(12, &with_id));
        assert!(is_malformed(12, &neither));
        let unknown = not_found(11, &neither, ErrorCode::InvalidRequest);
        assert_eq!(unknown.name, Some(TopicName::default()));
    }
}
