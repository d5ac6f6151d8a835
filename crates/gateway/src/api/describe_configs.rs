//! DescribeConfigs: configurations of topics and of this broker.
//!
//! Null and no keys ask for all. An unknown topic is UNKNOWN_TOPIC_OR_PARTITION; a broker must be this one
//! (or empty: the cluster-wide dynamic defaults, of which there are none), else INVALID_REQUEST
//! (Kafka: `ConfigHelper.describeConfigs`). Loggers, client metrics and groups have no
//! configurations here and are INVALID_REQUEST, as is any other type.
//!
//! Deliberate differences: a resource that is named again is INVALID_REQUEST, as Kafka has it where
//! configurations are changed, so that a small request cannot ask for gigabytes. And the synonym of a default is the topic configuration's broker-wide name
//! with the default in the topic's unit. Kafka shows `log.retention.hours=168` there.

use kafka_protocol::{
    messages::{
        DescribeConfigsRequest, DescribeConfigsResponse,
        create_topics_response::CreatableTopicConfigs,
        describe_configs_request::DescribeConfigsResource,
        describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym},
    },
    protocol::StrBytes,
};
use std::collections::{BTreeMap, HashSet};
use store::TopicRef;
use wire::{ErrorCode, TopicName};

use crate::{
    acl::Operation,
    broker_config::{self, BrokerConfig},
    config::{Config, ServerConfig},
    context::RequestContext,
    error::ApiError,
    resolve::Resolved,
    topic_config::{self, ConfigDef},
};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Where a value comes from (Kafka: `ConfigEntry.ConfigSource`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Topic = 1,
    StaticBroker = 4,
    Default = 5,
}

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &DescribeConfigsRequest,
) -> Result<DescribeConfigsResponse, ApiError> {
    let topics = request.resources.iter().flat_map(topic);
    let mut topics = ctx.resolve(Operation::DescribeConfigs, topics).await?.into_iter();
    let mut results = Vec::with_capacity(request.resources.len());
    let mut seen = HashSet::with_capacity(request.resources.len());
    for resource in &request.resources {
        let topic = topic(resource).and_then(|_| topics.next());
        if !seen.insert((resource.resource_type, &resource.resource_name)) {
            results.push(failed(resource, ErrorCode::InvalidRequest, "the resource is named twice".to_owned()));
            continue;
        }
        let entries = match resource.resource_type {
            TOPIC => topic_entries(ctx, &resource.resource_name, topic),
            BROKER => broker_entries(ctx, &resource.resource_name),
            other => Err((ErrorCode::InvalidRequest, format!("resource type {other} has no configurations here"))),
        };
        results.push(match entries {
            Ok(entries) => described(version, request, resource, entries),
            Err((code, message)) => failed(resource, code, message),
        });
    }
    Ok(DescribeConfigsResponse::default().with_results(results))
}

pub(super) fn error_response(
    _version: i16,
    request: &DescribeConfigsRequest,
    code: ErrorCode,
) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| failed(resource, code, code.message().to_owned()));
    DescribeConfigsResponse::default().with_results(results.collect())
}

/// The configurations of a topic as CreateTopics answers them.
pub(crate) fn of_new_topic(set: &BTreeMap<String, String>, server: &ServerConfig) -> Vec<CreatableTopicConfigs> {
    let defaults = Config::defaults().server;
    let configs = topic_config::ALL.iter().map(|def| {
        let entry = topic_entry(def, set, server, &defaults);
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_static_str(entry.name))
            .with_value(Some(StrBytes::from_string(entry.value)))
            .with_config_source(entry.source as i8)
    });
    configs.collect()
}

type Refusal = (ErrorCode, String);

struct Entry {
    name: &'static str,
    value: String,
    source: Source,
    read_only: bool,
    kind: topic_config::ConfigType,
    documentation: String,
    /// Name, value and source, the one that applies first.
    synonyms: Vec<(&'static str, String, Source)>,
}

/// The topic asked for, if one is and its name is valid.
fn topic(resource: &DescribeConfigsResource) -> Option<TopicRef<'_>> {
    let name = resource.resource_name.as_str();
    (resource.resource_type == TOPIC && TopicName::parse(name).is_ok()).then_some(TopicRef::Name(name))
}

