//! The HTTP port: health, and groups that are stuck.

mod groups;
mod health;

use std::sync::Arc;

use axum::{Router, routing::get};
use tokio::net::TcpListener;
use tracing::error;

use crate::context::Shared;

/// Serves until the gateway drains.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let shutdown = shared.shutdown.clone();
    let draining = shutdown.clone();
    let router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/groups/stuck-ahead", get(groups::stuck_ahead))
        .with_state(shared);
    let served = axum::serve(listener, router).with_graceful_shutdown(async move { draining.draining().await });
    tokio::select! {
        ended = served => if let Err(error) = ended {
            error!(%error, "the HTTP port stopped");
        },
        () = shutdown.aborted() => {}
    }
}
