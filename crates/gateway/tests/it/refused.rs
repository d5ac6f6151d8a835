//! What the database's owner refuses: a trigger of his raises an error.

use kafka_protocol::messages::{CreateTopicsRequest, produce_request::PartitionProduceData};
use sqlx::AssertSqlSafe;
use testkit::{TestDatabase, TestGateway};

use crate::samples::{batch, creatable, produce};

const PARTITIONS: i32 = 11;
const CULPRIT: i32 = 5;

async fn refuse(database: &TestDatabase, table: &str, condition: &str) {
    let sql = format!(
        "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
           IF {condition} THEN RAISE EXCEPTION 'not on a Sunday'; END IF; RETURN NEW; END$$; \
         CREATE TRIGGER refuse BEFORE INSERT ON queue.metadata_queue_{table} \
           FOR EACH ROW EXECUTE FUNCTION refuse_{table}()"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut database.connection().await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_batch_with_the_refused_record_fails_and_its_producer_hears_why() {
    let gateway = TestGateway::start().await;
    refuse(gateway.database(), "message", "NEW.payload = 'refused'").await;
    let mut client = gateway.client().await;
    client.call(7, CreateTopicsRequest::default().with_topics(vec![creatable("t", PARTITIONS)])).await;

    // By COPY, then in one statement.
    for round in 0..2 {
        let mut request = produce("t", -1, batch(b""));
        let values = (0..PARTITIONS).map(|index| (index, if index == CULPRIT { &b"refused"[..] } else { b"good" }));
        request.topic_data[0].partition_data = values
            .map(|(index, value)| PartitionProduceData::default().with_index(index).with_records(Some(batch(value))))
            .collect();
        let answer = client.call(9, request).await;
        for partition in &answer.responses[0].partition_responses {
            if partition.index == CULPRIT {
                let message = partition.error_message.as_deref().unwrap_or_default();
                assert_eq!((partition.error_code, partition.base_offset), (87, -1), "INVALID_RECORD");
                assert!(message.contains("not on a Sunday"), "{message:?}");
            } else {
                assert_eq!((partition.error_code, partition.base_offset), (0, round), "partition {}", partition.index);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_a_trigger_refuses_is_against_a_policy() {
    let gateway = TestGateway::start().await;
    refuse(gateway.database(), "topic", "NEW.topic_name LIKE 'forbidden%'").await;
    let mut client = gateway.client().await;
    let topics = vec![creatable("forbidden", 1), creatable("allowed", 1)];
    let answer = client.call(7, CreateTopicsRequest::default().with_topics(topics)).await;
    assert_eq!((answer.topics[0].error_code, answer.topics[1].error_code), (44, 0));
    let message = answer.topics[0].error_message.as_deref().unwrap_or_default();
    assert!(message.contains("not on a Sunday"), "{message:?}");
}
