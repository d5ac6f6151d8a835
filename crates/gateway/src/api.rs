//! The list of APIs. Dispatch, the ApiVersions answer, the README's table and the test that calls
//! every API at every version are derived from it. CONTRIBUTING.md says how to add one.
//!
//! A **one-phase** handler is
//! `async fn handle(ctx: &RequestContext, version: i16, request: &XRequest) -> Result<XResponse, ApiError>`
//! and starts when all earlier requests of its connection have been answered. Beside it stands
//! `fn error_response(version: i16, request: &XRequest, code: ErrorCode) -> XResponse`,
//! the same answer with this error everywhere, so that any failure has the shape of the request's
//! own version.
//!
//! A handler that may change the **session** is the same; its request is answered before the next one is read.
//!
//! A **two-phase** handler is
//! `async fn accept(ctx: RequestContext, version: i16, request: XRequest) -> BoxFuture<'static, Reply>`:
//! the read half of the connection awaits the call itself, so requests are accepted in the order of
//! their arrival; the future it returns is awaited when the answer's turn has come. Dropping that
//! future must not undo what was accepted.

mod entry;
mod group_fields;
mod leader_epoch;

use futures::future::BoxFuture;
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};
use tracing::{debug, field, warn};
use wire::ErrorCode;

pub(crate) use self::entry::Reply;
pub use self::entry::{Api, Kind};
use crate::{context::RequestContext, error::ApiError};

/// The API with this key, if it is served.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key == key)
}

macro_rules! apis {
    ($(
        $name:ident: $module:ident, $kind:ident, $min:literal..=$max:literal $(served from $served_min:literal)?,
        $unavailable:ident;
    )*) => {
        /// Every API that is served, by key.
        pub const APIS: &[Api] = &[$(Api {
            key: ApiKey::$name as i16,
            name: stringify!($name),
            min: $min,
            max: $max,
            served_min: apis!(@last $min $($served_min)?),
            kind: Kind::$kind,
            unavailable: ErrorCode::$unavailable,
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
    (@last $first:literal) => { $first };
    (@last $first:literal $second:literal) => { $second };
    (@OnePhase $name:ident, $module:ident, $ctx:ident, $version:ident, $request:ident) => {
        Box::pin(async move {
            let response = match $module::handle(&$ctx, $version, &$request).await {
                Ok(response) => response,
                Err(error) => {
                    let code = $ctx.code(&error);
                    report(&$ctx, code, &error);
                    $module::error_response($version, &$request, code)
                }
            };
            Reply::Respond(ResponseKind::$name(response))
        })
    };
    (@Session $($request:tt)*) => { apis!(@OnePhase $($request)*) };
    (@TwoPhase $name:ident, $module:ident, $ctx:ident, $version:ident, $request:ident) => {
        $module::accept($ctx, $version, $request).await
    };
}

// Outside of the list, where rustfmt would not find their files.
pub(crate) mod api_versions;
mod create_topics;
mod delete_groups;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod fetch;
mod find_coordinator;
mod heartbeat;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod sync_group;

// Of an API: its module, when its requests start, the versions that are advertised and served, and the code on which
// its clients try again by themselves while Postgres is away.
apis! {
    // A producer keeps its batch and sends it again.
    Produce: produce, TwoPhase, 0..=11 served from 3, NotEnoughReplicas;
    // One of the few that Java takes for "try again" here and in ListOffsets (`FetchCollector`, `OffsetFetcherUtils`).
    Fetch: fetch, OnePhase, 4..=12, KafkaStorageError;
    ListOffsets: list_offsets, OnePhase, 1..=8, KafkaStorageError;
    // A topic without a leader makes every client refresh its metadata.
    Metadata: metadata, OnePhase, 0..=12, LeaderNotAvailable;
    // Clients look the coordinator up again, and find the same one when Postgres is back.
    OffsetCommit: offset_commit, OnePhase, 2..=9, CoordinatorNotAvailable;
    // Never "no offset", and never what Java takes for fatal here (`OffsetFetchResponseHandler`).
    OffsetFetch: offset_fetch, OnePhase, 1..=9, CoordinatorLoadInProgress;
    FindCoordinator: find_coordinator, OnePhase, 0..=6, CoordinatorNotAvailable;
    JoinGroup: join_group, OnePhase, 0..=9, CoordinatorNotAvailable;
    Heartbeat: heartbeat, OnePhase, 0..=4, CoordinatorNotAvailable;
    LeaveGroup: leave_group, OnePhase, 0..=5, CoordinatorNotAvailable;
    SyncGroup: sync_group, OnePhase, 0..=5, CoordinatorNotAvailable;
    DescribeGroups: describe_groups, OnePhase, 0..=6, CoordinatorNotAvailable;
    ListGroups: list_groups, OnePhase, 0..=5, CoordinatorNotAvailable;
    ApiVersions: api_versions, Session, 0..=4, RequestTimedOut;
    // An admin call that may or may not have been carried out has timed out.
    CreateTopics: create_topics, OnePhase, 2..=7, RequestTimedOut;
    DeleteTopics: delete_topics, OnePhase, 1..=6, RequestTimedOut;
    // Not COORDINATOR_NOT_AVAILABLE: an idempotent producer would look for the coordinator of a transactional id
    // that it does not have (Java: `TransactionManager`).
    InitProducerId: init_producer_id, OnePhase, 0..=5, CoordinatorLoadInProgress;
    OffsetForLeaderEpoch: offset_for_leader_epoch, OnePhase, 2..=4, KafkaStorageError;
    DescribeConfigs: describe_configs, OnePhase, 1..=4, RequestTimedOut;
    DeleteGroups: delete_groups, OnePhase, 0..=2, CoordinatorNotAvailable;
    OffsetDelete: offset_delete, OnePhase, 0..=0, CoordinatorNotAvailable;
    DescribeCluster: describe_cluster, OnePhase, 0..=2, RequestTimedOut;
}

/// Logs a failed request. What passes by itself is the database's story, told once by the readiness
/// check; a line per request would bury it.
fn report(ctx: &RequestContext, code: ErrorCode, error: &ApiError) {
    let (peer, client) = (ctx.session.peer, ctx.client_id.as_deref().unwrap_or_default());
    let software = ctx.session.software().map(field::display);
    let (api, is_retriable, code) = (ctx.api.name, code.is_retriable(), code.name());
    if is_retriable || matches!(error, ApiError::Code(_)) {
        debug!(%peer, client, software, api, code, %error, "request failed");
    } else {
        warn!(%peer, client, software, api, code, %error, "request failed");
    }
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
    fn clients_try_again_while_postgres_is_away() {
        for api in APIS {
            assert!(api.unavailable.is_retriable(), "{}: {}", api.name, api.unavailable.name());
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
