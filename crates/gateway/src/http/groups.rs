//! What is wrong with consumer groups.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;

use crate::context::Shared;

/// A group whose committed offset is past the end of the log.
#[derive(Serialize)]
pub(super) struct StuckAhead {
    group: String,
    topic: String,
    partition: i32,
    offset: i64,
    /// So many records past the end, 1 or more.
    distance: i64,
}

/// Of the groups that this gateway coordinates, as of a look that is at most about a minute old.
pub(super) async fn stuck_ahead(State(shared): State<Arc<Shared>>) -> Json<Vec<StuckAhead>> {
    let stuck = shared.coordinator.stuck_ahead().into_iter().map(|stuck| StuckAhead {
        group: stuck.group,
        topic: stuck.topic,
        partition: stuck.partition.partition_id,
        offset: stuck.offset,
        distance: stuck.distance,
    });
    Json(stuck.collect())
}
