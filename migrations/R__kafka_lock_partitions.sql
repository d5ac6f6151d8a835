-- Start of the append transaction: takes the advisory locks of partitions, and tells where each
-- log ends (storage.md D2, D3). Waits for the first lock only; of the others, those that are not
-- free are left out, because pgQueue's own batches take their locks unsorted.
--
-- The look at each log is a statement of its own in a volatile function and so has a snapshot of its
-- own: one taken after the lock, which sees what the last holder committed. That needs READ
-- COMMITTED.

-- step: locks and ends of partitions
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_lock_partitions(
    topic_ids bigint[], partition_ids int[], lock_keys bigint[])
RETURNS TABLE (topic_id bigint, partition_id int, partition_count int, next_seq bigint,
    log_start_seq bigint, max_timestamp bigint, now_ms bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
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

        SELECT coalesce((SELECT t.partition_count FROM __SCHEMA__.__PREFIX___topic t WHERE t.id = topic_ids[i]), 0),
               e.next_seq, e.noted_start_seq, e.max_timestamp
        INTO partition_count, next_seq, log_start_seq, max_timestamp
        FROM __SCHEMA__.__PREFIX___kafka_log_end(topic_ids[i], partition_ids[i]) e;
        RETURN NEXT;
    END LOOP;
END
$$;
