//! The qualified names, made once from schema and prefix.

use crate::error::StoreError;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Quoted, schema-qualified names, ready for SQL text.
        #[derive(Debug, Clone)]
        pub struct Tables {
            /// Quoted schema name.
            pub schema: String,
            /// As configured, unquoted; only characters that need no quoting.
            pub prefix: String,
            /// Unqualified name of the index of idempotent producers' batches on message.
            pub kafka_producer_index: String,
            $($(#[$doc])* pub $name: String,)+
        }

        impl Tables {
            fn with_names(schema: &str, prefix: &str) -> Tables {
                Tables {
                    schema: format!("\"{schema}\""),
                    prefix: prefix.to_owned(),
                    kafka_producer_index: format!("idx_{prefix}_message_kafka_producer"),
                    $($name: format!("\"{schema}\".{prefix}_{}", stringify!($name)),)+
                }
            }

            /// The name for `{token}` in the text of a statement.
            pub(crate) fn by_token(&self, token: &str) -> Option<&str> {
                match token {
                    $(stringify!($name) => Some(&self.$name),)+
                    _ => None,
                }
            }
        }
    };
}

tables! {
    // The six tables of pgQueue.
    content_type,
    topic,
    message,
    consumer_offset,
    message_group_lease,
    consumer_registration,
    /// Sequence behind `message.id`, as its identity column names it.
    message_id_seq,
    // The gateway's own.
    kafka_partition,
    kafka_cluster,
    kafka_migration,
    kafka_group,
    kafka_coordinator_slot,
    kafka_node,
    kafka_partition_lease,
    /// Sequence of producer ids.
    kafka_producer_id_seq,
    /// Function: (topic id, partition id) → key of the partition's advisory lock.
    kafka_lock_key,
    /// Function of the append path.
    kafka_lock_partitions,
    /// Function: (topic id, partition id) → where that log starts and ends.
    kafka_log_end,
}

impl Tables {
    /// The longest name that is made of a prefix is pgQueue's
    /// `idx_{prefix}_message_group_lease_group_unlocked`, and Postgres cuts names at 63 bytes.
    pub const LONGEST_PREFIX: usize = 63 - "idx__message_group_lease_group_unlocked".len();

    /// # Errors
    /// [`StoreError::InvalidConfig`] for names that are not `[a-z_][a-z0-9_]*` or too long.
    pub fn new(schema: &str, prefix: &str) -> Result<Tables, StoreError> {
        check_name("schema", schema, 63)?;
        check_name("table prefix", prefix, Self::LONGEST_PREFIX)?;
        if schema.starts_with("pg_") {
            let reason = format!("schema {schema:?}: names with pg_ are Postgres's own");
            return Err(StoreError::InvalidConfig(reason));
        }
        Ok(Tables::with_names(schema, prefix))
    }

    /// The six tables without which there is no pgQueue: unqualified name and qualified name.
    pub(crate) fn pgqueue(&self) -> [(&'static str, &str); 6] {
        [
            ("content_type", &self.content_type),
            ("topic", &self.topic),
            ("message", &self.message),
            ("consumer_offset", &self.consumer_offset),
            ("message_group_lease", &self.message_group_lease),
            ("consumer_registration", &self.consumer_registration),
        ]
    }

    /// Schema name without quotes, for comparison with the system catalog.
    pub(crate) fn bare_schema(&self) -> &str {
        self.schema.trim_matches('"')
    }

    /// Puts the names into the text of a migration script.
    pub(crate) fn fill_tokens(&self, script: &str) -> String {
        script.replace("__SCHEMA__", &self.schema).replace("__PREFIX__", &self.prefix)
    }
}

fn check_name(what: &str, name: &str, longest: usize) -> Result<(), StoreError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let rest_is_good = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if starts_well && rest_is_good && name.len() <= longest {
        return Ok(());
    }
    Err(StoreError::InvalidConfig(format!(
        "{what} {name:?}: must be 1 to {longest} characters of a-z, 0-9 and _, not starting with a digit"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_qualified_and_quoted() {
        let tables = Tables::new("order", "mq").unwrap();
        assert_eq!(tables.message, "\"order\".mq_message");
        assert_eq!(tables.fill_tokens("__SCHEMA__.__PREFIX___topic"), "\"order\".mq_topic");
        assert_eq!(tables.bare_schema(), "order");
    }

    #[test]
    fn unsafe_and_overlong_names_are_refused() {
        for bad in ["", "Queue", "a-b", "1a", "a\"b", "a b", "ä", "pg_queue"] {
            assert!(Tables::new(bad, "mq").is_err(), "{bad}");
        }
        let longest = "p".repeat(Tables::LONGEST_PREFIX);
        assert_eq!(Tables::LONGEST_PREFIX, 24);
        assert!(Tables::new("q", &longest).is_ok());
        assert!(Tables::new("q", &format!("{longest}p")).is_err());
        assert!(Tables::new("q", "x;drop").is_err());
    }
}
