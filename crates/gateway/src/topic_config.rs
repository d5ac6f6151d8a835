//! Every topic configuration of Apache Kafka 4: name, type, default, valid values, and whether the
//! gateway acts on it.
//!
//! Names, types and defaults are those of Kafka's `TopicConfig.java` and `LogConfig.java`; names of
//! the broker-wide defaults those of `ServerTopicConfigSynonyms.java`. All of them are accepted and
//! returned, because tools set and compare them; [`Effect`] says which ones do something here.
//! Values that would promise what the gateway does not do are refused.

use std::collections::BTreeMap;

use crate::config::ServerConfig;

/// Type of a configuration, as numbered in DescribeConfigs answers
/// (Kafka: `DescribeConfigsResponse.ConfigType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// What a configuration does in the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Enforced,
    /// Stored and returned only; the text says why that is enough.
    Stored(&'static str),
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// `*`, or pairs of a partition and a broker as in `0:1,1:1`
    /// (Kafka: `ThrottledReplicaListValidator`).
    ThrottledReplicas,
    Boolean,
    Integer(i64, i64),
    Fraction,
    OneOf(&'static [&'static str]),
    ListOf(&'static [&'static str]),
    /// Valid in Kafka, but only these values are true of the gateway; the text gives the reason.
    Only(&'static [&'static str], &'static str),
}

/// The definition of one topic configuration.
#[derive(Debug)]
pub(crate) struct ConfigDef {
    pub(crate) name: &'static str,
    pub(crate) kind: ConfigType,
    pub(crate) default: &'static str,
    /// Broker configuration that holds the default for all topics, if Kafka has one.
    pub(crate) broker_name: Option<&'static str>,
    pub(crate) effect: Effect,
    rule: Rule,
}

const NO_FILES: Effect = Effect::Stored("records are rows in Postgres, there are no segment files");
const NO_REPLICAS: Effect = Effect::Stored("durability and replication are those of Postgres");
const NO_REMOTE: Effect = Effect::Stored("there is no remote log storage");
const NO_CLEANER: Effect = Effect::Stored("records are not deleted or compacted by the gateway yet");
const NO_SHARE_GROUPS: Effect = Effect::Stored("there are no share groups");
const NOT_RECOMPRESSED: Effect = Effect::Stored("the gateway does not compress for readers");
const INT_MAX: i64 = i32::MAX as i64;
/// What Apache Kafka 3.9 and older ask for, the overhead of a record of message format 0
/// (`LegacyRecord.RECORD_OVERHEAD_V0`). Kafka 4 asks for a megabyte (KIP-1030), so that there are not too many
/// files; here there are none, and topics are made with less by programs that were written before (librdkafka's
/// test 0129 sets 20,000).
const LEAST_SEGMENT: i64 = 14;

macro_rules! topic_configs {
    ($($name:literal, $kind:ident, $default:literal, $broker:expr, $rule:expr, $effect:expr;)*) => {
        /// All of them, by name.
        pub(crate) const ALL: &[ConfigDef] = &[$(ConfigDef {
            name: $name,
            kind: ConfigType::$kind,
            default: $default,
            broker_name: $broker,
            rule: $rule,
            effect: $effect,
        }),*];
    };
}

use Effect::Enforced;
use Rule::{Boolean, Fraction, Integer, ListOf, OneOf, Only, ThrottledReplicas};

