//! DescribeGroups: state, protocol and members of groups.
//!
//! An unknown group is `Dead`, from v6 on with GROUP_ID_NOT_FOUND (KIP-1043). A group that only has
//! offsets, also those of pgQueue's clients, is `Empty`.

use groups::DescribedMember;
use kafka_protocol::{
    messages::{
        DescribeGroupsRequest, DescribeGroupsResponse, GroupId,
        describe_groups_response::{DescribedGroup, DescribedGroupMember},
    },
    protocol::StrBytes,
};
use wire::ErrorCode;

use super::group_fields::text;
use crate::{
    acl::{self, ResourceType},
    context::RequestContext,
    error::{ApiError, group_error_or_none},
};

/// First version with instance ids.
const INSTANCE_IDS: i16 = 4;
/// First version with words for an error.
const MESSAGES: i16 = 6;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &DescribeGroupsRequest,
) -> Result<DescribeGroupsResponse, ApiError> {
    let mut groups = Vec::with_capacity(request.groups.len());
    for group_id in &request.groups {
        let group = match ctx.shared.coordinator.describe(version, group_id).await {
            Ok((group, error)) => described(version, group, group_error_or_none(error)),
            Err(error) => failed(version, group_id, ctx.code(&error)),
        };
        let is_asked = version >= 3 && request.include_authorized_operations;
        let operations = acl::authorized_operations(ResourceType::Group, is_asked);
        groups.push(group.with_authorized_operations(operations));
    }
    Ok(DescribeGroupsResponse::default().with_groups(groups))
}

pub(super) fn error_response(version: i16, request: &DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse {
    let groups = request.groups.iter().map(|group_id| failed(version, group_id, code)).collect();
    DescribeGroupsResponse::default().with_groups(groups)
}

fn described(version: i16, group: groups::DescribedGroup, code: ErrorCode) -> DescribedGroup {
    let member = |member: DescribedMember| {
        DescribedGroupMember::default()
            .with_member_id(text(member.member_id))
            .with_group_instance_id(member.instance_id.filter(|_| version >= INSTANCE_IDS).map(StrBytes::from_string))
            .with_client_id(text(member.client_id))
            .with_client_host(text(member.client_host))
            .with_member_metadata(member.metadata)
            .with_member_assignment(member.assignment)
    };
    DescribedGroup::default()
        .with_error_code(code.code())
        .with_error_message(message(version, &group.group_id, code))
        .with_group_id(GroupId(text(group.group_id)))
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_protocol_type(text(group.protocol_type))
        .with_protocol_data(text(group.protocol_data))
        .with_members(group.members.into_iter().map(member).collect())
}

fn failed(version: i16, group_id: &GroupId, code: ErrorCode) -> DescribedGroup {
    DescribedGroup::default()
        .with_error_code(code.code())
        .with_error_message(message(version, group_id, code))
        .with_group_id(group_id.clone())
}

/// Kafka's words for an unknown group, which its tools print.
fn message(version: i16, group_id: &str, code: ErrorCode) -> Option<StrBytes> {
    let message = match code {
        _ if version < MESSAGES => return None,
        ErrorCode::None => return None,
        ErrorCode::GroupIdNotFound => text(format!("Group {group_id} not found.")),
        _ => StrBytes::from_static_str(code.message()),
    };
    Some(message)
}
