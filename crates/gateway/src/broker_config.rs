//! The broker's own configuration, under Apache Kafka's names, for DescribeConfigs.
//!
//! What the gateway's options set, the defaults of the topic configurations, and the few further
//! names that tools read on start. Nothing here can be changed while the gateway runs.

use crate::{
    config::ServerConfig,
    session::Listener,
    topic_config::{self, ConfigType},
};

/// One configuration of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerConfig {
    pub name: &'static str,
    pub kind: ConfigType,
    pub value: String,
    /// Different from the default: set by a flag or the environment.
    pub is_set: bool,
    pub documentation: String,
}

/// All of them, by name.
pub(crate) fn all(config: &ServerConfig, listener: &Listener, defaults: &ServerConfig) -> Vec<BrokerConfig> {
    use ConfigType::{Boolean, Int, List, Long, String};
    let mut list = Vec::new();
    let mut add = |name, kind, value: std::string::String, default: std::string::String, documentation: &str| {
        let is_set = value != default;
        list.push(BrokerConfig { name, kind, value, is_set, documentation: documentation.to_owned() });
    };
    macro_rules! option {
        ($name:literal, $kind:expr, $($field:ident).+, $documentation:literal) => {
            add($name, $kind, config.$($field).+.to_string(), defaults.$($field).+.to_string(), $documentation);
        };
    }
    option!("auto.create.topics.enable", Boolean, topics.auto_create_topics, "Metadata requests may create topics.");
    option!("connections.max.idle.ms", Long, limits.connection_idle_ms, "Idle connections are closed after it.");
    option!("delete.topic.enable", Boolean, topics.delete_topics, "DeleteTopics is allowed.");
    option!("fetch.max.bytes", Int, limits.fetch_max_bytes, "Bytes of records in one Fetch answer.");
    option!(
        "group.initial.rebalance.delay.ms",
        Int,
        groups.group_initial_rebalance_delay_ms,
        "The first members of an empty group wait for more."
    );
    option!("group.max.session.timeout.ms", Int, groups.group_max_session_timeout_ms, "Longest session timeout.");
    option!("group.max.size", Int, groups.group_max_size, "Members of one group.");
    option!("group.min.session.timeout.ms", Int, groups.group_min_session_timeout_ms, "Shortest session timeout.");
    option!("offset.metadata.max.bytes", Int, groups.offset_metadata_max_bytes, "Metadata with a committed offset.");
    option!(
        "offsets.retention.check.interval.ms",
        Long,
        groups.offsets_retention_check_interval_ms,
        "Between two looks for offsets whose retention is over."
    );
    option!("offsets.retention.minutes", Int, groups.offsets_retention_minutes, "Offsets are kept without members.");
    option!("max.connections", Int, limits.max_connections, "Connections at the same time.");
    option!("node.id", Int, node_id, "Id of this broker.");
    option!("broker.id", Int, node_id, "Id of this broker, under its old name.");
    option!("num.partitions", Int, topics.num_partitions, "Partitions of a topic whose creator names no number.");
    option!("socket.request.max.bytes", Int, limits.max_request_bytes, "Bytes of one Produce request.");
    add("advertised.listeners", List, listener.to_string(), std::string::String::new(), "Where clients connect to.");
    let address = |config: &ServerConfig| format!("{}://{}", listener.name, config.listen);
    add("listeners", List, address(config), address(defaults), "Address of the Kafka port.");
    for (name, kind, value, documentation) in [
        ("default.replication.factor", Int, "1", "Replicas are those of Postgres; one is reported."),
        ("offsets.topic.replication.factor", Int, "1", "Committed offsets are in a table."),
        ("security.inter.broker.protocol", String, "PLAINTEXT", "Brokers do not talk to one another."),
        ("transaction.state.log.min.isr", Int, "1", "Transactions are not supported yet."),
        ("transaction.state.log.replication.factor", Int, "1", "Transactions are not supported yet."),
    ] {
        add(name, kind, value.to_owned(), value.to_owned(), documentation);
    }
    for def in topic_config::ALL {
        if let Some(name) = def.broker_name {
            let documentation = format!("Default of the topic configuration {}. {}", def.name, def.documentation());
            add(name, def.kind, def.default_value(config), def.default_value(defaults), &documentation);
        }
    }
    list.sort_by_key(|entry| entry.name);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, HostPort};

    #[test]
    fn names_are_unique_and_what_tools_read_is_there() {
        let mut config = Config::defaults().server;
        config.topics.num_partitions = 7;
        let advertised = HostPort { host: "kafka".to_owned(), port: 9092 };
        let listener = Listener { name: "PLAINTEXT", advertised };
        let all = all(&config, &listener, &Config::defaults().server);
        assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name));
        let find = |name: &str| all.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("{name}"));
        assert!(find("num.partitions").is_set);
        assert_eq!(find("num.partitions").value, "7");
        assert!(!find("message.max.bytes").is_set);
        for name in ["log.retention.ms", "log.cleanup.policy", "min.insync.replicas", "advertised.listeners"] {
            find(name);
        }
    }
}
