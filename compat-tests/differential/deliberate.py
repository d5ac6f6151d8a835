"""Where the gateway answers otherwise than Apache Kafka on purpose: a pattern for "case: note path", and why."""

DELIBERATE = {
    # metadata.rs
    r"^metadata: null name v12": "INVALID_REQUEST; Kafka fails with -1",
    r"^metadata: ids and names v12": "names beside ids are answered; Kafka looks at the ids only",
    r"^auto_create: collides": "says INVALID_TOPIC_EXCEPTION; with Kafka the client waits for a topic that never comes",
    # create_topics.rs, topic_config.rs
    r"^create_topics: (validate )?(factor too large|assignment unknown broker) ": "any replication factor is accepted",
    r"^create_topics: (validate )?internal ": "Kafka's internal topics do not exist and cannot be made",
    r"^create_topics: collides in the request ": "refused; Kafka looks at existing topics only",
    r"^create_topics: validate .*TopicId": "nothing is made, so there is no id",
    r"^create_topics: config retention.ms=' 5 '": "stored without blanks",
    r"^create_topics: config compression.type='zstd'": "the gateway does not recompress",
    r"^create_topics: config segment.bytes='1000000'": "no files, so the least size is that of Kafka 3.9",
    r"^create_topics: config min.cleanable.dirty.ratio='NaN'": "not a number",
    # delete_topics.rs
    r"^delete_topics: name and its id": "the answer names the topic as the first of both did",
    # describe_configs.rs
    r"^describe_configs: twice ": "a resource that is named again is INVALID_REQUEST",
    r"^describe_configs: .*(retention|segment)\.ms": "defaults in the topic's unit; the reference keeps records for ever",
    r"^describe_configs: .*min.insync.replicas": "Kafka makes it a cluster-wide dynamic default with KIP-966",
    r"^describe_configs: broker filter": "nothing of the broker can be changed at run time; not the same settings",
    r"^describe_configs: several .*num.partitions": "not the same settings",
    # produce.rs, wire::batch
    r"^(produce|sequences).*LogStartOffset$": "-1 in an error",
    r"^sequences: .*repeat.*LogAppendTimeMs$": "-1 for CreateTime; Kafka gives the batch's last timestamp",
    r"^sequences: \d+ epoch -1": "INVALID_RECORD",
    r"^produce_versions: internal topic": "Kafka's internal topics do not exist",
    r"^produce_versions: no partitions": "the topic is named without partitions",
    r"^produce_twice_in_a_request: (partition|topic and partition)": "both are stored and answered; Kafka forgets the first",
    r"^produce_transactional: ": "nothing transactional is accepted yet",
    r"^produce_faults: codec [567]": "UNSUPPORTED_COMPRESSION_TYPE; Kafka fails with -1",
    r"^produce_faults: (gzip|snappy|lz4|zstd) (of garbage|cut)": "INVALID_RECORD; Kafka fails with -1",
    r"^produce_faults: (record length too long|length huge)": "INVALID_RECORD; Kafka fails with -1",
    r"^produce_faults: (a byte|many bytes) more": "bytes after the batch are refused",
    r"^produce_faults: batch and half a batch": "Kafka drops the half without a word",
    r"^produce_faults: length less by one": "INVALID_RECORD for what follows the batch",
    r"^produce_faults: (control and )?transactional ": "INVALID_RECORD: a producer id is missing",
    r"^produce_faults: append time": "INVALID_TIMESTAMP for the broker's own bit in any topic",
    r"^produce_faults: (delete horizon|id -2|id without epoch)": "header fields that no producer may set",
    r"^produce_faults: (records from delta 1|delta twice|deltas backwards|delta -1)": "offsets must be 0, 1, 2...",
    # fetch.rs
    r"^fetch.*(HighWatermark|LastStableOffset|LogStartOffset)$": "OFFSET_OUT_OF_RANGE comes with the real bounds",
    r"^fetch.*AbortedTransactions$": "null where READ_COMMITTED was not asked for, in errors too",
    r"^fetch: no partitions": "the topic is named without partitions",
    r"^fetch: isolation (2|-1)": "taken for READ_UNCOMMITTED; Kafka fails with -1",
    r"^fetch: replica 1": "there are no followers to tell from consumers",
    r"^fetch: leader epoch -2": "only -1 is no epoch",
    r"^fetch: last epoch": "last_fetched_epoch is not looked at",
    r"^fetch_waits: unknown partition took": "told at once",
    r"^fetch_waits: more than most.*Records$": "batches are packed anew, so other records fill the limit",
    r"^fetch_sessions: ": "no fetch sessions",
    # list_offsets.rs, offset_for_leader_epoch.rs
    r"^list_offsets: isolation 2": "taken for READ_UNCOMMITTED; Kafka fails with -1",
    r"^list_offsets: records without time -3": "no record has a timestamp",
    r"^offset_for_leader_epoch: .*epoch -2": "only -1 is no epoch",
    # frames
    r"^odd_frames: (client id -2|Metadata 1 array of -2|Metadata 1 name no text)": "malformed: the connection closes",
    r"^odd_frames: Metadata 1 name null": "INVALID_REQUEST; Kafka closes the connection",
    r"^odd_frames: (only a key|length 1|garbage)": "too small for a header, or no key: closes at once",
}
