//! Leader epochs that requests name (KIP-320).

use store::StoreError;
use wire::ErrorCode;

use crate::context::RequestContext;

/// The epoch by which a request is judged that names these; −1 names none.
///
/// # Errors
/// If one of them is newer than what this gateway knows, and Postgres cannot be asked.
pub(super) async fn present(ctx: &RequestContext, named: impl Iterator<Item = i32>) -> Result<i32, StoreError> {
    ctx.shared.store.cluster.leader_epoch_since(named.max().unwrap_or(-1)).await
}

/// What is wrong with the epoch that a client takes for the present one; −1 asks for no check.
pub(super) fn error(named: i32, present: i32) -> Option<ErrorCode> {
    match named {
        -1 => None,
        named if named < present => Some(ErrorCode::FencedLeaderEpoch),
        named if named > present => Some(ErrorCode::UnknownLeaderEpoch),
        _ => None,
    }
}
