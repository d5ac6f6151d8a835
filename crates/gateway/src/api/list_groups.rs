//! ListGroups: the groups that this gateway coordinates; a client asks every broker.
//!
//! Groups that only have offsets, also those of pgQueue's clients, are `Empty`. Filters: states from
//! v4 on, types from v5 on, without regard to case (`GroupCoordinatorService.listGroups`).

use groups::State;
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
/// The one type there is.
const CLASSIC: &str = "classic";

pub async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &ListGroupsRequest,
) -> Result<ListGroupsResponse, ApiError> {
    let states: Vec<String> = request.states_filter.iter().map(ToString::to_string).collect();
    let types = &request.types_filter;
    let mut groups = Vec::new();
    if types.is_empty() || types.iter().any(|name| name.eq_ignore_ascii_case(CLASSIC)) {
        let all = ctx.shared.coordinator.list().await?;
        groups.extend(all.into_iter().filter(|(_, state, _)| state.passes(&states)));
    }
    let groups = groups.into_iter().map(|(id, state, protocol_type)| listed(version, id, state, protocol_type));
    Ok(ListGroupsResponse::default().with_groups(groups.collect()))
}

pub fn error_response(_version: i16, _request: &ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse {
    ListGroupsResponse::default().with_error_code(code.code())
}

fn listed(version: i16, id: String, state: State, protocol_type: String) -> ListedGroup {
    let mut group = ListedGroup::default().with_group_id(GroupId(text(id))).with_protocol_type(text(protocol_type));
    if version >= STATES {
        group.group_state = StrBytes::from_static_str(state.name());
    }
    if version >= TYPES {
        group.group_type = StrBytes::from_static_str(CLASSIC);
    }
    group
}
