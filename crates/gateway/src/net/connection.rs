//! One client connection: requests in, answers out in the same order.
//!
//! Two halves run in one task, the read half always before the write half. The read half takes
//! frames from the socket, decodes them and puts one pending answer per request on a bounded queue;
//! the write half takes them from the queue, waits for each and writes it. A Produce request is
//! handed to the store while it is read (two-phase, see [`crate::api`]), so a pipelined connection
//! can fill a group commit; every other request runs when its turn to be answered has come, because
//! Apache Kafka too runs one request of a connection at a time and clients rely on it.
//!
//! When reading ends, for whatever reason (the client went away, its bytes made no sense, the
//! gateway drains), waits such as a parked Fetch are cut short, what was accepted is finished and
//! answered if the socket still takes it, and the connection closes. It closes at once while the
//! gateway is cut off from Postgres and others are not (`membership`).

mod activity;
mod answers;
mod requests;
mod state;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, field, warn};

use self::{
    activity::Activity,
    answers::Answers,
    requests::{End, Requests},
    state::{Connection, Pending},
};
use crate::{context::Shared, session::Session};

/// Serves a client until the connection ends, over the two halves of whatever stream it came by.
pub(crate) async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    session: Session,
    shared: Arc<Shared>,
) {
    let connection = Connection {
        session: Arc::new(session),
        stop: CancellationToken::new(),
        activity: Activity::new(),
        shared: shared.clone(),
    };
    let (queue, pending) = mpsc::channel(shared.config.limits.max_pipelined_requests as usize);
    let halves = async {
        tokio::join!(
            biased;
            read(&connection, input, queue),
            Answers::new(&connection, output, pending).write(),
        );
    };
    tokio::select! {
        () = halves => {}
        () = shared.shutdown.aborted() => {}
    }
}

async fn read(connection: &Connection, input: impl AsyncRead + Unpin, queue: mpsc::Sender<Pending>) {
    let shared = &connection.shared;
    let idle = Duration::from_millis(shared.config.limits.connection_idle_ms);
    let end = tokio::select! {
        end = Requests::new(connection, input).read(queue) => end,
        () = connection.activity.idle_for(idle) => End::Idle,
        () = shared.shutdown.draining() => End::Draining,
        () = shared.membership.cut_off() => End::CutOff,
        () = connection.stop.cancelled() => End::Gone,
    };
    report(connection, end);
    connection.stop.cancel();
}

fn report(Connection { session, shared, .. }: &Connection, end: End) {
    let software = session.software().map(field::display);
    match end {
        End::Refused(reason) if shared.log_limit.allows(session.peer.ip()) => {
            warn!(peer = %session.peer, software, reason, "closing connection (one such line per peer and minute)");
        }
        End::Refused(reason) => debug!(peer = %session.peer, software, reason, "closing connection"),
        End::Idle => debug!(peer = %session.peer, software, "closing idle connection"),
        End::Gone | End::Draining | End::CutOff => {}
    }
}
