//! Prints every record of a topic, up to the end offsets asked at the start.

use std::collections::HashMap;
use std::io::Write;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};

use crate::record::Record;
use crate::{Outcome, PATIENCE};

pub fn run(bootstrap: &str, topic: &str) -> Outcome {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        // The consumer needs one; with an assignment and without commits no group comes to be.
        .set("group.id", "compat-reader")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .create()?;
    let mut ends = HashMap::new();
    let mut assignment = TopicPartitionList::new();
    for partition in partitions(&consumer, topic)? {
        let (low, high) = consumer.fetch_watermarks(topic, partition, PATIENCE)?;
        if high > low {
            ends.insert(partition, high);
            assignment.add_partition_offset(topic, partition, Offset::Offset(low))?;
        }
    }
    consumer.assign(&assignment)?;
    let mut out = std::io::stdout().lock();
    while !ends.is_empty() {
        let message = consumer.poll(PATIENCE).ok_or_else(|| format!("no record, still waiting for {ends:?}"))??;
        let Some(&end) = ends.get(&message.partition()) else {
            continue;
        };
        writeln!(out, "{}", record_of(&message).to_line(message.offset()))?;
        if message.offset() + 1 >= end {
            ends.remove(&message.partition());
        }
    }
    Ok(())
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> Result<Vec<i32>, Box<dyn std::error::Error>> {
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let topic = metadata.topics().first().ok_or("the server knows nothing of the topic")?;
    if let Some(error) = topic.error() {
        return Err(format!("the topic cannot be read: {error:?}").into());
    }
    Ok(topic.partitions().iter().map(|partition| partition.id()).collect())
}

fn record_of(message: &BorrowedMessage<'_>) -> Record {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    Record {
        partition: message.partition(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect(),
        timestamp: message.timestamp().to_millis().unwrap_or(-1),
    }
}
