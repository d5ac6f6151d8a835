//! Liveness and readiness, as probes of Kubernetes and load balancers ask for them.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;

use crate::context::Shared;

#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
    /// Why the gateway is not ready, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// 200 as long as the process answers at all; a restart would not bring Postgres back.
pub(super) async fn live() -> Json<Health> {
    Json(Health { status: "live", reason: None })
}

/// 200 while Kafka requests can be served, else 503 with the reason.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, Json<Health>) {
    let reason =
        if shared.shutdown.is_draining() { Some("shutting down".to_owned()) } else { shared.readiness.reason() };
    match reason {
        None => (StatusCode::OK, Json(Health { status: "ready", reason: None })),
        reason => (StatusCode::SERVICE_UNAVAILABLE, Json(Health { status: "not ready", reason })),
    }
}
