-- Start of the append transaction: takes the advisory locks of partitions, and tells where each
-- log ends (storage.md D2, D3). Waits for the first lock only; of the others, those that are not
-- free are left out, because pgQueue's own batches take their locks unsorted.
--
-- Each query below is a statement of its own in a volatile function and so has a snapshot of its
-- own: one taken after the lock, which sees what the last holder committed. That needs READ
-- COMMITTED.

-- step: locks and ends of partitions
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_lock_partitions(
    topic_ids bigint[], partition_ids int[], lock_keys bigint[])
RETURNS TABLE (topic_id bigint, partition_id int, partition_count int, next_seq bigint,
    log_start_seq bigint, max_timestamp bigint, now_ms bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    last_seq bigint;
    ledger_seq bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'an append needs READ COMMITTED, not %', current_setting('transaction_isolation');
    END IF;
    now_ms := floor(extract(epoch FROM now()) * 1000)::bigint;
    FOR i IN 1 .. cardinality(topic_ids) LOOP
        IF i = 1 THEN
            PERFORM pg_advisory_xact_lock(lock_keys[1]);
        ELSIF NOT pg_try_advisory_xact_lock(lock_keys[i]) THEN
            CONTINUE;
        END IF;
        topic_id := topic_ids[i];
        partition_id := partition_ids[i];

        SELECT t.partition_count INTO partition_count
        FROM __SCHEMA__.__PREFIX___topic t WHERE t.id = topic_ids[i];
        partition_count := coalesce(partition_count, 0);

        SELECT m.enqueue_seq, coalesce(m.kafka_max_timestamp, m.kafka_timestamp,
            floor(extract(epoch FROM m.enqueued_at) * 1000)::bigint)
        INTO last_seq, max_timestamp
        FROM __SCHEMA__.__PREFIX___message m
        WHERE m.topic_id = topic_ids[i] AND m.partition_id = partition_ids[i]
        ORDER BY m.enqueue_seq DESC LIMIT 1;

        SELECT p.next_seq, p.log_start_seq INTO ledger_seq, log_start_seq
        FROM __SCHEMA__.__PREFIX___kafka_partition p
        WHERE p.topic_id = topic_ids[i] AND p.partition_id = partition_ids[i];

        next_seq := greatest(coalesce(last_seq + 1, 1), coalesce(ledger_seq, 1));
        log_start_seq := coalesce(log_start_seq, 1);
        max_timestamp := coalesce(max_timestamp, -1);
        RETURN NEXT;
    END LOOP;
END
$$;
