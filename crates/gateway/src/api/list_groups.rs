//! ListGroups: the groups that this gateway coordinates; a client asks every broker.
//!
//! Groups that only have offsets, also those of pgQueue's clients, are `Empty`. Filters: states from
//! v4 on, types from v5 on, without regard to case (`GroupCoordinatorService.listGroups`).

use kafka_protocol::{
    messages::{GroupId, ListGroupsRequest, ListGroupsResponse, list_groups_response::ListedGroup},
    protocol::StrBytes,
};
use wire::ErrorCode;

use super::group_fields::text;
use crate::{context::RequestContext, error::ApiError};

/// First version with states.
const STATES: i16 = 4;
/// First version with types.
const TYPES: i16 = 5;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &ListGroupsRequest,
) -> Result<ListGroupsResponse, ApiError> {
    let states: Vec<String> = request.states_filter.iter().map(ToString::to_string).collect();
    let types: Vec<String> = request.types_filter.iter().map(ToString::to_string).collect();
    let all = ctx.shared.coordinator.list().await?;
    let groups = all.into_iter().filter(|group| group.passes(&states, &types)).map(|group| listed(version, group));
    Ok(ListGroupsResponse::default().with_groups(groups.collect()))
}

pub(super) fn error_response(_version: i16, _request: &ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse {
    ListGroupsResponse::default().with_error_code(code.code())
}

fn listed(version: i16, group: groups::ListedGroup) -> ListedGroup {
    let mut listed = ListedGroup::default()
        .with_group_id(GroupId(text(group.group_id)))
        .with_protocol_type(text(group.protocol_type));
    if version >= STATES {
        listed.group_state = StrBytes::from_static_str(group.state);
    }
    if version >= TYPES {
        listed.group_type = StrBytes::from_static_str(group.group_type.name());
    }
    listed
}
