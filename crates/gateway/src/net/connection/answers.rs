//! The write half: waits for each answer in the order of the requests, and writes it.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc::{self, error::TryRecvError},
    time::timeout,
};
use tracing::{debug, error};

use super::state::{Connection, Pending};
use crate::api::Reply;

/// Time without progress after which a client that does not read its answers is given up.
const WRITE_STALL: Duration = Duration::from_secs(60);

pub(super) struct Answers<'c, W> {
    connection: &'c Connection,
    output: W,
    queue: mpsc::Receiver<Pending>,
}

/// Why no further answer is written.
struct Ended {
    reason: &'static str,
    /// A request that was accepted and is not answered.
    accepted: Option<BoxFuture<'static, ()>>,
}

impl From<&'static str> for Ended {
    fn from(reason: &'static str) -> Self {
        Self { reason, accepted: None }
    }
}

impl<'c, W: AsyncWrite + Unpin> Answers<'c, W> {
    pub(super) fn new(connection: &'c Connection, output: W, queue: mpsc::Receiver<Pending>) -> Self {
        Self { connection, output, queue }
    }

    /// Writes until nothing more is read, or the client takes no more.
    pub(super) async fn write(mut self) {
        let ended = self.write_in_order().await;
        self.connection.stop.cancel();
        let _ = timeout(WRITE_STALL, self.output.shutdown()).await;
        drop(self.output);
        // Nobody is left to be answered, but an accepted Produce request keeps its bytes until it
        // is stored, and so must keep its part of the budget.
        if let Err(Ended { reason, accepted }) = ended {
            debug!(peer = %self.connection.session.peer, reason, "closing connection");
            if let Some(accepted) = accepted {
                accepted.await;
            }
        }
        while let Some(pending) = self.queue.recv().await {
            if pending.api.is_two_phase() {
                pending.reply.await;
            }
        }
    }

    async fn write_in_order(&mut self) -> Result<(), Ended> {
        // One for the connection: every request waits for it.
        let mut cut_off = pin!(self.connection.shared.membership.cut_off());
        while let Some(pending) = next(&mut self.queue).await {
            let Pending { api, version, correlation_id, mut reply, memory, answered } = pending;
            let reply = tokio::select! {
                biased;
                reply = &mut reply => reply,
                () = &mut cut_off => {
                    let accepted = async move {
                        reply.await;
                        drop(memory);
                    };
                    let accepted = api.is_two_phase().then(|| accepted.boxed());
                    return Err(Ended { reason: "cut off from Postgres", accepted });
                }
            };
            let response = match reply {
                Reply::Respond(response) => response,
                Reply::Silent => continue,
                Reply::Disconnect(reason) => return Err(reason.into()),
            };
            let frame = wire::encode_response(api.key, version, correlation_id, &response).map_err(|error| {
                error!(api = api.name, version, %error, "a response does not fit its version; this is a bug");
                "response could not be encoded"
            })?;
            drop(response);
            self.write_frame(frame).await?;
            drop((memory, answered));
        }
        Ok(())
    }

    async fn write_frame(&mut self, mut frame: Bytes) -> Result<(), &'static str> {
        while !frame.is_empty() {
            match timeout(WRITE_STALL, self.output.write_buf(&mut frame)).await {
                Ok(Ok(written)) if written > 0 => self.connection.activity.touch(),
                Ok(_) => return Err("the client went away"),
                Err(_) => return Err("the client does not read its answers"),
            }
        }
        Ok(())
    }
}

/// The next of the queue, without asking to be woken for it: whatever the read half puts there, it
/// does just before this is polled. To wake a task that is running costs it a second turn, and
/// another thread is woken to look for work.
fn next(queue: &mut mpsc::Receiver<Pending>) -> impl Future<Output = Option<Pending>> {
    poll_fn(|_| match queue.try_recv() {
        Ok(pending) => Poll::Ready(Some(pending)),
        Err(TryRecvError::Empty) => Poll::Pending,
        Err(TryRecvError::Disconnected) => Poll::Ready(None),
    })
}
