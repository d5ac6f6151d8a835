//! `serve`: runs until SIGTERM or SIGINT.

use gateway::{Gateway, Handle, StartError, config::Config};
use store::StoreError;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use crate::Failure;

pub(crate) async fn run(config: Config) -> Result<(), Failure> {
    let handle = start(config).await?;
    until_signal(handle).await
}

pub(crate) async fn start(config: Config) -> Result<Handle, Failure> {
    Gateway::start(config).await.map_err(|error| match &error {
        StartError::Settings(_) | StartError::NoDatabase | StartError::Database(StoreError::InvalidConfig(_)) => {
            Failure::refused(error)
        }
        StartError::Listen { .. } | StartError::Database(_) => Failure::failed(error),
    })
}

/// Serves until a signal asks to end, then drains. A second signal ends at once, as its default
/// action does.
pub(crate) async fn until_signal(handle: Handle) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    info!(signal = name, "finishing running requests");
    tokio::select! {
        _ = handle.shutdown() => Ok(()),
        _ = terminate.recv() => Err(Failure::failed("ended by a second signal")),
        _ = interrupt.recv() => Err(Failure::failed("ended by a second signal")),
    }
}
