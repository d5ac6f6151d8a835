//! Bytes to Kafka messages and back: no I/O, no clock.

pub mod batch;
mod error_code;
mod topic_name;

pub use error_code::ErrorCode;
pub use topic_name::{InvalidTopicName, MAX_TOPIC_NAME_LEN, TopicName};
