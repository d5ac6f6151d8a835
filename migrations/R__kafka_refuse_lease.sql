-- Keeps pgQueue's workers off the partitions that Kafka members of their group own (storage.md D9).
--
-- A worker leases a message by INSERT … ON CONFLICT … RETURNING and takes no row for "somebody else
-- has it". So a trigger that lets the row fall is a lease on all messages of the partition, also on
-- those that do not exist yet, whoever writes them, and it costs the writers nothing.

-- step: which leases are refused
-- SECURITY DEFINER: the role of the workers may have no rights on the gateway's tables. The two
-- look-ups are statements of their own, so that no statistics can turn them round; generic plans,
-- because planning over all time partitions takes milliseconds.
CREATE OR REPLACE FUNCTION __SCHEMA__.__PREFIX___kafka_refuse_lease()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    message record;
BEGIN
    -- Almost every group of pgQueue's is unknown to Kafka.
    IF NOT EXISTS (SELECT FROM __SCHEMA__.__PREFIX___kafka_partition_lease p
                   WHERE p.consumer_group = NEW.consumer_group) THEN
        RETURN NEW;
    END IF;

    SELECT m.topic_id, m.partition_id, m.enqueue_seq INTO message
    FROM __SCHEMA__.__PREFIX___message m
    WHERE m.id = NEW.message_id AND m.enqueued_at = NEW.message_enqueued_at;

    -- A worker that read the offset before the member's last commit comes with messages that are
    -- done, and maybe only after the member has left.
    IF EXISTS (SELECT FROM __SCHEMA__.__PREFIX___kafka_partition_lease p
               LEFT JOIN __SCHEMA__.__PREFIX___consumer_offset o USING (consumer_group, topic_id, partition_id)
               WHERE p.consumer_group = NEW.consumer_group AND p.topic_id = message.topic_id
                 AND p.partition_id = message.partition_id
                 AND (p.locked_until > now() OR o.offset_value >= message.enqueue_seq)) THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;

-- step: the trigger (a moment's SHARE ROW EXCLUSIVE on message_group_lease)
-- An acknowledgement always passes: the work is done.
CREATE OR REPLACE TRIGGER __PREFIX___kafka_refuse_lease
    BEFORE INSERT ON __SCHEMA__.__PREFIX___message_group_lease
    FOR EACH ROW WHEN (NEW.lock_owner <> '__acked__')
    EXECUTE FUNCTION __SCHEMA__.__PREFIX___kafka_refuse_lease();
