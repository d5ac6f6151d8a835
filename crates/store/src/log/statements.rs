//! The statements of the log.

use crate::{
    database::statements,
    record::{ENQUEUED_MS, RECORD_COLUMNS, ROW_ARRAYS, ROW_COLUMNS},
};

statements! {
    /// Of appends, reads and ends.
    pub(super) struct LogStatements where enqueued_ms = ENQUEUED_MS, record_columns = RECORD_COLUMNS,
        row_columns = ROW_COLUMNS, row_arrays = ROW_ARRAYS.as_str();

    /// ($1 topic ids, $2 partition ids, $3 lock keys) → topic_id, partition_id, partition_count,
    /// next_seq, log_start_seq, max_timestamp, now_ms of each partition whose lock is now held.
    lock_partitions: "SELECT * FROM {kafka_lock_partitions}($1, $2, $3)";

    /// ($1 topic ids, $2 partition ids, $3 lock keys, $4 expected next seqs, then the rows) →
    /// topic_id, partition_id, log_start_seq, is_written, for each partition whose lock is now held.
    /// Locks as `lock_partitions`.
    insert_rows: include_str!("append/insert_rows.sql");

    /// Rows in COPY's binary format.
    copy_rows: "COPY {message} ({row_columns}) FROM STDIN (FORMAT binary)";

    /// ($1 topic, $2 partition, $3 next_seq): the ledger never goes back.
    raise_next_seq: "INSERT INTO {kafka_partition} AS p (topic_id, partition_id, next_seq) VALUES ($1, $2, $3) \
        ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq \
        WHERE p.next_seq < excluded.next_seq";

    /// Notes in the ledger where rows go beyond it.
    update_ledger: "INSERT INTO {kafka_partition} AS l (topic_id, partition_id, next_seq) \
        SELECT t.id, p.id, e.next_seq \
        FROM {topic} t CROSS JOIN LATERAL generate_series(0, t.partition_count - 1) AS p(id) \
        CROSS JOIN LATERAL {kafka_log_end}(t.id, p.id) e \
        LEFT JOIN {kafka_partition} noted ON noted.topic_id = t.id AND noted.partition_id = p.id \
        WHERE e.next_seq > coalesce(noted.next_seq, 1) \
        ORDER BY t.id, p.id \
        ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq \
        WHERE l.next_seq < excluded.next_seq";

    /// ($1 topic, $2 partition, $3 producer, $4 limit) → the last batches of a producer, newest first.
    producer_batches: "SELECT m.enqueue_seq AS last_seq, m.kafka_producer_epoch AS epoch, \
          m.kafka_base_sequence AS base_sequence, m.kafka_batch_records AS records, {enqueued_ms} AS append_time \
        FROM {message} m \
        WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.kafka_producer_id = $3 \
        ORDER BY m.enqueue_seq DESC LIMIT $4";

    /// ($1 topic ids, $2 partition ids) → topic_id, partition_id, log_start_seq, next_seq.
    log_ends: "SELECT k.topic_id, k.partition_id, e.log_start_seq, e.next_seq \
        FROM unnest($1::bigint[], $2::int[]) AS k(topic_id, partition_id) \
        CROSS JOIN LATERAL {kafka_log_end}(k.topic_id, k.partition_id) e";

    /// ($1 topic, $2 partition, $3 first seq, $4 row limit) → the rows from there on, in order.
    read_rows: "SELECT {record_columns} FROM {message} m \
        WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT $4";

    /// ($1 topic, $2 partition, $3 seq) → seq, running maximum of the timestamps, timestamp of the
    /// first row at or after the seq.
    timestamp_at: "SELECT m.enqueue_seq, coalesce(m.kafka_timestamp, {enqueued_ms}) AS timestamp, \
          coalesce(m.kafka_max_timestamp, m.kafka_timestamp, {enqueued_ms}) AS running_max \
        FROM {message} m WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 \
          AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT 1";

    /// ($1 topic, $2 partition, $3 seq, $4 timestamp) → seq and timestamp of the first row at or
    /// after the seq with that timestamp or a later one.
    first_with_timestamp: "SELECT m.enqueue_seq, coalesce(m.kafka_timestamp, {enqueued_ms}) AS timestamp \
        FROM {message} m WHERE m.topic_id = $1 AND m.partition_id = $2 AND m.enqueue_seq >= $3 \
          AND coalesce(m.kafka_timestamp, {enqueued_ms}) >= $4 AND m.priority >= 0 \
        ORDER BY m.enqueue_seq LIMIT 1";

    /// → last_id: the last `message.id` that was drawn; xmin: transactions below have ended; is_read_only.
    inserts: "SELECT s.last_value + s.is_called::int AS last_id, \
          pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin, \
          current_setting('transaction_read_only')::bool AS is_read_only \
        FROM {message_id_seq} s";

    /// → transaction_id, drawn now.
    new_transaction_id: "SELECT pg_current_xact_id()::text::bigint AS transaction_id";

    /// ($1 channel, $2 payloads). Not worth waiting for the disk.
    notify: "WITH asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) \
        SELECT pg_notify($1, payload) FROM asynchronously, unnest($2::text[]) AS payload";
}
