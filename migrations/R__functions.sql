-- Functions; this script runs again whenever it changes.

-- step: the key of a partition's advisory lock
-- storage.md section 1: the first 8 bytes, big-endian, of SHA-256('topic_id:partition_id'),
-- modulo 2^62. Whoever appends to a partition holds pg_advisory_xact_lock of it to the commit.
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_lock_key(topic_id bigint, partition_id int)
RETURNS bigint
LANGUAGE sql
IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT ('x' || encode(substr(sha256(convert_to(topic_id || ':' || partition_id, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
           & ((1::bigint << 62) - 1)
$$;
