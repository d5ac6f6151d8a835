//! Accepts connections and gives each a task of its own. Nothing here waits for a request.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tracing::{debug, warn};

use super::{connection, keep_alive};
use crate::{
    context::Shared,
    session::{Listener, Session},
};

/// Pause after a failed accept (no free file descriptor, mostly): long enough not to spin, short
/// enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often trouble with new connections is reported while it lasts.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Connections that may wait to be accepted: after a restart all clients come back at once, and one
/// that finds no place tries again only a second later.
const BACKLOG: u32 = 4096;

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Unix only: elsewhere it lets another process take the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Runs until the gateway drains. The socket closes with it, so that clients are refused at once
/// and look for another broker.
pub(crate) async fn run(socket: TcpListener, listener: Arc<Listener>, shared: Arc<Shared>) {
    let mut accepting = Accepting {
        permits: Arc::new(Semaphore::new(shared.config.limits.max_connections as usize)),
        listener,
        shared,
        last_report: None,
        refused: 0,
    };
    let shutdown = accepting.shared.shutdown.clone();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, _)) => accepting.take(stream),
            Err(error) => {
                if accepting.may_report() {
                    warn!(%error, "cannot accept connections");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

struct Accepting {
    permits: Arc<Semaphore>,
    listener: Arc<Listener>,
    shared: Arc<Shared>,
    last_report: Option<Instant>,
    /// Since the last report.
    refused: u64,
}

impl Accepting {
    fn take(&mut self, stream: TcpStream) {
        if self.shared.membership.is_cut_off() {
            return; // closed, so that the client looks for another gateway
        }
        let Ok(peer) = stream.peer_addr() else {
            return; // gone already
        };
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            self.refuse(peer);
            return;
        };
        // Answers are small and awaited: they must not wait for the next one to fill a segment.
        if stream.set_nodelay(true).and_then(|()| keep_alive::set(&stream)).is_err() {
            return; // gone by now
        }
        debug!(%peer, listener = self.listener.name, "connected");
        let (session, shared) = (Session::new(peer, self.listener.clone()), self.shared.clone());
        self.shared.shutdown.spawn(async move {
            let (input, output) = stream.into_split();
            connection::serve(input, output, session, shared).await;
            drop(permit);
            debug!(%peer, "disconnected");
        });
    }

    /// The stream is dropped by the caller: the client sees a closed connection and tries again
    /// with its usual back-off, as with Apache Kafka's `max.connections`.
    fn refuse(&mut self, peer: std::net::SocketAddr) {
        self.refused += 1;
        if !self.may_report() {
            return;
        }
        let limit = self.shared.config.limits.max_connections;
        warn!(%peer, limit, refused = self.refused, "connection limit reached: refusing new connections (--max-connections)");
        self.refused = 0;
    }

    fn may_report(&mut self) -> bool {
        let due = self.last_report.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL);
        if due {
            self.last_report = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    /// Nobody accepts here, as when the gateway is busy; the system makes the connections all the same.
    #[tokio::test]
    async fn many_connections_may_wait() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for number in 0..400 {
            let connected = timeout(Duration::from_millis(900), TcpStream::connect(address)).await;
            waiting.push(connected.unwrap_or_else(|_| panic!("connection {number} found no place")).unwrap());
        }
    }
}
