//! DeleteGroups: forgets groups without members, with their offsets.
//!
//! Works for groups of pgQueue's clients too, whose offsets are in the same table: NON_EMPTY_GROUP
//! is told for members of the Kafka protocol only.

use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, GroupId, delete_groups_response::DeletableGroupResult,
};
use tracing::info;
use wire::ErrorCode;

use crate::{context::RequestContext, error::ApiError};

pub(super) async fn handle(
    ctx: &RequestContext,
    _version: i16,
    request: &DeleteGroupsRequest,
) -> Result<DeleteGroupsResponse, ApiError> {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for group_id in &request.groups_names {
        let code = match ctx.shared.coordinator.delete(group_id).await {
            Ok(()) => {
                info!(group = group_id.as_str(), peer = %ctx.session.peer, principal = %ctx.session.principal, "group deleted");
                ErrorCode::None
            }
            Err(error) => ctx.code(&error),
        };
        results.push(result(group_id, code));
    }
    Ok(DeleteGroupsResponse::default().with_results(results))
}

pub(super) fn error_response(_version: i16, request: &DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse {
    let results = request.groups_names.iter().map(|group_id| result(group_id, code)).collect();
    DeleteGroupsResponse::default().with_results(results)
}

fn result(group_id: &GroupId, code: ErrorCode) -> DeletableGroupResult {
    DeletableGroupResult::default().with_group_id(group_id.clone()).with_error_code(code.code())
}
