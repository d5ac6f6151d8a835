use std::time::Duration;

use clap::Args;

use crate::record::PayloadCompression;

/// How records are written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Records")]
pub struct AppendConfig {
    /// Compression of stored payloads, in pgQueue's own format
    #[arg(long, default_value = "none", value_name = "CODEC")]
    pub payload_compression: PayloadCompression,

    /// Connections that write records, each with one transaction at a time
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub append_writers: u32,

    /// Bytes of records that one write transaction takes, unless a single batch is larger
    #[arg(long, default_value_t = 8_388_608, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1_024..))]
    pub append_transaction_bytes: u32,

    /// How long a transaction may take before the connection is given up and the producer is told to try again.
    #[arg(skip = Duration::from_secs(30))]
    pub append_timeout: Duration,
}
