use clap::Args;
use store::MAX_PARTITIONS;

/// Making and removing topics, and what holds where a topic says nothing.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Topics")]
pub struct TopicsConfig {
    /// Whether Metadata requests may create topics [auto.create.topics.enable]
    #[arg(long, default_value_t = true, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub auto_create_topics: bool,

    /// Whether DeleteTopics is allowed [delete.topic.enable]
    #[arg(long, default_value_t = true, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub delete_topics: bool,

    /// Partitions of a topic whose creator names no number [num.partitions]
    #[arg(long, default_value_t = 2, value_name = "N",
          value_parser = clap::value_parser!(i32).range(1..=MAX_PARTITIONS as i64))]
    pub num_partitions: i32,

    /// Bytes of one record batch, as sent, for topics without max.message.bytes
    /// [message.max.bytes]
    #[arg(long, default_value_t = 1_048_588, value_name = "BYTES", value_parser = clap::value_parser!(i32).range(0..))]
    pub message_max_bytes: i32,
}
