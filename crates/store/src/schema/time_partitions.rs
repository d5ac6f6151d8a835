//! The time partitions of message exist for now and ahead, always (storage.md D15).
//!
//! What is there is read from the system catalog each time, so partitions that DataHub, a person
//! or another interval made are never overlapped, and a gateway that was away for long heals what
//! it finds. There is no default partition: one with rows in it would forbid the partitions that
//! should have taken them (B055).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{AssertSqlSafe, PgConnection, Row};

use super::{
    advisory::advisory_key,
    ddl::{self, DdlLimits},
    handle::Schema,
    interval::{self, Micros, PartitionInterval},
};
use crate::{database::Tables, error::StoreError};

/// For one partition that another gateway may be making at the same time.
const ATTEMPTS: u32 = 5;

/// Who makes the time partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionManager {
    /// The gateways of this schema.
    Gateway,
    /// pg_partman, where message is in its `part_config`.
    PgPartman,
}

/// What [`Schema::ensure_time_partitions`] found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimePartitions {
    pub manager: PartitionManager,
    /// Names of the partitions that were made now, without schema.
    pub created: Vec<String>,
    /// A row of now fits into a partition.
    pub covers_now: bool,
    /// Rows up to this time, without a gap from now on, fit; `None` if not even those of now do or
    /// if there is no end.
    pub covered_until: Option<SystemTime>,
}

/// A half-open range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: Micros,
    to: Micros,
}

/// The partitions that message has.
#[derive(Debug, Default)]
struct Existing {
    /// Sorted, not overlapping.
    ranges: Vec<Range>,
    has_default: bool,
}

impl Schema {
    /// Makes the time partitions that are missing from the one of now, by the clock of the database as
    /// in `enqueued_at`, to [`time_partition_premake`](crate::PostgresConfig::time_partition_premake)
    /// intervals ahead. Harmless to repeat and to run on several gateways at once; readers and writers do
    /// not wait for it.
    ///
    /// # Errors
    /// [`StoreError::Contended`] when the locks could not be had in time: try again later.
    pub async fn ensure_time_partitions(&self) -> Result<TimePartitions, StoreError> {
        let mut connection = self.db.acquire().await?;
        self.ensure_time_partitions_on(&mut connection).await
    }

    /// The same on a connection of the caller's.
    pub(crate) async fn ensure_time_partitions_on(
        &self,
        connection: &mut PgConnection,
    ) -> Result<TimePartitions, StoreError> {
        let now = database_time(connection).await?;
        let manager = partition_manager(connection, self.db.tables()).await?;
        let mut created = Vec::new();
        if manager == PartitionManager::Gateway {
            created = self.create_missing(connection, now).await?;
        }
        let existing = existing_partitions(connection, self.db.tables()).await?;
        let covered_until = covered_until(&existing.ranges, now);
        let covers_now = covered_until.is_some() || existing.has_default;
        if !covers_now {
            tracing::warn!(?manager, "no time partition of message takes rows of now");
        }
        Ok(TimePartitions {
            manager,
            created,
            covers_now,
            covered_until: covered_until.filter(|end| *end != Micros::MAX).map(system_time),
        })
    }

