//! The list of APIs. Dispatch, the ApiVersions answer, the README's table and the test that calls
//! every API at every version are derived from it.
//!
//! To add an API: write `api/<name>.rs`, add one line to [`apis!`] below, run
//! `pgqueue-gateway api-table` for the README.
//!
//! A **one-phase** handler is
//! `pub async fn handle(ctx: &RequestContext, version: i16, request: &XRequest) -> Result<XResponse, ApiError>`
//! and starts when all earlier requests of its connection have been answered. Beside it stands
//! `pub fn error_response(version: i16, request: &XRequest, code: ErrorCode) -> XResponse`,
//! the same answer with this error everywhere, so that any failure has the shape of the request's
//! own version.
//!
//! A **two-phase** handler is
//! `pub async fn accept(ctx: RequestContext, version: i16, request: XRequest) -> BoxFuture<'static, Reply>`:
//! the read half of the connection awaits the call itself, so requests are accepted in the order of
//! their arrival; the future it returns is awaited when the answer's turn has come. Dropping that
//! future must not undo what was accepted.

pub mod api_versions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod fetch;
pub mod find_coordinator;
mod group_fields;
pub mod heartbeat;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;

use futures::future::BoxFuture;
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};

use crate::{context::RequestContext, error::report};

/// Key of Produce, which has a frame limit and a byte budget of its own.
pub const PRODUCE: i16 = ApiKey::Produce as i16;
/// Key of ApiVersions, the one API that answers a version it does not know.
pub const API_VERSIONS: i16 = ApiKey::ApiVersions as i16;

/// One API of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub key: i16,
    pub name: &'static str,
    /// Lowest version that ApiVersions names.
    pub min: i16,
    /// Highest version, advertised and served.
    pub max: i16,
    /// Lowest version that is answered; a request below it closes the connection.
    pub served_min: i16,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    OnePhase,
    TwoPhase,
}

/// What becomes of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once per request, nearly always a response")]
pub enum Reply {
    Respond(ResponseKind),
    /// Produce with acks=0: the client expects no answer, and one would shift all later ones.
    Silent,
    /// Closes the connection: how Apache Kafka tells a producer with acks=0 of an error.
    Disconnect(&'static str),
}

impl Api {
    pub fn serves(&self, version: i16) -> bool {
        (self.served_min..=self.max).contains(&version)
    }

    pub fn is_two_phase(&self) -> bool {
        self.kind == Kind::TwoPhase
    }
}

/// The API with this key, if it is served.
pub fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key == key)
}

macro_rules! apis {
    ($($name:ident, $module:ident, $kind:ident, advertised $min:literal..=$max:literal, served from $served_min:literal;)*) => {
        /// Every API that is served, by key.
        pub const APIS: &[Api] = &[$(Api {
            key: ApiKey::$name as i16,
            name: stringify!($name),
            min: $min,
            max: $max,
            served_min: $served_min,
            kind: Kind::$kind,
        }),*];

        /// Starts a request. `None` if its API is not in the list.
        pub(crate) async fn dispatch(
            ctx: RequestContext,
            version: i16,
            request: RequestKind,
        ) -> Option<BoxFuture<'static, Reply>> {
            match request {
                $(RequestKind::$name(request) => Some(apis!(@$kind $name, $module, ctx, version, request)),)*
                _ => None,
            }
        }
    };
    (@OnePhase $name:ident, $module:ident, $ctx:ident, $version:ident, $request:ident) => {
        Box::pin(async move {
            let response = match $module::handle(&$ctx, $version, &$request).await {
                Ok(response) => response,
                Err(error) => {
                    let code = error.code(ApiKey::$name);
                    report(&$ctx, stringify!($name), code, &error);
                    $module::error_response($version, &$request, code)
                }
            };
            Reply::Respond(ResponseKind::$name(response))
        })
    };
    (@TwoPhase $name:ident, $module:ident, $ctx:ident, $version:ident, $request:ident) => {
        $module::accept($ctx, $version, $request).await
    };
}

apis! {
    Produce, produce, TwoPhase, advertised 0..=11, served from 3;
    Fetch, fetch, OnePhase, advertised 4..=12, served from 4;
    ListOffsets, list_offsets, OnePhase, advertised 1..=8, served from 1;
    Metadata, metadata, OnePhase, advertised 0..=12, served from 0;
    OffsetCommit, offset_commit, OnePhase, advertised 2..=9, served from 2;
    OffsetFetch, offset_fetch, OnePhase, advertised 1..=9, served from 1;
    FindCoordinator, find_coordinator, OnePhase, advertised 0..=6, served from 0;
    JoinGroup, join_group, OnePhase, advertised 0..=9, served from 0;
    Heartbeat, heartbeat, OnePhase, advertised 0..=4, served from 0;
    LeaveGroup, leave_group, OnePhase, advertised 0..=5, served from 0;
    SyncGroup, sync_group, OnePhase, advertised 0..=5, served from 0;
    DescribeGroups, describe_groups, OnePhase, advertised 0..=6, served from 0;
    ListGroups, list_groups, OnePhase, advertised 0..=5, served from 0;
    ApiVersions, api_versions, OnePhase, advertised 0..=4, served from 0;
    CreateTopics, create_topics, OnePhase, advertised 2..=7, served from 2;
    DeleteTopics, delete_topics, OnePhase, advertised 1..=6, served from 1;
    InitProducerId, init_producer_id, OnePhase, advertised 0..=5, served from 0;
    OffsetForLeaderEpoch, offset_for_leader_epoch, OnePhase, advertised 2..=4, served from 2;
    DescribeConfigs, describe_configs, OnePhase, advertised 1..=4, served from 1;
    DeleteGroups, delete_groups, OnePhase, advertised 0..=2, served from 0;
    OffsetDelete, offset_delete, OnePhase, advertised 0..=0, served from 0;
    DescribeCluster, describe_cluster, OnePhase, advertised 0..=2, served from 0;
}

/// The README's table of APIs, in Markdown.
pub fn markdown_table() -> String {
    let mut table = String::from("| Key | API | Versions | |\n|---:|---|---|---|\n");
    for api in APIS {
        let note = if api.served_min > api.min {
            format!(" served from version {}; lower ones close the connection, as in Apache Kafka 4", api.served_min)
        } else {
            String::new()
        };
        table.push_str(&format!("| {} | {} | {}–{} |{note} |\n", api.key, api.name, api.min, api.max));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_its_ranges_are_sane() {
        assert!(APIS.windows(2).all(|pair| pair[0].key < pair[1].key));
        for api in APIS {
            assert!(0 <= api.min && api.min <= api.served_min && api.served_min <= api.max, "{}", api.name);
            let codec = ApiKey::try_from(api.key).unwrap().valid_versions();
            assert!(codec.min <= api.served_min && api.max <= codec.max, "{} is wider than its codec", api.name);
        }
    }

    #[test]
    fn the_readme_has_the_table() {
        let readme = include_str!("../../../README.md");
        let table = readme.split("<!-- apis:").nth(1).and_then(|rest| rest.split_once("-->\n"));
        let table = table.and_then(|(_, rest)| rest.split_once("<!-- /apis -->")).unwrap().0;
        assert_eq!(table, markdown_table(), "put the output of `pgqueue-gateway api-table` into README.md");
    }
}
