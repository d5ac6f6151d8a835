//! The statements of the hot paths, each text made once, so that a connection prepares it once.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Postgres, postgres::PgArguments, query::Query};

use crate::{database::Tables, record::COLUMNS};

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// SQL for a row's `enqueued_at` in milliseconds, rounded down; exact, since `extract` is numeric.
const ENQUEUED_MS: &str = "floor(extract(epoch from m.enqueued_at) * 1000)::bigint";

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $sql:expr;)*) => {
        /// Texts that depend on the schema and the prefix, nothing else.
        #[derive(Debug)]
        pub(crate) struct Statements {
            $($name: Arc<str>,)*
        }

        impl Statements {
            pub(crate) fn new(tables: &Tables) -> Self {
                Self { $($name: fill($sql, tables),)* }
            }

            $($(#[$doc])* pub(crate) fn $name(&self) -> Statement<'static> {
                sqlx::query(AssertSqlSafe(Arc::clone(&self.$name)))
            })*
        }
    };
}

statements! {
    /// ($1 topic ids, $2 partition ids, $3 lock keys) → topic_id, partition_id, partition_count,
    /// next_seq, log_start_seq, max_timestamp, now_ms of each partition whose lock is now held.
    lock_partitions: "SELECT * FROM {lock_partitions}($1, $2, $3)";

    /// ($1 topic ids, $2 partition ids, $3 lock keys, $4 expected next seqs; then rows: $5 which of the
    /// partitions, from 1, and the columns) → which partition, log_start_seq, whether its rows were
    /// written, for each partition whose lock is now held. Locks as `lock_partitions`.
    insert_rows: "WITH part AS (SELECT * FROM unnest($1::bigint[], $2::int[], $4::bigint[]) \
            WITH ORDINALITY AS p(topic_id, partition_id, next_seq, number)), \
          locked AS MATERIALIZED (SELECT part.number::int, part.topic_id, part.partition_id, l.log_start_seq, \
              l.next_seq = part.next_seq AND l.partition_id < l.partition_count AS fits \
            FROM {lock_partitions}($1, $2, $3) l JOIN part USING (topic_id, partition_id)), \
          written AS (INSERT INTO {message} ({row_columns}) \
            SELECT l.topic_id, l.partition_id, r.seq, r.routing_key, r.payload, r.payload_compression, \
              r.headers::jsonb, r.key, r.flags, r.timestamp, r.max_timestamp, r.producer_id, r.producer_epoch, \
              r.base_sequence, r.batch_records \
            FROM unnest($5::int[], $6::bigint[], $7::text[], $8::bytea[], $9::smallint[], $10::text[], \
                $11::bytea[], $12::smallint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::smallint[], \
                $17::int[], $18::int[]) AS r(number, seq, routing_key, payload, payload_compression, headers, key, \
                flags, timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, batch_records) \
              JOIN locked l ON l.number = r.number AND l.fits) \
        SELECT number, log_start_seq, fits FROM locked";

    /// ($1 topic, $2 partition, $3 next_seq): the ledger never goes back.
    raise_next_seq: "INSERT INTO {kafka_partition} AS p (topic_id, partition_id, next_seq) VALUES ($1, $2, $3) \
        ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq \
        WHERE p.next_seq < excluded.next_seq";

    /// ($1 topic, $2 partition, $3 producer, $4 limit) → last seq, epoch, base sequence, records,
    /// append time of its last batches, newest first.
    producer_batches: "SELECT m.enqueue_seq, m.kafka_producer_epoch, m.kafka_base_sequence, \
        m.kafka_batch_records, {enqueued_ms} FROM {message} m \
        WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.kafka_producer_id = $3 \
        ORDER BY m.enqueue_seq DESC LIMIT $4";

    /// ($1 topic ids, $2 partition ids) → topic_id, partition_id, log_start_seq, next_seq.
    partition_bounds: "SELECT k.topic_id, k.partition_id, \
          greatest(coalesce(p.log_start_seq, 1), coalesce(first.seq, greatest(p.next_seq, 1))), \
          greatest(coalesce(p.next_seq, 1), coalesce(last.seq + 1, 1)) \
        FROM unnest($1::bigint[], $2::int[]) AS k(topic_id, partition_id) \
        LEFT JOIN {kafka_partition} p ON p.topic_id = k.topic_id AND p.partition_id = k.partition_id \
        LEFT JOIN LATERAL (SELECT m.enqueue_seq AS seq FROM {message} m \
          WHERE m.topic_id = k.topic_id AND m.partition_id = k.partition_id \
          ORDER BY m.enqueue_seq LIMIT 1) first ON true \
        LEFT JOIN LATERAL (SELECT m.enqueue_seq AS seq FROM {message} m \
          WHERE m.topic_id = k.topic_id AND m.partition_id = k.partition_id \
          ORDER BY m.enqueue_seq DESC LIMIT 1) last ON true";

    /// ($1 topic, $2 partition, $3 first seq, $4 row limit) → the rows from there on, in order.
    read_rows: "SELECT m.enqueue_seq, coalesce(m.kafka_timestamp, {enqueued_ms}), m.kafka_flags, \
          m.routing_key, m.kafka_key, m.payload, m.payload_compression, m.headers::text \
        FROM {message} m \
        WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT $4";

    /// ($1 topic, $2 partition, $3 seq) → seq, running maximum of the timestamps, timestamp of the
    /// first row at or after the seq.
    timestamp_at: "SELECT m.enqueue_seq, coalesce(m.kafka_max_timestamp, m.kafka_timestamp, {enqueued_ms}), \
          coalesce(m.kafka_timestamp, {enqueued_ms}) \
        FROM {message} m WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 \
          AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT 1";

    /// ($1 topic, $2 partition, $3 seq, $4 timestamp) → seq and timestamp of the first row at or
    /// after the seq with that timestamp or a later one.
    first_with_timestamp: "SELECT m.enqueue_seq, coalesce(m.kafka_timestamp, {enqueued_ms}) \
        FROM {message} m WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 \
          AND coalesce(m.kafka_timestamp, {enqueued_ms}) >= $4 AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT 1";
}

fn fill(sql: &str, tables: &Tables) -> Arc<str> {
    sql.replace("{message}", &tables.message)
        .replace("{kafka_partition}", &tables.kafka_partition)
        .replace("{lock_partitions}", &tables.kafka_lock_partitions)
        .replace("{row_columns}", COLUMNS)
        .replace("{enqueued_ms}", ENQUEUED_MS)
        .into()
}
