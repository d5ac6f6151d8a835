//! DataHub's own variables, as defaults of the gateway's flags: one environment serves both.

use std::collections::BTreeMap;

use crate::jdbc_url::postgres_url;

const URL: &str = "DATAHUB_PGQUEUE_DATASOURCE_URL";
const USERNAME: &str = "DATAHUB_PGQUEUE_DATASOURCE_USERNAME";
const PASSWORD: &str = "DATAHUB_PGQUEUE_DATASOURCE_PASSWORD";
const COMPRESSION: &str = "DATAHUB_PGQUEUE_PAYLOAD_COMPRESSION";

/// Variables whose values a flag takes unchanged, with the id of the flag.
const UNCHANGED: &[(&str, &str)] = &[
    ("DATAHUB_PGQUEUE_SCHEMA", "schema"),
    ("DATAHUB_PGQUEUE_TABLE_PREFIX", "table_prefix"),
    ("DATAHUB_PGQUEUE_MIN_CONNECTIONS", "db_min_connections"),
    ("DATAHUB_PGQUEUE_MAX_CONNECTIONS", "db_max_connections"),
    ("DATAHUB_PGQUEUE_TOPIC_DEFAULT_PARTITION_COUNT", "num_partitions"),
];

/// Defaults by id of the flag. An empty variable counts as unset, as compose files write it.
///
/// # Errors
/// A value that the gateway cannot honour, in words that name the variable.
pub(crate) fn defaults(environment: &BTreeMap<String, String>) -> Result<BTreeMap<&'static str, String>, String> {
    let set = |name: &str| environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let mut defaults = BTreeMap::new();
    for (variable, flag) in UNCHANGED {
        if let Some(value) = set(variable) {
            defaults.insert(*flag, value.to_owned());
        }
    }
    if let Some(url) = set(URL) {
        let url = postgres_url(url, set(USERNAME), set(PASSWORD)).map_err(|reason| format!("{URL}: {reason}"))?;
        defaults.insert("database_url", url);
    }
    if let Some(codec) = set(COMPRESSION) {
        let codec = codec.to_ascii_lowercase();
        if !["none", "snappy"].contains(&codec.as_str()) {
            return Err(format!("{COMPRESSION}: {codec:?} is neither NONE nor SNAPPY"));
        }
        defaults.insert("payload_compression", codec);
    }
    Ok(defaults)
}
