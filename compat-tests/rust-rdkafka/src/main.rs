//! rdkafka, the Rust binding of librdkafka, for the verbs of `compat-tests/README.md`.

mod consume;
mod group;
mod produce;
mod record;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// In which a broker on this machine must have answered whatever was asked.
const PATIENCE: Duration = Duration::from_secs(60);

const CAPABILITIES: &str = r#"{"codecs": ["none", "gzip", "snappy", "lz4", "zstd"], "binary": true, "headers": true, "null_header_values": true, "duplicate_headers": true, "null_key": true, "empty_key": true, "null_value": true, "empty_value": true, "timestamps": true, "max_value_bytes": 921600, "group": {"assignors": ["range", "roundrobin", "cooperative-sticky"], "static": true, "rebalance_events": true}}"#;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["capabilities"] => {
            println!("{CAPABILITIES}");
            Ok(())
        }
        ["produce", bootstrap, topic, codec, file] => produce::run(bootstrap, topic, codec, file),
        ["consume", bootstrap, topic] => consume::run(bootstrap, topic),
        ["group", bootstrap, topic, group, assignor] => group::run(bootstrap, topic, group, assignor, None),
        ["group", bootstrap, topic, group, assignor, instance_id] => {
            group::run(bootstrap, topic, group, assignor, Some(instance_id))
        }
        _ => Err("usage: capabilities | produce BOOTSTRAP TOPIC CODEC FILE | consume BOOTSTRAP TOPIC \
             | group BOOTSTRAP TOPIC GROUP ASSIGNOR [INSTANCE_ID]"
            .into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
