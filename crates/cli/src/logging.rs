//! The log, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt};

use crate::{failure::Failure, settings::LogFormat};

pub(crate) fn start(format: LogFormat, filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| Failure::refused(format!("--log {filter:?}: {error}")))?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(Failure::failed)
}