topic_configs! {
    "cleanup.policy", List, "delete", Some("log.cleanup.policy"), ListOf(&["compact", "delete"]), Enforced;
    "compression.gzip.level", Int, "-1", Some("compression.gzip.level"), Integer(-1, 9), NOT_RECOMPRESSED;
    "compression.lz4.level", Int, "9", Some("compression.lz4.level"), Integer(1, 17), NOT_RECOMPRESSED;
    "compression.type", String, "producer", Some("compression.type"),
        Only(&["producer", "uncompressed"], "the gateway does not recompress what producers send"), NOT_RECOMPRESSED;
    "compression.zstd.level", Int, "3", Some("compression.zstd.level"), Integer(-131_072, 22), NOT_RECOMPRESSED;
    "delete.retention.ms", Long, "86400000", Some("log.cleaner.delete.retention.ms"), Integer(0, i64::MAX), NO_CLEANER;
    "errors.deadletterqueue.group.enable", Boolean, "false", None, Boolean, NO_SHARE_GROUPS;
    "file.delete.delay.ms", Long, "60000", Some("log.segment.delete.delay.ms"), Integer(0, i64::MAX), NO_FILES;
    "flush.messages", Long, "9223372036854775807", Some("log.flush.interval.messages"), Integer(1, i64::MAX), NO_FILES;
    "flush.ms", Long, "9223372036854775807", None, Integer(0, i64::MAX), NO_FILES;
    "follower.replication.throttled.replicas", List, "", None, ThrottledReplicas, NO_REPLICAS;
    "index.interval.bytes", Int, "4096", Some("log.index.interval.bytes"), Integer(0, INT_MAX), NO_FILES;
    "leader.replication.throttled.replicas", List, "", None, ThrottledReplicas, NO_REPLICAS;
    "local.retention.bytes", Long, "-2", Some("log.local.retention.bytes"), Integer(-2, i64::MAX), NO_REMOTE;
    "local.retention.ms", Long, "-2", Some("log.local.retention.ms"), Integer(-2, i64::MAX), NO_REMOTE;
    "max.compaction.lag.ms", Long, "9223372036854775807", Some("log.cleaner.max.compaction.lag.ms"), Integer(1, i64::MAX), NO_CLEANER;
    "max.decompressed.message.bytes", Int, "2147483639", Some("max.decompressed.message.bytes"), Integer(1, INT_MAX),
        Effect::Stored("--max-request-bytes bounds what a batch may inflate to");
    "max.message.bytes", Int, "1048588", Some("message.max.bytes"), Integer(0, INT_MAX), Enforced;
    "message.timestamp.after.max.ms", Long, "3600000", Some("log.message.timestamp.after.max.ms"), Integer(0, i64::MAX), Enforced;
    "message.timestamp.before.max.ms", Long, "9223372036854775807", Some("log.message.timestamp.before.max.ms"), Integer(0, i64::MAX), Enforced;
    "message.timestamp.type", String, "CreateTime", Some("log.message.timestamp.type"), OneOf(&["CreateTime", "LogAppendTime"]), Enforced;
    "min.cleanable.dirty.ratio", Double, "0.5", Some("log.cleaner.min.cleanable.ratio"), Fraction, NO_CLEANER;
    "min.compaction.lag.ms", Long, "0", Some("log.cleaner.min.compaction.lag.ms"), Integer(0, i64::MAX), NO_CLEANER;
    "min.insync.replicas", Int, "1", Some("min.insync.replicas"), Integer(1, INT_MAX), NO_REPLICAS;
    "preallocate", Boolean, "false", Some("log.preallocate"), Boolean, NO_FILES;
    "remote.copy.lag.bytes", Long, "-1", Some("log.remote.copy.lag.bytes"), Integer(-1, i64::MAX), NO_REMOTE;
    "remote.copy.lag.ms", Long, "0", Some("log.remote.copy.lag.ms"), Integer(-1, i64::MAX), NO_REMOTE;
    "remote.log.copy.disable", Boolean, "false", None, Boolean, NO_REMOTE;
    "remote.log.delete.on.disable", Boolean, "false", None, Boolean, NO_REMOTE;
    "remote.storage.enable", Boolean, "false", None, Only(&["false"], "there is no remote log storage"), NO_REMOTE;
    "retention.bytes", Long, "-1", Some("log.retention.bytes"), Integer(i64::MIN, i64::MAX), NO_CLEANER;
    "retention.ms", Long, "604800000", Some("log.retention.ms"), Integer(-1, i64::MAX), NO_CLEANER;
    "segment.bytes", Int, "1073741824", Some("log.segment.bytes"), Integer(LEAST_SEGMENT, INT_MAX), NO_FILES;
    "segment.index.bytes", Int, "10485760", Some("log.index.size.max.bytes"), Integer(4, INT_MAX), NO_FILES;
    "segment.jitter.ms", Long, "0", None, Integer(0, i64::MAX), NO_FILES;
    "segment.ms", Long, "604800000", Some("log.roll.ms"), Integer(1, i64::MAX), NO_FILES;
    "unclean.leader.election.enable", Boolean, "false", Some("unclean.leader.election.enable"), Boolean, NO_REPLICAS;
}

/// The configuration with this name.
pub(crate) fn find(name: &str) -> Option<&'static ConfigDef> {
    ALL.binary_search_by(|config| config.name.cmp(name)).ok().map(|index| &ALL[index])
}

impl ConfigDef {
    /// What applies where the topic says nothing.
    pub(crate) fn default_value(&self, server: &ServerConfig) -> String {
        match self.name {
            "max.message.bytes" => server.topics.message_max_bytes.to_string(),
            _ => self.default.to_owned(),
        }
    }

    /// One sentence for DescribeConfigs answers and documentation.
    pub(crate) fn documentation(&self) -> String {
        match self.effect {
            Effect::Enforced => format!("As in Apache Kafka; default {}.", self.default),
            Effect::Stored(why) => format!("Accepted and returned, without effect: {why}."),
        }
    }

