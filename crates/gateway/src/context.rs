//! What a handler may see.

use std::sync::Arc;

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
pub(crate) struct Shared {
    /// What is served.
    pub(crate) apis: &'static [Api],
    pub(crate) config: ServerConfig,
    pub(crate) store: Store,
    pub(crate) shutdown: Shutdown,
    pub(crate) readiness: Readiness,
    pub(crate) frame_limits: FrameLimits,
    pub(crate) budgets: Budgets,
    pub(crate) log_limit: LogLimit,
    pub(crate) resolver: Resolver,
    pub(crate) membership: Arc<Membership>,
    pub(crate) coordinator: Arc<Coordinator>,
}

/// One request's surroundings.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
    pub(crate) api: &'static Api,
    /// Of this request's header: a client may send another one with each.
    pub(crate) client_id: Option<String>,
    /// Cancelled when the client is gone or the gateway drains: whoever waits answers at once with
    /// what there is.
    pub(crate) disconnected: CancellationToken,
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
