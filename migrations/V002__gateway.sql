-- What the gateway adds to the six tables of pgQueue (storage.md D3, D4, D6), whoever made them.
--
-- Every step runs in its own transaction under a lock_timeout and is repeated until it gets its
-- locks, so no step makes the readers and writers of message wait for longer than that time-out.
-- Every step may run twice. None rewrites message: the columns are nullable and have no default.

-- step: columns of message (a moment's ACCESS EXCLUSIVE on message and its time partitions)
ALTER TABLE __SCHEMA__.__PREFIX___message
    ADD COLUMN IF NOT EXISTS kafka_key            bytea,
    ADD COLUMN IF NOT EXISTS kafka_flags          smallint,
    ADD COLUMN IF NOT EXISTS kafka_timestamp      bigint,
    ADD COLUMN IF NOT EXISTS kafka_max_timestamp  bigint,
    ADD COLUMN IF NOT EXISTS kafka_producer_id    bigint,
    ADD COLUMN IF NOT EXISTS kafka_producer_epoch smallint,
    ADD COLUMN IF NOT EXISTS kafka_base_sequence  int,
    ADD COLUMN IF NOT EXISTS kafka_batch_records  int;

-- step: priority -1 allowed in message (a moment's ACCESS EXCLUSIVE on message and its time partitions)
-- Replaces every check on priority alone, whatever its name: also those that a hand-made time
-- partition owns itself and that dropping the parent's would leave behind. NOT VALID spares the
-- scan under this lock.
DO $$
DECLARE
    message CONSTANT regclass := '__SCHEMA__.__PREFIX___message';
    old     record;
BEGIN
    IF EXISTS (SELECT FROM pg_constraint
                WHERE conrelid = message AND conname = '__PREFIX___message_priority_range'
                  AND pg_get_constraintdef(oid) LIKE '%-1%') THEN
        RETURN;
    END IF;
    FOR old IN
        SELECT c.conrelid::regclass AS relation, c.conname
          FROM pg_partition_tree(message) tree
          JOIN pg_constraint c ON c.conrelid = tree.relid AND c.contype = 'c'
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND c.conkey = ARRAY[a.attnum]
         WHERE a.attname = 'priority'
         ORDER BY tree.level
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', old.relation, old.conname);
    END LOOP;
    ALTER TABLE __SCHEMA__.__PREFIX___message
        ADD CONSTRAINT __PREFIX___message_priority_range CHECK (priority BETWEEN -1 AND 9) NOT VALID;
END
$$;

-- step: priorities of message checked (SHARE UPDATE EXCLUSIVE: reads and writes go on)
ALTER TABLE __SCHEMA__.__PREFIX___message VALIDATE CONSTRAINT __PREFIX___message_priority_range;

-- step: columns of topic (rewrites that small table)
ALTER TABLE __SCHEMA__.__PREFIX___topic
    ADD COLUMN IF NOT EXISTS kafka_topic_id uuid  NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN IF NOT EXISTS kafka_config   jsonb NOT NULL DEFAULT '{}';

CREATE UNIQUE INDEX IF NOT EXISTS __PREFIX___topic_kafka_topic_id_key
    ON __SCHEMA__.__PREFIX___topic (kafka_topic_id);

-- step: columns of consumer_offset
ALTER TABLE __SCHEMA__.__PREFIX___consumer_offset
    ADD COLUMN IF NOT EXISTS kafka_metadata     text,
    ADD COLUMN IF NOT EXISTS kafka_leader_epoch int,
    ADD COLUMN IF NOT EXISTS kafka_committed_at timestamptz;

-- step: sequence ledger, cluster id and producer ids
CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_partition (
    topic_id      bigint NOT NULL REFERENCES __SCHEMA__.__PREFIX___topic (id) ON DELETE CASCADE,
    partition_id  int    NOT NULL CHECK (partition_id >= 0),
    next_seq      bigint NOT NULL DEFAULT 1 CHECK (next_seq >= 1),
    log_start_seq bigint NOT NULL DEFAULT 1 CHECK (log_start_seq >= 1),
    leader_epoch  int    NOT NULL DEFAULT 0 CHECK (leader_epoch >= 0),
    PRIMARY KEY (topic_id, partition_id)
);

CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_cluster (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    cluster_id text    NOT NULL
);

-- As Kafka writes a random Uuid (org.apache.kafka.common.Uuid): URL-safe base64 without padding,
-- never starting with a dash, which command lines would take for an option.
INSERT INTO __SCHEMA__.__PREFIX___kafka_cluster (cluster_id)
SELECT regexp_replace(
           translate(rtrim(encode(uuid_send(gen_random_uuid()), 'base64'), '='), '+/', '-_'),
           '^-', 'A')
ON CONFLICT DO NOTHING;

CREATE SEQUENCE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_producer_id_seq AS bigint START WITH 1 NO CYCLE;
