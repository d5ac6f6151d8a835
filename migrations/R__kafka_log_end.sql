-- Where the log of a partition starts and ends: the one place that says so (storage.md D1, D3).

-- step: start and end of a partition's log
-- The end is the greater of the ledger's and the last row's; the start is the first row's, or the
-- ledger's where that is later, or the end where there are no rows. max_timestamp is the running
-- maximum of the timestamps at the last row, noted_start_seq the ledger's part of the start alone.
--
-- A single SELECT without SECURITY or SET, so that Postgres puts it into the query that calls it and
-- leaves out what that query does not use; the look-up of the first row above all.
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_log_end(topic_id bigint, partition_id int)
RETURNS TABLE (log_start_seq bigint, next_seq bigint, noted_start_seq bigint, max_timestamp bigint)
LANGUAGE sql STABLE AS $$
    SELECT greatest(coalesce(noted.log_start_seq, 1),
               coalesce((SELECT m.enqueue_seq FROM __SCHEMA__.__PREFIX___message m
                          WHERE m.topic_id = $1 AND m.partition_id = $2
                          ORDER BY m.enqueue_seq LIMIT 1),
                   greatest(noted.next_seq, 1))),
           greatest(coalesce(noted.next_seq, 1), coalesce(last.seq + 1, 1)),
           coalesce(noted.log_start_seq, 1),
           coalesce(last.max_timestamp, -1)
      FROM (VALUES (true)) always
      LEFT JOIN __SCHEMA__.__PREFIX___kafka_partition noted ON noted.topic_id = $1 AND noted.partition_id = $2
      LEFT JOIN LATERAL (
           SELECT m.enqueue_seq AS seq, coalesce(m.kafka_max_timestamp, m.kafka_timestamp,
                      floor(extract(epoch FROM m.enqueued_at) * 1000)::bigint) AS max_timestamp
             FROM __SCHEMA__.__PREFIX___message m
            WHERE m.topic_id = $1 AND m.partition_id = $2
            ORDER BY m.enqueue_seq DESC LIMIT 1) last ON true
$$;
