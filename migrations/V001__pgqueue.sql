-- The six tables of pgQueue in the lean form (storage.md D5), made on an empty database only.
--
-- Same columns, types, defaults and checks as pgQueue's own set-up, and its index names, so that
-- its "create if not exists" adds nothing later. Left out are keys that cost the append much and
-- that no client needs: the primary key of message and its foreign key to topic, and the foreign
-- key from lease to message. The dequeue index leaves out the default priority, which the unique
-- index serves. Locks: none that matter, the tables are new.

-- step: the tables of pgQueue, lean profile
CREATE TABLE __SCHEMA__.__PREFIX___content_type (
    id   smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mime text     NOT NULL UNIQUE
);

INSERT INTO __SCHEMA__.__PREFIX___content_type (mime) VALUES ('application/avro');

CREATE TABLE __SCHEMA__.__PREFIX___topic (
    id                        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_name                text        NOT NULL UNIQUE,
    partition_count           int         NOT NULL CHECK (partition_count BETWEEN 1 AND 4096),
    retention_max_age_seconds int         NOT NULL CHECK (retention_max_age_seconds >= 0),
    max_rows_per_topic        bigint      NOT NULL CHECK (max_rows_per_topic >= 0),
    max_total_payload_bytes   bigint      NOT NULL CHECK (max_total_payload_bytes >= 0),
    default_content_type_id   smallint    REFERENCES __SCHEMA__.__PREFIX___content_type (id),
    aggressive_retention      boolean     NOT NULL DEFAULT false,
    created_at                timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE __SCHEMA__.__PREFIX___consumer_offset (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_group text   NOT NULL,
    topic_id       bigint NOT NULL REFERENCES __SCHEMA__.__PREFIX___topic (id) ON DELETE CASCADE,
    partition_id   int    NOT NULL CHECK (partition_id >= 0),
    offset_value   bigint NOT NULL DEFAULT 0,
    epoch          bigint NOT NULL DEFAULT 0,
    UNIQUE (consumer_group, topic_id, partition_id)
);

CREATE TABLE __SCHEMA__.__PREFIX___message (
    id                  bigint      GENERATED ALWAYS AS IDENTITY,
    topic_id            bigint      NOT NULL,
    partition_id        int         NOT NULL,
    routing_key         text        NOT NULL,
    enqueue_seq         bigint      NOT NULL,
    priority            smallint    NOT NULL DEFAULT 5,
    payload             bytea       NOT NULL,
    content_type_id     smallint    REFERENCES __SCHEMA__.__PREFIX___content_type (id),
    payload_compression smallint    NOT NULL DEFAULT 0 CHECK (payload_compression >= 0),
    headers             jsonb,
    payload_bytes       bigint      GENERATED ALWAYS AS (octet_length(payload)) STORED,
    enqueued_at         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (topic_id, partition_id, enqueue_seq, enqueued_at),
    CONSTRAINT __PREFIX___message_priority_range CHECK (priority BETWEEN 0 AND 9)
) PARTITION BY RANGE (enqueued_at);

CREATE INDEX idx___PREFIX___message_dequeue
    ON __SCHEMA__.__PREFIX___message (topic_id, partition_id, priority, enqueue_seq)
    WHERE priority <> 5;

CREATE INDEX idx___PREFIX___message_enqueued_brin
    ON __SCHEMA__.__PREFIX___message USING brin (enqueued_at);

-- Finds a message by id, as acknowledging does; rows of a time partition are in the order of id.
CREATE INDEX idx___PREFIX___message_id_brin
    ON __SCHEMA__.__PREFIX___message USING brin (id) WITH (pages_per_range = 16);

CREATE TABLE __SCHEMA__.__PREFIX___message_group_lease (
    id                  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id          bigint      NOT NULL,
    message_enqueued_at timestamptz NOT NULL,
    consumer_group      text        NOT NULL,
    lock_owner          text        NOT NULL,
    locked_until        timestamptz NOT NULL,
    CONSTRAINT __PREFIX___message_group_lease_unique_msg_group
        UNIQUE (message_id, message_enqueued_at, consumer_group)
);

CREATE INDEX idx___PREFIX___message_group_lease_group_unlocked
    ON __SCHEMA__.__PREFIX___message_group_lease (consumer_group, locked_until);

CREATE TABLE __SCHEMA__.__PREFIX___consumer_registration (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_group    text        NOT NULL,
    topic_id          bigint      NOT NULL REFERENCES __SCHEMA__.__PREFIX___topic (id) ON DELETE CASCADE,
    registered_at     timestamptz NOT NULL DEFAULT now(),
    last_heartbeat_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (consumer_group, topic_id)
);
