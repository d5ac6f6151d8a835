-- An end of the log that clients were told never falls, whoever deletes the rows there (storage.md D3).
--
-- Appends do not write to the ledger. So a statement that deletes rows at the end of a partition does,
-- in its own transaction: offsets are not given out again, and the end stays where it was on every
-- gateway and across restarts. Retention, which deletes at the other end, only costs a look.

-- step: ends of what a statement deletes
-- SECURITY DEFINER: the role that deletes may have no rights on the gateway's tables. A topic that goes
-- with its rows needs no ledger.
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_keep_ends()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO __SCHEMA__.__PREFIX___kafka_partition AS l (topic_id, partition_id, next_seq)
    SELECT gone.topic_id, gone.partition_id, gone.next_seq
      FROM (SELECT d.topic_id, d.partition_id, max(d.enqueue_seq) + 1 AS next_seq
              FROM deleted d GROUP BY d.topic_id, d.partition_id) gone
      JOIN __SCHEMA__.__PREFIX___topic t ON t.id = gone.topic_id
      CROSS JOIN LATERAL __SCHEMA__.__PREFIX___kafka_log_end(gone.topic_id, gone.partition_id) e
     WHERE gone.next_seq > e.next_seq
     ORDER BY gone.topic_id, gone.partition_id
    ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq
     WHERE l.next_seq < excluded.next_seq;
    RETURN NULL;
END
$$;

-- step: ends of what TRUNCATE takes away
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_keep_all_ends()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO __SCHEMA__.__PREFIX___kafka_partition AS l (topic_id, partition_id, next_seq)
    SELECT t.id, p.id, e.next_seq
      FROM __SCHEMA__.__PREFIX___topic t
      CROSS JOIN LATERAL generate_series(0, t.partition_count - 1) AS p(id)
      CROSS JOIN LATERAL __SCHEMA__.__PREFIX___kafka_log_end(t.id, p.id) e
     WHERE e.next_seq > 1
     ORDER BY t.id, p.id
    ON CONFLICT (topic_id, partition_id) DO UPDATE SET next_seq = excluded.next_seq
     WHERE l.next_seq < excluded.next_seq;
    RETURN NULL;
END
$$;

-- step: the triggers (a moment's SHARE ROW EXCLUSIVE on message)
CREATE OR REPLACE TRIGGER __PREFIX___kafka_keep_ends
    AFTER DELETE ON __SCHEMA__.__PREFIX___message
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION __SCHEMA__.__PREFIX___kafka_keep_ends();

CREATE OR REPLACE TRIGGER __PREFIX___kafka_keep_all_ends
    BEFORE TRUNCATE ON __SCHEMA__.__PREFIX___message
    FOR EACH STATEMENT EXECUTE FUNCTION __SCHEMA__.__PREFIX___kafka_keep_all_ends();
