//! What is in the database, compared with what this gateway needs.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, PgConnection, Row};

use super::script::{FIRST, REPEATABLE, SchemaProfile, Script, VERSIONED};
use crate::{database::Tables, error::StoreError};

/// storage.md D16.
const OLDEST_SERVER: i32 = 140_000;

/// Columns that pgQueue's clients and the gateway use (storage.md section 1).
const COLUMNS: [(&str, &str); 6] = [
    ("content_type", "id mime"),
    (
        "topic",
        "id topic_name partition_count retention_max_age_seconds max_rows_per_topic \
         max_total_payload_bytes default_content_type_id aggressive_retention created_at",
    ),
    (
        "message",
        "id topic_id partition_id routing_key enqueue_seq priority payload content_type_id \
         payload_compression headers payload_bytes enqueued_at",
    ),
    ("consumer_offset", "id consumer_group topic_id partition_id offset_value epoch"),
    ("message_group_lease", "id message_id message_enqueued_at consumer_group lock_owner locked_until"),
    ("consumer_registration", "id consumer_group topic_id registered_at last_heartbeat_at"),
];

/// The state of the schema, for people and for a start without migration.
#[derive(Debug, Clone)]
pub struct SchemaStatus {
    /// As the server says it, `15.18 (Debian …)`.
    pub server_version: String,
    /// By the keys of message; `None` if there is no message table.
    pub profile: Option<SchemaProfile>,
    /// What the gateway cannot run without, a sentence each; empty: it can run.
    pub missing: Vec<String>,
    /// What is odd but does not hinder.
    pub notes: Vec<String>,
}

impl SchemaStatus {
    /// # Errors
    /// [`StoreError::SchemaNotReady`] with all that is missing.
    pub fn require(&self) -> Result<(), StoreError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(StoreError::SchemaNotReady(self.missing.join("; ")))
    }
}

/// What the system catalog and the ledger say.
#[derive(Debug)]
pub(super) struct Facts {
    server_version: String,
    server_version_num: i32,
    schema: String,
    pub(super) has_schema: bool,
    pub(super) has_ledger: bool,
    pub(super) has_producer_index: bool,
    producer_index_is_valid: bool,
    /// Script name to checksum.
    ledger: HashMap<String, String>,
    /// Columns of those of the six tables that exist.
    columns: HashMap<&'static str, Vec<String>>,
    /// `RANGE (enqueued_at)`; empty if message is not partitioned.
    partition_key: String,
    has_primary_key: bool,
    covers_now: bool,
}

impl Facts {
    pub(super) async fn gather(connection: &mut PgConnection, tables: &Tables) -> Result<Facts, StoreError> {
        let index = format!("{}.{}", tables.schema, tables.kafka_producer_index);
        let row = sqlx::query(include_str!("../schema_facts.sql"))
            .bind(tables.bare_schema())
            .bind(&tables.kafka_migration)
            .bind(&tables.message)
            .bind(index)
            .fetch_one(&mut *connection)
            .await?;
        let has_ledger: bool = row.try_get("has_ledger")?;
        Ok(Facts {
            server_version: row.try_get("server_version")?,
            server_version_num: row.try_get("server_version_num")?,
            schema: tables.bare_schema().to_owned(),
            has_schema: row.try_get("has_schema")?,
            has_ledger,
            has_producer_index: row.try_get("has_producer_index")?,
            producer_index_is_valid: row.try_get("producer_index_is_valid")?,
            ledger: if has_ledger { ledger(connection, tables).await? } else { HashMap::new() },
            columns: columns(connection, tables).await?,
            partition_key: row.try_get("partition_key")?,
            has_primary_key: row.try_get("has_primary_key")?,
            covers_now: row.try_get("covers_now")?,
        })
    }

