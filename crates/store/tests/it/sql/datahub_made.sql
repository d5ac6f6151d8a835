-- What DataHub leaves in a database: the six tables of storage.md section 1 with all their keys,
-- time partitions named by hand from yesterday to the day after tomorrow, and rows. Only the parts
-- that clients see are as DataHub names them; the gateway must not depend on the other names.
CREATE SCHEMA queue;
SET search_path TO queue;

CREATE TABLE metadata_queue_content_type (
    id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mime text NOT NULL UNIQUE
);
INSERT INTO metadata_queue_content_type (mime) VALUES ('application/avro');

CREATE TABLE metadata_queue_topic (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_name text NOT NULL UNIQUE,
    partition_count int NOT NULL CHECK (partition_count >= 1 AND partition_count <= 4096),
    retention_max_age_seconds int NOT NULL CHECK (retention_max_age_seconds >= 0),
    max_rows_per_topic bigint NOT NULL CHECK (max_rows_per_topic >= 0),
    max_total_payload_bytes bigint NOT NULL CHECK (max_total_payload_bytes >= 0),
    default_content_type_id smallint REFERENCES metadata_queue_content_type (id),
    aggressive_retention boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE metadata_queue_message (
    id bigint GENERATED ALWAYS AS IDENTITY,
    topic_id bigint NOT NULL REFERENCES metadata_queue_topic (id) ON DELETE CASCADE,
    partition_id int NOT NULL,
    routing_key text NOT NULL,
    enqueue_seq bigint NOT NULL,
    priority smallint NOT NULL DEFAULT 5,
    payload bytea NOT NULL,
    content_type_id smallint REFERENCES metadata_queue_content_type (id),
    payload_compression smallint NOT NULL DEFAULT 0 CHECK (payload_compression >= 0),
    headers jsonb,
    payload_bytes bigint GENERATED ALWAYS AS (octet_length(payload)) STORED,
    enqueued_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, enqueued_at),
    UNIQUE (topic_id, partition_id, enqueue_seq, enqueued_at),
    CONSTRAINT a_name_of_its_own CHECK (priority BETWEEN 0 AND 9)
) PARTITION BY RANGE (enqueued_at);
CREATE INDEX idx_metadata_queue_message_dequeue
    ON metadata_queue_message (topic_id, partition_id, priority, enqueue_seq);
CREATE INDEX idx_metadata_queue_message_enqueued_brin
    ON metadata_queue_message USING brin (enqueued_at);

CREATE TABLE metadata_queue_consumer_offset (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_group text NOT NULL,
    topic_id bigint NOT NULL REFERENCES metadata_queue_topic (id) ON DELETE CASCADE,
    partition_id int NOT NULL CHECK (partition_id >= 0),
    offset_value bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    UNIQUE (consumer_group, topic_id, partition_id)
);

CREATE TABLE metadata_queue_message_group_lease (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id bigint NOT NULL,
    message_enqueued_at timestamptz NOT NULL,
    consumer_group text NOT NULL,
    lock_owner text NOT NULL,
    locked_until timestamptz NOT NULL,
    UNIQUE (message_id, message_enqueued_at, consumer_group),
    FOREIGN KEY (message_id, message_enqueued_at)
        REFERENCES metadata_queue_message (id, enqueued_at) ON DELETE CASCADE
);
CREATE INDEX idx_metadata_queue_message_group_lease_group_unlocked
    ON metadata_queue_message_group_lease (consumer_group, locked_until);

CREATE TABLE metadata_queue_consumer_registration (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_group text NOT NULL,
    topic_id bigint NOT NULL REFERENCES metadata_queue_topic (id) ON DELETE CASCADE,
    registered_at timestamptz NOT NULL DEFAULT now(),
    last_heartbeat_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (consumer_group, topic_id)
);

DO $$
DECLARE
    day timestamptz := date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
BEGIN
    FOR ahead IN -1 .. 1 LOOP
        EXECUTE format('CREATE TABLE by_hand_%s PARTITION OF metadata_queue_message FOR VALUES FROM (%L) TO (%L)',
            ahead + 1, day + ahead * interval '1 day', day + (ahead + 1) * interval '1 day');
    END LOOP;
    -- The third was made apart and attached, so it owns its check itself.
    CREATE TABLE by_hand_3 (LIKE metadata_queue_message INCLUDING ALL EXCLUDING IDENTITY EXCLUDING INDEXES);
    EXECUTE format('ALTER TABLE metadata_queue_message ATTACH PARTITION by_hand_3 FOR VALUES FROM (%L) TO (%L)',
        day + 2 * interval '1 day', day + 3 * interval '1 day');
END
$$;

INSERT INTO metadata_queue_topic
       (topic_name, partition_count, retention_max_age_seconds, max_rows_per_topic, max_total_payload_bytes)
VALUES ('MetadataChangeProposal_v1', 2, 86400, 0, 0), ('MetadataChangeLog_Versioned_v1', 3, 0, 0, 0);

INSERT INTO metadata_queue_message
       (topic_id, partition_id, routing_key, enqueue_seq, priority, payload, content_type_id, headers, enqueued_at)
SELECT 1, n % 2, 'urn:li:' || n, n / 2 + 1, n % 10, convert_to('value ' || n, 'UTF8'), 1,
       CASE WHEN n % 3 = 0 THEN '[{"key": "a", "v": "eA=="}]'::jsonb END,
       now() - interval '1 day' + n * interval '80 seconds'
  FROM generate_series(0, 999) n;

INSERT INTO metadata_queue_message_group_lease
       (message_id, message_enqueued_at, consumer_group, lock_owner, locked_until)
SELECT id, enqueued_at, 'mce', '__acked__', to_timestamp(0) FROM metadata_queue_message WHERE id <= 10;
INSERT INTO metadata_queue_consumer_offset (consumer_group, topic_id, partition_id, offset_value)
VALUES ('mce', 1, 0, 5), ('mce', 1, 1, 5);
INSERT INTO metadata_queue_consumer_registration (consumer_group, topic_id) VALUES ('mce', 1);