    /// One after the other, with a fresh look before each: other gateways make them too.
    async fn create_missing(&self, connection: &mut PgConnection, now: Micros) -> Result<Vec<String>, StoreError> {
        let config = &self.db.config().postgres;
        let mut created = Vec::new();
        let mut given_up = Vec::new();
        let mut attempts = 0;
        let mut last = None;
        loop {
            let existing = existing_partitions(connection, self.db.tables()).await?.ranges;
            let missing = missing_ranges(config.time_partition_interval, config.time_partition_premake, &existing, now);
            let Some(range) = missing.into_iter().find(|range| !given_up.contains(range)) else {
                return Ok(created);
            };
            attempts = if last == Some(range) { attempts + 1 } else { 1 };
            last = Some(range);
            let name = free_name(connection, self.db.tables(), range.from).await?;
            match create_partition(connection, self.db.tables(), &name, range).await {
                Ok(()) => {
                    tracing::info!(partition = %name, "time partition made");
                    created.push(name);
                }
                // Mostly a default partition, which others made: it holds rows of this range. They stay
                // where they are; other ranges do not suffer for it.
                Err(StoreError::Refused(reason)) => {
                    tracing::warn!(partition = %name, %reason, "time partition not made");
                    given_up.push(range);
                }
                // Most likely another gateway was first.
                Err(StoreError::Other(_) | StoreError::AlreadyExists(_)) if attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Made apart and then attached, which lets readers and writers of message go on, unlike
/// CREATE TABLE … PARTITION OF (B056).
async fn create_partition(
    connection: &mut PgConnection,
    tables: &Tables,
    name: &str,
    range: Range,
) -> Result<(), StoreError> {
    let schema = &tables.schema;
    let message = &tables.message;
    let statement = format!(
        "SELECT pg_advisory_xact_lock({key}); \
         CREATE TABLE {schema}.\"{name}\" (LIKE {message} INCLUDING DEFAULTS INCLUDING CONSTRAINTS \
           INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION); \
         ALTER TABLE {message} ATTACH PARTITION {schema}.\"{name}\" FOR VALUES FROM ('{from}') TO ('{to}')",
        key = advisory_key(tables, "time partitions"),
        from = interval::timestamptz(range.from),
        to = interval::timestamptz(range.to),
    );
    ddl::in_transaction(connection, &statement, DdlLimits::default()).await
}

/// pg_partman's own way of naming. A name that is taken by a table that is no partition (a detached
/// one, for example) gets a number.
async fn free_name(connection: &mut PgConnection, tables: &Tables, from: Micros) -> Result<String, StoreError> {
    let base = format!("{}_message_p{}", tables.prefix, interval::name_suffix(from));
    let taken: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
          WHERE n.nspname = $1 AND starts_with(c.relname, $2)",
    )
    .bind(tables.bare_schema())
    .bind(&base)
    .fetch_all(connection)
    .await?;
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
    Ok(free.unwrap_or(base))
}

/// pg_partman's configuration table is in the extension's schema, `partman` by custom.
async fn partition_manager(connection: &mut PgConnection, tables: &Tables) -> Result<PartitionManager, StoreError> {
    let configuration: Option<String> = sqlx::query_scalar(
        "SELECT format('%I.part_config', n.nspname) FROM pg_namespace n \
           JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'part_config' \
          WHERE n.nspname = 'partman' \
             OR n.oid = (SELECT extnamespace FROM pg_extension WHERE extname = 'pg_partman')",
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(configuration) = configuration else { return Ok(PartitionManager::Gateway) };
    let registered: bool = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT EXISTS (SELECT FROM {configuration} WHERE to_regclass(parent_table) = $1::regclass)"
    )))
    .bind(&tables.message)
    .fetch_one(connection)
    .await?;
    Ok(if registered { PartitionManager::PgPartman } else { PartitionManager::Gateway })
}

async fn database_time(connection: &mut PgConnection) -> Result<Micros, StoreError> {
    Ok(sqlx::query_scalar("SELECT (extract(epoch FROM now()) * 1000000)::bigint").fetch_one(connection).await?)
}

/// Reads the bounds that Postgres prints, whoever made the partitions.
async fn existing_partitions(connection: &mut PgConnection, tables: &Tables) -> Result<Existing, StoreError> {
    let rows = sqlx::query(include_str!("partition_bounds.sql")).bind(&tables.message).fetch_all(connection).await?;
    let mut existing = Existing::default();
    for row in rows {
        if row.try_get("is_default")? {
            existing.has_default = true;
        } else {
            let from: Option<Micros> = row.try_get("lower_micros")?;
            let to: Option<Micros> = row.try_get("upper_micros")?;
            existing.ranges.push(Range { from: from.unwrap_or(Micros::MIN), to: to.unwrap_or(Micros::MAX) });
        }
    }
    existing.ranges.sort_by_key(|range| range.from);
    Ok(existing)
}

/// The intervals from the one of `now` to `premake` ahead, less what `existing` has of them.
fn missing_ranges(interval: PartitionInterval, premake: u32, existing: &[Range], now: Micros) -> Vec<Range> {
    let mut missing = Vec::new();
    let mut from = interval.start_of(now);
    for _ in 0..=premake {
        let to = interval.next_after(from);
        let mut gap_from = from;
        for range in existing.iter().filter(|range| range.from < to && range.to > from) {
            if range.from > gap_from {
                missing.push(Range { from: gap_from, to: range.from });
            }
            gap_from = gap_from.max(range.to);
        }
        if gap_from < to {
            missing.push(Range { from: gap_from, to });
        }
        from = to;
    }
    missing
}

/// End of the unbroken coverage that starts at or before `now`.
fn covered_until(existing: &[Range], now: Micros) -> Option<Micros> {
    let mut end = None;
    for range in existing {
        let reached = end.unwrap_or(now);
        if range.from <= reached && range.to > reached {
            end = Some(range.to);
        }
    }
    end
}

fn system_time(micros: Micros) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = if micros >= 0 { UNIX_EPOCH.checked_add(distance) } else { UNIX_EPOCH.checked_sub(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Micros = 86_400_000_000;

    fn range(from: Micros, to: Micros) -> Range {
        Range { from, to }
    }

    #[test]
    fn everything_is_missing_at_first() {
        let missing = missing_ranges(PartitionInterval::Day, 2, &[], DAY + 5);
        assert_eq!(missing, [range(DAY, 2 * DAY), range(2 * DAY, 3 * DAY), range(3 * DAY, 4 * DAY)]);
    }

    #[test]
    fn only_gaps_between_odd_partitions_are_filled() {
        let existing = [range(Micros::MIN, DAY + 10), range(DAY + 20, 2 * DAY + 30)];
        let missing = missing_ranges(PartitionInterval::Day, 1, &existing, DAY);
        assert_eq!(missing, [range(DAY + 10, DAY + 20), range(2 * DAY + 30, 3 * DAY)]);
        let whole = [range(0, 400 * DAY)];
        assert!(missing_ranges(PartitionInterval::Month, 4, &whole, DAY).is_empty());
    }

    #[test]
    fn coverage_ends_at_the_first_gap() {
        let existing = [range(0, 10), range(10, 20), range(25, 30)];
        assert_eq!(covered_until(&existing, 5), Some(20));
        assert_eq!(covered_until(&existing, 22), None);
        assert_eq!(covered_until(&[range(0, Micros::MAX)], 5), Some(Micros::MAX));
    }

    #[test]
    fn times_before_and_after_1970_convert() {
        assert_eq!(system_time(1_000_001), UNIX_EPOCH + Duration::from_micros(1_000_001));
        assert_eq!(system_time(-1_000_001), UNIX_EPOCH - Duration::from_micros(1_000_001));
    }
}
