//! Brings a database to the schema of this gateway, whoever made what is there.
//!
//! The scripts of `/migrations` are part of the binary. A ledger table has the checksum of each one
//! that was applied. One gateway at a time migrates; one that finds everything in place changes
//! nothing and takes no lock, so that a plain start never runs DDL against others' traffic (B104).

mod deferred;
mod lock;
mod script;
mod status;

pub use script::SchemaProfile;
pub use status::SchemaStatus;

use sqlx::{Connection, PgConnection};

use super::{
    ddl::{self, DdlLimits},
    handle::Schema,
    time_partitions::TimePartitions,
};
use crate::{
    config::PostgresConfig,
    database::{Tables, pool},
    error::StoreError,
};
use lock::MigrationLock;
use script::Script;
use status::Facts;

/// What [`Schema::migrate`] did.
#[derive(Debug, Clone)]
pub struct MigrateReport {
    /// Names of the scripts that were applied now.
    pub applied: Vec<String>,
    pub time_partitions: TimePartitions,
    /// `false`: an index is still to be built, because somebody's long transaction was in the way.
    /// Everything works without, some of it slowly; call [`Schema::build_indexes`] until it is there.
    pub indexes_complete: bool,
}

impl Schema {
    /// Applies what is missing, makes the time partitions and builds the indexes. Harmless to
    /// repeat, to interrupt and to run on several gateways at once.
    ///
    /// # Errors
    /// [`StoreError::SchemaNotReady`] in words when the database is not one that can be migrated:
    /// a script that was applied with another content, only some of the pgQueue tables, an old
    /// server. [`StoreError::Contended`] when locks could not be had in time.
    pub async fn migrate(&self) -> Result<MigrateReport, StoreError> {
        let mut connection = pool::connect_alone(&self.db.config().postgres).await?;
        let result = self.migrate_on(&mut connection).await;
        let _ = connection.close().await; // the result is what counts
        result
    }

    /// What a gateway that must not migrate needs to know, in words.
    ///
    /// # Errors
    /// Only if the database cannot be asked.
    pub async fn schema_status(&self) -> Result<SchemaStatus, StoreError> {
        let mut connection = self.db.acquire().await?;
        let facts = Facts::gather(&mut connection, self.db.tables()).await?;
        Ok(facts.status(self.db.tables()))
    }

    /// Builds what [`MigrateReport::indexes_complete`] says is missing. `true`: all is built.
    ///
    /// # Errors
    /// As every statement; contention with others is no error but `false`.
    pub async fn build_indexes(&self) -> Result<bool, StoreError> {
        if deferred::is_complete(&mut *self.db.acquire().await?, self.db.tables()).await? {
            return Ok(true);
        }
        let Some(lock) = MigrationLock::try_acquire(&self.db.config().postgres, self.db.tables()).await? else {
            return Ok(false);
        };
        let built = async {
            let mut connection = pool::connect_alone(&self.db.config().postgres).await?;
            let built = deferred::build(&mut connection, self.db.tables()).await;
            let _ = connection.close().await; // the result is what counts
            built
        }
        .await;
        lock.release().await;
        built
    }

    async fn migrate_on(&self, connection: &mut PgConnection) -> Result<MigrateReport, StoreError> {
        let (tables, config) = (self.db.tables(), &self.db.config().postgres);
        let facts = Facts::gather(connection, tables).await?;
        let mut applied = Vec::new();
        if !facts.pending(config.schema_profile)?.is_empty() || !facts.has_producer_index {
            let mut lock = MigrationLock::acquire(config, tables).await?;
            let outcome = apply(connection, tables, &mut lock, config, &mut applied).await;
            lock.release().await;
            outcome?;
        }
        let time_partitions = self.ensure_time_partitions_on(connection).await?;
        let indexes_complete = self.build_indexes().await?;
        Ok(MigrateReport { applied, time_partitions, indexes_complete })
    }
}

/// Everything that needs the migration lock, with a fresh look now that it is held.
async fn apply(
    connection: &mut PgConnection,
    tables: &Tables,
    lock: &mut MigrationLock,
    config: &PostgresConfig,
    applied: &mut Vec<String>,
) -> Result<(), StoreError> {
    let limits = DdlLimits { give_up_after: config.migration_timeout };
    let facts = Facts::gather(connection, tables).await?;
    let pending = facts.pending(config.schema_profile)?;
    if !facts.has_schema {
        let statement = format!("CREATE SCHEMA IF NOT EXISTS {}", tables.schema);
        ddl::in_transaction(connection, &statement, limits).await?;
    }
    if !facts.has_ledger {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {} (script text PRIMARY KEY, checksum text NOT NULL, \
             applied_at timestamptz NOT NULL DEFAULT now())",
            tables.kafka_migration
        );
        ddl::in_transaction(connection, &statement, limits).await?;
    }
    for script in pending {
        tracing::info!(script = script.name, "migrating");
        run(connection, tables, lock, script, limits).await?;
        applied.push(script.name.to_owned());
    }
    // Before any time partition of ours is made: those inherit it.
    deferred::create_on_message(connection, tables, limits).await
}

/// Each step in a transaction of its own, the ledger's row with the last.
async fn run(
    connection: &mut PgConnection,
    tables: &Tables,
    lock: &mut MigrationLock,
    script: &Script,
    limits: DdlLimits,
) -> Result<(), StoreError> {
    let steps = script.steps(tables);
    let last = steps.len().saturating_sub(1);
    for (number, step) in steps.into_iter().enumerate() {
        lock.check().await?;
        let mut sql = step.sql;
        if number == last {
            sql.push_str(&format!(
                "\n; INSERT INTO {} (script, checksum) VALUES ('{}', '{}') ON CONFLICT (script) \
                 DO UPDATE SET checksum = excluded.checksum, applied_at = now()",
                tables.kafka_migration,
                script.name,
                script.checksum()
            ));
        }
        ddl::in_transaction(connection, &sql, limits)
            .await
            .map_err(|error| error.in_context(&format!("{}, {}", script.name, step.title)))?;
    }
    Ok(())
}
