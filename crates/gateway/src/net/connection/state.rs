//! What the two halves of a connection share.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use crate::{
    api::{Api, Reply},
    context::Shared,
    net::budget::{AnswerMemory, Arriving},
    session::Session,
};

pub(super) struct Connection {
    pub(super) session: Arc<Session>,
    pub(super) shared: Arc<Shared>,
    /// Cancelled when no further request will be read. Handlers that wait watch it.
    pub(super) stop: CancellationToken,
    pub(super) activity: Activity,
}

/// A request that was read, on its way to its answer.
pub(super) struct Pending {
    pub(super) api: &'static Api,
    /// Of the answer; for an unsupported ApiVersions request 0.
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    pub(super) reply: BoxFuture<'static, Reply>,
    /// Reserved for the request and for its answer until that has been written.
    pub(super) memory: (Arriving, AnswerMemory),
    /// Dropped then. The read half waits for it if the request may change the session.
    pub(super) answered: Option<oneshot::Sender<()>>,
}
