//! Topics: the rows that pgQueue clients, SQL and the gateway share.

mod cache;
mod config;
mod delete;
mod find;
mod handle;
mod statements;
mod topic;
mod topics;

pub use config::TopicConfig;
pub use handle::Catalog;
pub use topic::{MAX_PARTITIONS, NewTopic, Topic, TopicRef};
