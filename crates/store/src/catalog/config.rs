use std::{collections::BTreeMap, ops::RangeInclusive};

/// The configurations of a topic that an append goes by, under Kafka's defaults (`LogConfig.java`). Parsed when the
/// topic is read from its row, not for each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicConfig {
    /// `max.message.bytes`: of the largest record batch, as the producer sent it; `None`: the broker's default holds.
    pub max_message_bytes: Option<usize>,
    /// `message.timestamp.type=LogAppendTime`: records get the time of their append.
    pub log_append_time: bool,
    /// `cleanup.policy` contains `compact`: records need keys.
    pub compacted: bool,
    timestamp_before_max_ms: i64,
    timestamp_after_max_ms: i64,
}

impl TopicConfig {
    /// A value that somebody wrote into the table by SQL and that does not parse counts as absent.
    #[must_use]
    pub fn parse(configs: &BTreeMap<String, String>) -> Self {
        let value = |name: &str| configs.get(name).map(String::as_str);
        let number = |name: &str| value(name)?.parse::<i64>().ok();
        let is_compact = |policy: &str| policy.split(',').any(|item| item.trim() == "compact");
        Self {
            max_message_bytes: number("max.message.bytes").map(|bytes| usize::try_from(bytes).unwrap_or(0)),
            log_append_time: value("message.timestamp.type") == Some("LogAppendTime"),
            compacted: value("cleanup.policy").is_some_and(is_compact),
            timestamp_before_max_ms: number("message.timestamp.before.max.ms").unwrap_or(i64::MAX),
            timestamp_after_max_ms: number("message.timestamp.after.max.ms").unwrap_or(3_600_000),
        }
    }

    /// CreateTimes that are accepted at `now_ms`; all in milliseconds since 1970 (Kafka:
    /// `LogValidator.validateTimestamp`).
    #[must_use]
    pub fn timestamp_range(&self, now_ms: i64) -> RangeInclusive<i64> {
        now_ms.saturating_sub(self.timestamp_before_max_ms)..=now_ms.saturating_add(self.timestamp_after_max_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(configs: &[(&str, &str)]) -> TopicConfig {
        TopicConfig::parse(&configs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn what_is_set_holds_and_what_makes_no_sense_does_not() {
        let set = parse(&[
            ("max.message.bytes", "100"),
            ("message.timestamp.type", "LogAppendTime"),
            ("cleanup.policy", "delete, compact"),
            ("message.timestamp.before.max.ms", "10"),
            ("message.timestamp.after.max.ms", "20"),
        ]);
        assert_eq!((set.max_message_bytes, set.log_append_time, set.compacted), (Some(100), true, true));
        assert_eq!(set.timestamp_range(1_000), 990..=1_020);
        let senseless = parse(&[
            ("max.message.bytes", "many"),
            ("message.timestamp.type", "Never"),
            ("cleanup.policy", "compacted"),
            ("message.timestamp.before.max.ms", ""),
        ]);
        assert_eq!(senseless, parse(&[]));
        assert_eq!(senseless.timestamp_range(0), -i64::MAX..=3_600_000);
        assert_eq!(parse(&[("max.message.bytes", "-1")]).max_message_bytes, Some(0));
    }
}