fn topic_entries(ctx: &RequestContext, name: &str, topic: Option<Resolved>) -> Result<Vec<Entry>, Refusal> {
    TopicName::parse(name).map_err(|invalid| (ErrorCode::InvalidTopicException, invalid.to_string()))?;
    let topic = topic.map_or(Err(ErrorCode::UnknownTopicOrPartition), Resolved::into_topic);
    let topic = topic.map_err(|code| (code, code.message().to_owned()))?;
    let defaults = Config::defaults().server;
    let entry = |def| topic_entry(def, &topic.configs, &ctx.shared.config, &defaults);
    Ok(topic_config::ALL.iter().map(entry).collect())
}

fn topic_entry(
    def: &'static ConfigDef,
    set: &BTreeMap<String, String>,
    server: &ServerConfig,
    defaults: &ServerConfig,
) -> Entry {
    let inherited = def.default_value(server);
    let source = if inherited == def.default_value(defaults) { Source::Default } else { Source::StaticBroker };
    let mut synonyms = Vec::new();
    if let Some(value) = set.get(def.name) {
        synonyms.push((def.name, value.clone(), Source::Topic));
    }
    if let Some(broker_name) = def.broker_name {
        synonyms.push((broker_name, inherited.clone(), source));
    }
    let (value, source) = match set.get(def.name) {
        Some(value) => (value.clone(), Source::Topic),
        None => (inherited, source),
    };
    Entry {
        name: def.name,
        value,
        source,
        read_only: false,
        kind: def.kind,
        documentation: def.documentation(),
        synonyms,
    }
}

fn broker_entries(ctx: &RequestContext, name: &str) -> Result<Vec<Entry>, Refusal> {
    let shared = &ctx.shared;
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name != shared.config.node_id.to_string() {
        let message = format!("unexpected broker id, expected {} or empty, but got {name}", shared.config.node_id);
        return Err((ErrorCode::InvalidRequest, message));
    }
    let all = broker_config::all(&shared.config, &ctx.session.listener, &Config::defaults().server);
    Ok(all.into_iter().map(broker_entry).collect())
}

fn broker_entry(config: BrokerConfig) -> Entry {
    let source = if config.is_set { Source::StaticBroker } else { Source::Default };
    Entry {
        name: config.name,
        value: config.value.clone(),
        source,
        read_only: true,
        kind: config.kind,
        documentation: config.documentation,
        synonyms: vec![(config.name, config.value, source)],
    }
}

fn described(
    version: i16,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
    entries: Vec<Entry>,
) -> DescribeConfigsResult {
    let wanted = |entry: &Entry| match &resource.configuration_keys {
        Some(keys) if !keys.is_empty() => keys.iter().any(|key| key.as_str() == entry.name),
        _ => true,
    };
    let configs = entries.into_iter().filter(wanted).map(|entry| {
        let documentation = request.include_documentation.then(|| StrBytes::from_string(entry.documentation));
        let mut result = DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str(entry.name))
            .with_value(Some(StrBytes::from_string(entry.value)))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source as i8)
            .with_documentation(documentation);
        if version >= 3 {
            result.config_type = entry.kind as i8;
        }
        if request.include_synonyms {
            result.synonyms = entry.synonyms.into_iter().map(synonym).collect();
        }
        result
    });
    DescribeConfigsResult::default()
        .with_error_message(None)
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
        .with_configs(configs.collect())
}

fn synonym((name, value, source): (&'static str, String, Source)) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym::default()
        .with_name(StrBytes::from_static_str(name))
        .with_value(Some(StrBytes::from_string(value)))
        .with_source(source as i8)
}

fn failed(resource: &DescribeConfigsResource, code: ErrorCode, message: String) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_error_code(code.code())
        .with_error_message(Some(StrBytes::from_string(message)))
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}
