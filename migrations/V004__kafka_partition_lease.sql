-- Leases of whole partitions: which ones the members of Kafka groups own (storage.md D9).
--
-- pgQueue's workers lease message by message; R__kafka_refuse_lease.sql makes them respect these. The
-- fill factor leaves room in each page, so that a renewal stays in it (HOT). Locks: none that
-- matter, the table is new.

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
