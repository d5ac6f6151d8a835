use clap::Args;

use super::Contradiction;

/// What clients may use of this process.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitsConfig {
    /// Kafka connections at the same time [max.connections]
    #[arg(long, default_value_t = 10_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,

    /// Milliseconds without a byte in either direction until a connection is closed
    /// [connections.max.idle.ms]
    #[arg(long, default_value_t = 600_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub connection_idle_ms: u64,

    /// Requests of one connection that may wait for their answers; more are left in the socket
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_pipelined_requests: u32,

    /// Bytes of one Produce request [socket.request.max.bytes]
    #[arg(long, default_value_t = 104_857_600, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_024..=1_073_741_824))]
    pub max_request_bytes: u32,

    /// Bytes of one request of any other API; far smaller, because many small fields take up
    /// many times their bytes when decoded
    #[arg(long, default_value_t = 2_097_152, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_024..=104_857_600))]
    pub max_other_request_bytes: u32,

    /// Bytes of all Produce requests that are being read or answered, whole process
    #[arg(long, default_value_t = 268_435_456, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1_024..=1_099_511_627_776))]
    pub produce_memory_bytes: u64,

    /// Bytes of all other requests that are being read or answered, whole process
    #[arg(long, default_value_t = 67_108_864, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1_024..=1_099_511_627_776))]
    pub other_memory_bytes: u64,

    /// Bytes of all Fetch answers that are being made or written, whole process
    #[arg(long, default_value_t = 268_435_456, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(16_777_216..=1_099_511_627_776))]
    pub fetch_memory_bytes: u64,

    /// Bytes of records in one Fetch answer [fetch.max.bytes]
    #[arg(long, default_value_t = 57_671_680, value_name = "BYTES",
          value_parser = clap::value_parser!(i32).range(1_024..))]
    pub fetch_max_bytes: i32,
}

impl LimitsConfig {
    pub(super) fn check(&self) -> Result<(), Contradiction> {
        let (request, other) = (self.max_request_bytes, self.max_other_request_bytes);
        Contradiction::unless(other <= request, || {
            format!("--max-other-request-bytes {other} is more than --max-request-bytes {request}")
        })?;
        let memory = self.produce_memory_bytes;
        Contradiction::unless(memory >= u64::from(request), || {
            format!("--produce-memory-bytes {memory} cannot hold one request of --max-request-bytes {request}")
        })?;
        let memory = self.other_memory_bytes;
        Contradiction::unless(memory >= u64::from(other), || {
            format!("--other-memory-bytes {memory} cannot hold one request of --max-other-request-bytes {other}")
        })
    }
}
