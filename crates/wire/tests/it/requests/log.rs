//! Requests of the APIs that write and read records.

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::*;

use super::values::{TOPIC_ID, text, topic};

pub(super) fn produce(version: i16) -> ProduceRequest {
    let mut data = TopicProduceData::default().with_partition_data(vec![
        PartitionProduceData::default().with_index(7).with_records(Some(Bytes::from_static(b"not a batch"))),
        PartitionProduceData::default().with_index(8).with_records(None),
    ]);
    if version <= 12 {
        data = data.with_name(topic("orders"));
    } else {
        data = data.with_topic_id(TOPIC_ID);
    }
    ProduceRequest::default()
        .with_transactional_id(Some(TransactionalId(text("tx"))))
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![data])
}

pub(super) fn fetch(version: i16) -> FetchRequest {
    let mut partition =
        FetchPartition::default().with_partition(3).with_fetch_offset(1 << 40).with_partition_max_bytes(1 << 20);
    if version >= 5 {
        partition = partition.with_log_start_offset(17);
    }
    if version >= 9 {
        partition = partition.with_current_leader_epoch(5);
    }
    if version >= 12 {
        partition = partition.with_last_fetched_epoch(4);
    }
    if version >= 17 {
        partition = partition.with_replica_directory_id(TOPIC_ID);
    }
    if version >= 18 {
        partition = partition.with_high_watermark(99);
    }
    let mut fetched = FetchTopic::default().with_partitions(vec![partition]);
    let mut forgotten = ForgottenTopic::default().with_partitions(vec![1, 2]);
    if version <= 12 {
        (fetched, forgotten) = (fetched.with_topic(topic("orders")), forgotten.with_topic(topic("old")));
    } else {
        (fetched, forgotten) = (fetched.with_topic_id(TOPIC_ID), forgotten.with_topic_id(TOPIC_ID));
    }
    let mut request = FetchRequest::default()
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_isolation_level(1)
        .with_topics(vec![fetched]);
    if version <= 14 {
        request = request.with_replica_id(BrokerId(-1));
    } else {
        request =
            request.with_replica_state(ReplicaState::default().with_replica_id(BrokerId(2)).with_replica_epoch(3));
    }
    if version >= 7 {
        request = request.with_session_id(11).with_session_epoch(12).with_forgotten_topics_data(vec![forgotten]);
    }
    if version >= 11 {
        request = request.with_rack_id(text("rack"));
    }
    if version >= 12 {
        request = request.with_cluster_id(Some(text("cluster")));
    }
    request
}

pub(super) fn list_offsets(version: i16) -> ListOffsetsRequest {
    let mut partition = ListOffsetsPartition::default().with_partition_index(2).with_timestamp(-1);
    if version >= 4 {
        partition = partition.with_current_leader_epoch(6);
    }
    let mut request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![ListOffsetsTopic::default().with_name(topic("t")).with_partitions(vec![partition])]);
    if version >= 2 {
        request = request.with_isolation_level(1);
    }
    if version >= 10 {
        request = request.with_timeout_ms(9);
    }
    request
}

pub(super) fn offset_for_leader_epoch(version: i16) -> OffsetForLeaderEpochRequest {
    let partition =
        OffsetForLeaderPartition::default().with_partition(1).with_current_leader_epoch(3).with_leader_epoch(2);
    let asked = OffsetForLeaderTopic::default().with_topic(topic("t")).with_partitions(vec![partition]);
    let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![asked]);
    if version >= 3 {
        request = request.with_replica_id(BrokerId(-1));
    }
    request
}

pub(super) fn init_producer_id(version: i16) -> InitProducerIdRequest {
    let mut request = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("tx"))))
        .with_transaction_timeout_ms(60_000);
    if version >= 3 {
        request = request.with_producer_id(ProducerId(1000)).with_producer_epoch(2);
    }
    request
}
