//! What a handler may see.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use store::{Store, StoreError, TopicRef};
use tokio_util::sync::CancellationToken;
use wire::{ErrorCode, FrameLimits};

use crate::{
    acl::Operation,
    api::Api,
    config::ServerConfig,
    coordinator::Coordinator,
    error::{ApiError, store_error_code},
    membership::Membership,
    net::{
        budget::{AnswerMemory, Budgets},
        log_limit::LogLimit,
        shutdown::Shutdown,
    },
    readiness::Readiness,
    resolve::{Resolved, Resolver},
    session::Session,
};

/// What all requests share.
#[derive(Debug)]
pub struct Shared {
    /// What is served.
    pub apis: &'static [Api],
    pub config: ServerConfig,
    pub store: Store,
    pub shutdown: Shutdown,
    pub readiness: Readiness,
    pub clock: Clock,
    pub(crate) frame_limits: FrameLimits,
    pub(crate) budgets: Budgets,
    pub(crate) log_limit: LogLimit,
    pub(crate) resolver: Resolver,
    pub(crate) membership: Arc<Membership>,
    pub(crate) coordinator: Arc<Coordinator>,
}

/// One request's surroundings.
#[derive(Debug, Clone)]
pub struct RequestContext {
    pub shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
    pub api: &'static Api,
    /// Of this request's header: a client may send another one with each.
    pub client_id: Option<String>,
    /// Cancelled when the client is gone or the gateway drains: whoever waits answers at once with
    /// what there is.
    pub disconnected: CancellationToken,
    /// Memory of the answer, given back when it has been written.
    pub(crate) answer_memory: AnswerMemory,
}

impl RequestContext {
    /// The topics, one for each asked for and in their order; see [`Resolver::resolve`].
    ///
    /// # Errors
    /// If Postgres cannot be asked.
    pub(crate) async fn resolve<'t>(
        &self,
        operation: Operation,
        topics: impl Iterator<Item = TopicRef<'t>>,
    ) -> Result<Vec<Resolved>, StoreError> {
        self.shared.resolver.resolve(operation, &topics.collect::<Vec<_>>()).await
    }

    /// The code that the client gets.
    pub(crate) fn code(&self, error: &ApiError) -> ErrorCode {
        error.code(self.api.unavailable)
    }

    /// The code that the client gets for an error of the store.
    pub(crate) fn store_code(&self, error: &StoreError) -> ErrorCode {
        store_error_code(error, self.api.unavailable)
    }
}

impl Shared {
    /// KIP-320: the leader epoch by which a request is judged that names these; −1 names none.
    ///
    /// # Errors
    /// If one of them is newer than what this gateway knows, and Postgres cannot be asked.
    pub(crate) async fn leader_epoch(&self, named: impl Iterator<Item = i32>) -> Result<i32, StoreError> {
        self.store.cluster.leader_epoch_since(named.max().unwrap_or(-1)).await
    }

    /// Milliseconds since 1970, UTC.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// What is wrong with the leader epoch that a client takes for the present one; −1 asks for no check.
pub(crate) fn epoch_error(named: i32, present: i32) -> Option<ErrorCode> {
    match named {
        -1 => None,
        named if named < present => Some(ErrorCode::FencedLeaderEpoch),
        named if named > present => Some(ErrorCode::UnknownLeaderEpoch),
        _ => None,
    }
}

/// The wall clock, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub fn system() -> Self {
        Self::new(SystemTime::now)
    }

    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}
