-- Consumer groups of the Kafka protocol (storage.md D8 to D12): coordinator slots, stored groups,
-- gateways, and what offsets and registrations need beyond pgQueue's columns.
--
-- Every step may run twice. None touches message; the changed tables are small and are not
-- rewritten. The fill factors leave room in each page, so that updates stay in it (HOT) and need no
-- index entry; they and the autovacuum settings take SHARE UPDATE EXCLUSIVE: reads and writes go on.

-- step: columns of consumer_offset (a moment's ACCESS EXCLUSIVE)
-- kafka_offset is the offset_value that kafka_metadata and kafka_leader_epoch were committed with:
-- where offset_value is another, a pgQueue client has moved on and they are void.
ALTER TABLE __SCHEMA__.__PREFIX___consumer_offset
    ADD COLUMN IF NOT EXISTS kafka_offset    bigint,
    ADD COLUMN IF NOT EXISTS kafka_expire_at timestamptz;

-- step: column of consumer_registration (a moment's ACCESS EXCLUSIVE)
-- A last_heartbeat_at that is later than this is a pgQueue worker's.
ALTER TABLE __SCHEMA__.__PREFIX___consumer_registration
    ADD COLUMN IF NOT EXISTS kafka_heartbeat_at timestamptz;

-- step: room for updates of consumer_offset and consumer_registration
ALTER TABLE __SCHEMA__.__PREFIX___consumer_offset
    SET (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE __SCHEMA__.__PREFIX___consumer_registration SET (fillfactor = 50);
ALTER TABLE __SCHEMA__.__PREFIX___message_group_lease
    SET (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);

-- step: gateways, coordinator slots and groups
CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_node (
    node_id      int         PRIMARY KEY CHECK (node_id >= 0),
    host         text        NOT NULL,
    port         int         NOT NULL CHECK (port BETWEEN 1 AND 65535),
    rack         text,
    instance     uuid        NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 25);

-- fencing rises whenever the slot changes hands. lock_owner is the instance of a gateway.
CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_coordinator_slot (
    slot         int         PRIMARY KEY CHECK (slot >= 0),
    lock_owner   uuid,
    locked_until timestamptz NOT NULL DEFAULT '-infinity',
    fencing      bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 25);

-- Made once; the number of slots never changes afterwards, whatever the number of gateways (B106).
INSERT INTO __SCHEMA__.__PREFIX___kafka_coordinator_slot (slot)
SELECT slot FROM generate_series(0, 63) slot
WHERE NOT EXISTS (SELECT FROM __SCHEMA__.__PREFIX___kafka_coordinator_slot);

-- state is the gateway's own form of members, protocol and assignment; has_members, generation and
-- protocol_type repeat what SQL needs of it.
CREATE TABLE IF NOT EXISTS __SCHEMA__.__PREFIX___kafka_group (
    group_id      text        PRIMARY KEY,
    slot          int         NOT NULL,
    fencing       bigint      NOT NULL,
    generation    int         NOT NULL,
    protocol_type text        NOT NULL,
    has_members   boolean     NOT NULL,
    state         bytea       NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

CREATE INDEX IF NOT EXISTS __PREFIX___kafka_group_slot ON __SCHEMA__.__PREFIX___kafka_group (slot);
