WITH part AS (
    SELECT * FROM unnest($1::bigint[], $2::int[], $4::bigint[]) AS p(topic_id, partition_id, next_seq)
), locked AS MATERIALIZED (
    SELECT l.topic_id, l.partition_id, l.log_start_seq,
           l.next_seq = part.next_seq AND l.partition_id < l.partition_count AS is_expected
      FROM {kafka_lock_partitions}($1, $2, $3) l JOIN part USING (topic_id, partition_id)
), written AS (
    INSERT INTO {message} ({row_columns})
    SELECT r.* FROM {row_arrays} JOIN locked USING (topic_id, partition_id) WHERE locked.is_expected
)
SELECT topic_id, partition_id, log_start_seq, is_expected AS is_written FROM locked
