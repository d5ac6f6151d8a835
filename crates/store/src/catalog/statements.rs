use crate::database::statements;

/// Fragment: what `Topic::read` reads.
const COLUMNS: &str = "id, topic_name, kafka_topic_id, partition_count, kafka_config, \
     floor(extract(epoch FROM created_at) * 1000)::bigint AS created_at_ms";

statements! {
    /// Of the topic table.
    pub(super) struct TopicStatements where columns = COLUMNS;

    /// ($1 names, $2 Kafka's topic ids) → the topics.
    topics: "SELECT {columns} FROM {topic} WHERE topic_name = ANY($1) OR kafka_topic_id = ANY($2)";

    /// → the topics, by name.
    all_topics: "SELECT {columns} FROM {topic} ORDER BY topic_name";

    /// ($1 name, $2 partitions, $3 retention in seconds, $4 configuration) → the topic.
    create_topic: "INSERT INTO {topic} (topic_name, partition_count, retention_max_age_seconds, \
          max_rows_per_topic, max_total_payload_bytes, kafka_config) \
        VALUES ($1, $2, $3, 0, 0, $4) RETURNING {columns}";

    /// ($1 name) → id, its row locked. The lock is of the kind that a foreign key of message does not
    /// wait for: an append has the partition's lock already, and the two would deadlock.
    lock_topic: "SELECT id FROM {topic} WHERE topic_name = $1 FOR NO KEY UPDATE";

    /// ($1 topic): the locks of its partitions.
    lock_partitions_of_topic: "SELECT pg_advisory_xact_lock(key) FROM ( \
          SELECT {kafka_lock_key}($1, partition_id) AS key \
          FROM {topic}, generate_series(0, partition_count - 1) AS partition_id \
          WHERE id = $1 ORDER BY key OFFSET 0) sorted";

    /// ($1 topic). This and the next ones make up for the foreign keys that the lean profile lacks.
    delete_leases_of_topic: "DELETE FROM {message_group_lease} lease USING {message} message \
        WHERE message.topic_id = $1 AND lease.message_id = message.id \
          AND lease.message_enqueued_at = message.enqueued_at";

    /// ($1 topic).
    delete_messages_of_topic: "DELETE FROM {message} WHERE topic_id = $1";

    /// ($1 topic).
    delete_offsets_of_topic: "DELETE FROM {consumer_offset} WHERE topic_id = $1";

    /// ($1 topic).
    delete_registrations_of_topic: "DELETE FROM {consumer_registration} WHERE topic_id = $1";

    /// ($1 topic).
    delete_partitions_of_topic: "DELETE FROM {kafka_partition} WHERE topic_id = $1";

    /// ($1 topic).
    delete_topic: "DELETE FROM {topic} WHERE id = $1";
}