    /// The scripts that are to be applied, in order.
    ///
    /// # Errors
    /// [`StoreError::SchemaNotReady`] if none may be.
    pub(super) fn pending(&self, profile: SchemaProfile) -> Result<Vec<&'static Script>, StoreError> {
        if let Some(reason) = self.obstacle() {
            return Err(StoreError::SchemaNotReady(reason));
        }
        let mut pending = Vec::new();
        if self.columns.is_empty() {
            pending.push(profile.first_script());
        }
        pending.extend(VERSIONED.iter().filter(|script| !self.is_applied(script)));
        // A newer gateway has been here: its functions are not replaced by ours.
        if self.newer_scripts().is_empty() {
            pending.extend(REPEATABLE.iter().filter(|script| !self.is_current(script)));
        }
        Ok(pending)
    }

    /// What no migration can mend.
    fn obstacle(&self) -> Option<String> {
        if self.server_version_num < OLDEST_SERVER {
            return Some(format!("PostgreSQL {} is too old: 14 or later is needed", self.server_version));
        }
        for script in FIRST.into_iter().chain(&VERSIONED) {
            if self.is_applied(script) && !self.is_current(script) {
                return Some(format!(
                    "migration {} was applied with another content than this gateway has: it was \
                     edited after its release, or the schema belongs to another build",
                    script.name
                ));
            }
        }
        let was_made = FIRST.into_iter().any(|script| self.is_applied(script));
        if !self.columns.is_empty() || was_made {
            return self.flaw_of_tables();
        }
        None
    }

    /// Something about the six tables that is not as storage.md section 1 says.
    fn flaw_of_tables(&self) -> Option<String> {
        let schema = &self.schema;
        for (table, expected) in COLUMNS {
            let Some(found) = self.columns.get(table) else {
                return Some(format!("schema {schema} has some of the pgQueue tables but no table …_{table}"));
            };
            let lacks = |column: &&str| !found.iter().any(|name| name == column);
            if let Some(column) = expected.split_whitespace().find(lacks) {
                return Some(format!("table …_{table} in schema {schema} has no column {column}"));
            }
        }
        if self.partition_key != "RANGE (enqueued_at)" {
            return Some(format!("table …_message in schema {schema} is not partitioned by RANGE (enqueued_at)"));
        }
        None
    }

    pub(super) fn status(&self, tables: &Tables) -> SchemaStatus {
        let profile = self.columns.contains_key("message").then_some(if self.has_primary_key {
            SchemaProfile::Datahub
        } else {
            SchemaProfile::Lean
        });
        SchemaStatus {
            server_version: self.server_version.clone(),
            profile,
            missing: self.missing(tables),
            notes: self.notes(),
        }
    }

    fn missing(&self, tables: &Tables) -> Vec<String> {
        if !self.has_schema {
            return vec![format!("schema {} does not exist: run migrate", self.schema)];
        }
        // Of no profile: what the first script makes is there, or the reason is another one.
        let mut missing = match self.pending(SchemaProfile::Lean) {
            Err(error) => return vec![error.to_string()],
            Ok(_) if self.columns.is_empty() => {
                let reason =
                    format!("schema {} has no tables with the prefix {}: run migrate", self.schema, tables.prefix);
                return vec![reason];
            }
            Ok(scripts) => scripts
                .iter()
                .map(|script| format!("migration {} is not applied: run migrate", script.name))
                .collect::<Vec<_>>(),
        };
        if !self.covers_now {
            let reason = "no time partition of message takes rows of now: run migrate, or \
                          pg_partman's maintenance if that manages the table";
            missing.push(reason.to_owned());
        }
        missing
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has_producer_index && !self.producer_index_is_valid {
            notes.push("the index of idempotent producers is still being built".to_owned());
        }
        for script in self.newer_scripts() {
            notes.push(format!("migration {script} is of a newer gateway"));
        }
        notes
    }

    fn is_applied(&self, script: &Script) -> bool {
        self.ledger.contains_key(script.name)
    }

    fn is_current(&self, script: &Script) -> bool {
        self.ledger.get(script.name).is_some_and(|checksum| *checksum == script.checksum())
    }

    /// Numbered scripts of the ledger that this gateway does not know.
    fn newer_scripts(&self) -> Vec<&str> {
        let known = |name: &str| FIRST.into_iter().chain(&VERSIONED).any(|script| script.name == name);
        self.ledger.keys().map(String::as_str).filter(|name| name.starts_with('V') && !known(name)).collect()
    }
}

async fn ledger(connection: &mut PgConnection, tables: &Tables) -> Result<HashMap<String, String>, StoreError> {
    let statement = format!("SELECT script, checksum FROM {}", tables.kafka_migration);
    let rows = sqlx::query(AssertSqlSafe(statement)).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

async fn columns(
    connection: &mut PgConnection,
    tables: &Tables,
) -> Result<HashMap<&'static str, Vec<String>>, StoreError> {
    let mut found = HashMap::new();
    for (name, qualified) in tables.pgqueue() {
        let columns: Vec<String> = sqlx::query_scalar(
            "SELECT attname::text FROM pg_attribute \
              WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
        )
        .bind(qualified)
        .fetch_all(&mut *connection)
        .await?;
        if !columns.is_empty() {
            found.insert(name, columns);
        }
    }
    Ok(found)
}
