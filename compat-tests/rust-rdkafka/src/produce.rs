//! Sends a file of records and waits for every acknowledgement.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use crate::record::Record;
use crate::{Outcome, PATIENCE};

/// The records that were refused, as the delivery reports tell.
#[derive(Default)]
struct Refused(Mutex<Vec<KafkaError>>);

impl ClientContext for Refused {}

impl ProducerContext for Refused {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let (Err((error, _)), Ok(mut refused)) = (result, self.0.lock()) {
            refused.push(error.clone());
        }
    }
}

pub fn run(bootstrap: &str, topic: &str, codec: &str, file: &str) -> Outcome {
    let producer: ThreadedProducer<Refused> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("compression.type", codec)
        // Long enough for records to gather in batches.
        .set("linger.ms", "50")
        .set("message.timeout.ms", PATIENCE.as_millis().to_string())
        .create_with_context(Refused::default())?;
    for line in BufReader::new(File::open(file)?).lines() {
        let line = line?;
        let record = Record::parse(&line).ok_or_else(|| format!("not a record: {line:.200}"))?;
        send(&producer, topic, &record)?;
    }
    producer.flush(PATIENCE)?;
    match producer.context().0.lock() {
        Ok(refused) if refused.is_empty() => Ok(()),
        Ok(refused) => Err(format!("{} records refused: {:?}", refused.len(), refused.first()).into()),
        Err(_) => Err("the thread of the producer panicked".into()),
    }
}

fn send(producer: &ThreadedProducer<Refused>, topic: &str, record: &Record) -> Outcome {
    let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
    for (key, value) in &record.headers {
        headers = headers.insert(Header { key, value: value.as_ref() });
    }
    let mut message: BaseRecord<'_, [u8], [u8]> =
        BaseRecord::to(topic).partition(record.partition).timestamp(record.timestamp).headers(headers);
    message.key = record.key.as_deref();
    message.payload = record.value.as_deref();
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), returned)) => {
                producer.flush(PATIENCE)?;
                message = returned;
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}
