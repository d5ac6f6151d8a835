-- The index that finds the last batches of an idempotent producer (storage.md D6).
--
-- Not part of a numbered script, because it is built CONCURRENTLY, one time partition after the
-- other, and attached to an index of the same shape on message. __NAME__ and __TABLE__ are the
-- index and the table of the moment, __HOW__ is CONCURRENTLY or nothing, __ONLY__ is ONLY for
-- message itself.
CREATE INDEX __HOW__ __NAME__
    ON __ONLY__ __TABLE__ (topic_id, partition_id, kafka_producer_id, enqueue_seq)
    WHERE kafka_producer_id IS NOT NULL;
