//! `serve`: runs until SIGTERM or SIGINT.

use gateway::{Gateway, Handle, StartError, config::Config};
use store::StoreError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::failure::Failure;

pub(crate) async fn run(config: Config) -> Result<(), Failure> {
    run_and_tell(config, |_| {}).await
}

/// Serves, and calls `tell` once the gateway listens. A signal that comes before ends the start; one
/// that comes later drains the gateway; a second one ends at once.
pub(crate) async fn run_and_tell(config: Config, tell: impl FnOnce(&Handle)) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let handle = tokio::select! {
        started = Gateway::start(config) => started.map_err(failure)?,
        _ = signals.next() => return Ok(()),
    };
    tell(&handle);
    let signal = signals.next().await;
    info!(signal, "finishing running requests");
    tokio::select! {
        _ = handle.shutdown() => Ok(()),
        signal = signals.next() => Err(Failure::failed(format!("ended by a second signal, {signal}"))),
    }
}

fn failure(error: StartError) -> Failure {
    match &error {
        StartError::Settings(_) | StartError::Database(StoreError::InvalidConfig(_)) => Failure::refused(error),
        StartError::Listen { .. } | StartError::OpenFiles(_) | StartError::Database(_) => Failure::failed(error),
    }
}

/// What ends the process in order.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::failed);
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
