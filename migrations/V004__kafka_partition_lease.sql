-- Leases of whole partitions: which ones the members of Kafka groups own (storage.md D9).
--
-- pgQueue's workers lease message by message; R__kafka_refuse_lease.sql makes them respect these. The
-- fill factor leaves room in each page, so that a renewal stays in it (HOT). Every step may run
-- twice.

-- step: leases of partitions
-- lock_owner is '{group}:{member id}'. A row stays for a while after its lease has ended.
CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_partition_lease (
    consumer_group text        NOT NULL,
    topic_id       bigint      NOT NULL REFERENCES __SCHEMA__.__PREFIX___topic (id) ON DELETE CASCADE,
    partition_id   int         NOT NULL CHECK (partition_id >= 0),
    lock_owner     text        NOT NULL,
    locked_until   timestamptz NOT NULL,
    PRIMARY KEY (consumer_group, topic_id, partition_id)
) WITH (fillfactor = 50);

-- step: no statistics of lock_owner (a moment's ACCESS EXCLUSIVE on message_group_lease, or less)
-- Statistics of a table that holds nothing but acknowledged leases tell the planner that a worker's
-- look-up for the first message without one finds next to nothing; it then joins whole tables for
-- each message. ANALYZE leaves what was there before, a change of the type to itself removes it and
-- rewrites nothing. Where a view forbids that change, the old statistics stay.
DO $$
BEGIN
    ALTER TABLE __SCHEMA__.__PREFIX___message_group_lease ALTER COLUMN lock_owner SET STATISTICS 0;
    IF EXISTS (SELECT FROM pg_stats WHERE format('%I.%I', schemaname, tablename)::regclass
                   = '__SCHEMA__.__PREFIX___message_group_lease'::regclass AND attname = 'lock_owner') THEN
        ALTER TABLE __SCHEMA__.__PREFIX___message_group_lease ALTER COLUMN lock_owner TYPE text;
    END IF;
EXCEPTION WHEN feature_not_supported THEN
    ALTER TABLE __SCHEMA__.__PREFIX___message_group_lease ALTER COLUMN lock_owner SET STATISTICS 0;
END
$$;
