//! Indexes on a table that may be large already: built concurrently, one time partition after the
//! other, outside the numbered scripts.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::{
    database::Tables,
    error::StoreError,
    schema::ddl::{self, DdlLimits},
};

const DEFINITION: &str = include_str!("../../../../../migrations/deferred/message_kafka_producer.sql");

/// CREATE INDEX CONCURRENTLY waits for transactions that are older than itself; not for ever, or
/// somebody's forgotten session would keep the gateway from starting.
const PATIENCE: Duration = Duration::from_secs(30);

/// A time partition without a usable index that belongs to the one on message.
struct Unindexed {
    table: String,
    oid: i64,
    is_partitioned: bool,
}

/// The index on message itself, which later time partitions inherit.
pub(super) async fn create_on_message(
    connection: &mut PgConnection,
    tables: &Tables,
    limits: DdlLimits,
) -> Result<(), StoreError> {
    if index_is_valid(connection, tables).await?.is_some() {
        return Ok(());
    }
    let statement = definition("", &tables.kafka_producer_index, "ONLY", &tables.message);
    ddl::in_transaction(connection, &statement, limits).await
}

/// Postgres marks the index on message as valid when every time partition has its part of it.
pub(super) async fn is_complete(connection: &mut PgConnection, tables: &Tables) -> Result<bool, StoreError> {
    Ok(index_is_valid(connection, tables).await? == Some(true))
}

/// Builds and attaches the missing parts. `false`: others were in the way, try again later.
pub(super) async fn build(connection: &mut PgConnection, tables: &Tables) -> Result<bool, StoreError> {
    if index_is_valid(connection, tables).await?.is_none() {
        return Ok(false); // not migrated yet
    }
    for partition in unindexed(connection, tables).await? {
        match build_one(connection, tables, &partition).await {
            Err(StoreError::Contended(reason)) => {
                tracing::info!(table = partition.table, %reason, "an index is built later");
                return Ok(false);
            }
            result => result?,
        }
    }
    is_complete(connection, tables).await
}

async fn build_one(connection: &mut PgConnection, tables: &Tables, partition: &Unindexed) -> Result<(), StoreError> {
    let schema = &tables.schema;
    // By oid: a name made of the partition's could be too long.
    let name = format!("{}_{}", tables.kafka_producer_index, partition.oid);
    tracing::info!(table = partition.table, index = name, "building an index");
    // What an interrupted build left behind is of no use.
    let clear = format!("DROP INDEX IF EXISTS {schema}.{name}");
    ddl::in_transaction(connection, &clear, DdlLimits::default()).await?;
    let how = if partition.is_partitioned { "" } else { "CONCURRENTLY" };
    let patience = format!("SET lock_timeout = {}", PATIENCE.as_millis());
    sqlx::raw_sql(AssertSqlSafe(patience)).execute(&mut *connection).await?;
    let created =
        sqlx::raw_sql(AssertSqlSafe(definition(how, &name, "", &partition.table))).execute(&mut *connection).await;
    sqlx::raw_sql("SET lock_timeout = 0").execute(&mut *connection).await?;
    created?;
    let attach = format!("ALTER INDEX {schema}.{} ATTACH PARTITION {schema}.{name}", tables.kafka_producer_index);
    ddl::in_transaction(connection, &attach, DdlLimits::default()).await
}

fn definition(how: &str, name: &str, only: &str, table: &str) -> String {
    let statement = DEFINITION.split("\nCREATE ").nth(1).unwrap_or_default();
    let statement = statement
        .replace("__HOW__", how)
        .replace("__NAME__", name)
        .replace("__ONLY__", only)
        .replace("__TABLE__", table);
    format!("CREATE {}", statement.trim().trim_end_matches(';'))
}

/// `None`: it does not exist.
async fn index_is_valid(connection: &mut PgConnection, tables: &Tables) -> Result<Option<bool>, StoreError> {
    Ok(sqlx::query_scalar("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)")
        .bind(format!("{}.{}", tables.schema, tables.kafka_producer_index))
        .fetch_optional(connection)
        .await?)
}

async fn unindexed(connection: &mut PgConnection, tables: &Tables) -> Result<Vec<Unindexed>, StoreError> {
    let rows = sqlx::query(
        "SELECT child.oid::regclass::text, child.oid::bigint, child.relkind = 'p' \
           FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid \
          WHERE i.inhparent = $1::regclass AND NOT EXISTS \
                (SELECT FROM pg_index x JOIN pg_inherits xi ON xi.inhrelid = x.indexrelid \
                  WHERE x.indrelid = child.oid AND xi.inhparent = $2::regclass) \
          ORDER BY child.oid",
    )
    .bind(&tables.message)
    .bind(format!("{}.{}", tables.schema, tables.kafka_producer_index))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok(Unindexed { table: row.try_get(0)?, oid: row.try_get(1)?, is_partitioned: row.try_get(2)? }))
        .collect()
}
