//! Responses of the APIs that write and read records.

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::*;

use crate::requests::values::{TOPIC_ID, text, topic};

pub(super) fn produce(version: i16, error: i16) -> ProduceResponse {
    let mut partition = PartitionProduceResponse::default()
        .with_index(1)
        .with_error_code(error)
        .with_base_offset(1 << 40)
        .with_log_append_time_ms(5);
    if version >= 5 {
        partition = partition.with_log_start_offset(9);
    }
    if version >= 8 {
        let record =
            BatchIndexAndErrorMessage::default().with_batch_index(3).with_batch_index_error_message(Some(text("why")));
        partition = partition.with_record_errors(vec![record]).with_error_message(Some(text("why")));
    }
    let mut of_topic = TopicProduceResponse::default().with_partition_responses(vec![partition]);
    if version <= 12 {
        of_topic = of_topic.with_name(topic("t"));
    } else {
        of_topic = of_topic.with_topic_id(TOPIC_ID);
    }
    ProduceResponse::default().with_responses(vec![of_topic]).with_throttle_time_ms(1)
}

pub(super) fn fetch(version: i16, error: i16) -> FetchResponse {
    let aborted = AbortedTransaction::default().with_producer_id(ProducerId(7)).with_first_offset(3);
    let mut partition = PartitionData::default()
        .with_partition_index(1)
        .with_error_code(error)
        .with_high_watermark(100)
        .with_last_stable_offset(99)
        .with_aborted_transactions(Some(vec![aborted]))
        .with_records(Some(Bytes::from(vec![b'r'; 100_000])));
    if version >= 5 {
        partition = partition.with_log_start_offset(4);
    }
    if version >= 11 {
        partition = partition.with_preferred_read_replica(BrokerId(-1));
    }
    // An empty set of records has to be empty, not null: librdkafka refuses null.
    let empty = PartitionData::default().with_partition_index(2).with_records(Some(Bytes::new()));
    let mut of_topic = FetchableTopicResponse::default().with_partitions(vec![partition, empty]);
    if version <= 12 {
        of_topic = of_topic.with_topic(topic("t"));
    } else {
        of_topic = of_topic.with_topic_id(TOPIC_ID);
    }
    let mut response = FetchResponse::default().with_throttle_time_ms(1).with_responses(vec![of_topic]);
    if version >= 7 {
        response = response.with_error_code(error).with_session_id(5);
    }
    response
}

pub(super) fn list_offsets(version: i16, error: i16) -> ListOffsetsResponse {
    let mut partition = ListOffsetsPartitionResponse::default()
        .with_partition_index(1)
        .with_error_code(error)
        .with_timestamp(5)
        .with_offset(1 << 40);
    if version >= 4 {
        partition = partition.with_leader_epoch(2);
    }
    let of_topic = ListOffsetsTopicResponse::default().with_name(topic("t")).with_partitions(vec![partition]);
    let response = ListOffsetsResponse::default().with_topics(vec![of_topic]);
    if version >= 2 { response.with_throttle_time_ms(1) } else { response }
}

pub(super) fn offset_for_leader_epoch(error: i16) -> OffsetForLeaderEpochResponse {
    let partition = EpochEndOffset::default()
        .with_error_code(error)
        .with_partition(1)
        .with_leader_epoch(2)
        .with_end_offset(1 << 40);
    let of_topic = OffsetForLeaderTopicResult::default().with_topic(topic("t")).with_partitions(vec![partition]);
    OffsetForLeaderEpochResponse::default().with_throttle_time_ms(1).with_topics(vec![of_topic])
}

pub(super) fn init_producer_id(error: i16) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_throttle_time_ms(1)
        .with_error_code(error)
        .with_producer_id(ProducerId(1000))
        .with_producer_epoch(2)
}