    fn check(&self, value: &str) -> Result<(), String> {
        let name = self.name;
        let expected = match self.rule {
            ThrottledReplicas if value == "*" || list(value).all(is_partition_and_broker) => return Ok(()),
            ThrottledReplicas => "* or a list of partition:broker".to_owned(),
            Boolean if ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) => return Ok(()),
            Boolean => "true or false".to_owned(),
            Integer(min, max) => match value.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => return Ok(()),
                _ if max == i64::MAX || max == INT_MAX => format!("an integer of at least {min}"),
                _ => format!("an integer from {min} to {max}"),
            },
            Fraction if value.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number)) => return Ok(()),
            Fraction => "a number from 0 to 1".to_owned(),
            OneOf(words) if words.contains(&value) => return Ok(()),
            OneOf(words) => format!("one of {}", words.join(", ")),
            ListOf(words) if list(value).all(|item| words.contains(&item)) => return Ok(()),
            ListOf(words) => format!("a list of {}", words.join(", ")),
            Only(words, _) if words.contains(&value) => return Ok(()),
            Only(words, why) => {
                return Err(format!("{name}={value:?} is not supported ({why}); use {}", words.join(" or ")));
            }
        };
        Err(format!("invalid value {value:?} for configuration {name}: expected {expected}"))
    }
}

fn is_partition_and_broker(item: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    item.split_once(':').is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
}

/// Items of a list value, in Kafka's notation: separated by commas, blanks around them ignored.
fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Checks the configurations that a client sets on a topic and returns them as they are stored.
///
/// # Errors
/// The text for a client's INVALID_CONFIG (40): an unknown name, a null value, a value that is not
/// valid, or two that contradict one another.
pub(crate) fn validate<'a>(
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<BTreeMap<String, String>, String> {
    let mut accepted = BTreeMap::new();
    for (name, value) in configs {
        let config = find(name).ok_or_else(|| format!("unknown topic config name: {name}"))?;
        let value = value.ok_or_else(|| format!("null value not supported for topic config {name}"))?.trim();
        config.check(value)?;
        accepted.insert(name.to_owned(), value.to_owned());
    }
    let lag = |name: &str| {
        let value = accepted.get(name).map(String::as_str).or_else(|| find(name).map(|config| config.default));
        value.and_then(|value| value.parse::<i64>().ok())
    };
    let (min, max) = (lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms"));
    if min > max {
        return Err("min.compaction.lag.ms is more than max.compaction.lag.ms".to_owned());
    }
    Ok(accepted)
}

/// `retention.ms` in the unit of pgQueue's column, whose 0 means no limit.
pub(crate) fn retention_seconds(configs: &BTreeMap<String, String>) -> i32 {
    let name = "retention.ms";
    let value = configs.get(name).map(String::as_str).or_else(|| find(name).map(|def| def.default));
    let ms = value.and_then(|value| value.parse::<i64>().ok()).unwrap_or(-1);
    match ms {
        ..0 => 0,
        // Rounded up: 0 seconds would keep everything.
        ms => i32::try_from(ms.div_euclid(1_000).max(1)).unwrap_or(i32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use store::TopicConfig;

    use super::*;

    fn check(name: &str, value: &str) -> Result<BTreeMap<String, String>, String> {
        validate([(name, Some(value))])
    }

    #[test]
    fn names_are_sorted_and_defaults_are_valid() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for config in ALL {
            assert!(config.check(config.default).is_ok(), "{}", config.name);
            assert!(find(config.name).is_some());
        }
    }

    #[test]
    fn the_store_goes_by_the_same_defaults() {
        let defaults = ALL.iter().filter(|config| config.name != "max.message.bytes");
        let defaults = defaults.map(|config| (config.name.to_owned(), config.default.to_owned())).collect();
        assert_eq!(TopicConfig::parse(&defaults), TopicConfig::parse(&BTreeMap::new()));
    }

    #[test]
    fn values_are_checked_by_type_and_range() {
        for (name, value) in [
            ("cleanup.policy", "compact, delete"),
            ("retention.ms", "-1"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("preallocate", "TRUE"),
            ("compression.type", "producer"),
            ("segment.bytes", " 20000 "),
            ("segment.bytes", "14"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", "0:1,12:3"),
        ] {
            assert!(check(name, value).is_ok(), "{name}={value}");
        }
        for (name, value) in [
            ("cleanup.policy", "shred"),
            ("retention.ms", "-2"),
            ("retention.ms", "a week"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("max.message.bytes", "2147483648"),
            ("message.timestamp.type", "createtime"),
            ("compression.type", "zstd"),
            ("remote.storage.enable", "true"),
            ("segment.bytes", "13"),
            ("leader.replication.throttled.replicas", "0:1,x"),
            ("no.such.config", "1"),
        ] {
            assert!(check(name, value).unwrap_err().contains(name), "{name}={value}");
        }
        assert_eq!(check("segment.bytes", " 20000 ").unwrap()["segment.bytes"], "20000");
        let seconds = |value: &str| retention_seconds(&check("retention.ms", value).unwrap());
        assert_eq!((seconds("-1"), seconds("1"), seconds("5000")), (0, 1, 5));
        assert_eq!(seconds("9223372036854775807"), i32::MAX);
        assert_eq!(retention_seconds(&BTreeMap::new()), 604_800);
        assert!(validate([("retention.ms", None)]).unwrap_err().contains("null"));
        assert!(validate([("min.compaction.lag.ms", Some("5")), ("max.compaction.lag.ms", Some("4"))]).is_err());
    }
}
