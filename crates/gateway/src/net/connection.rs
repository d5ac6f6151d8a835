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
//! gateway is cut off from Postgres and others are not (`coordinator::tenure`).

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use futures::{FutureExt, future::BoxFuture};
use kafka_protocol::messages::ApiKey;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc::{self, error::TryRecvError},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};
use wire::{FrameHead, RequestHeader};

use super::{
    budget::{AnswerMemory, Arriving},
    keep_alive,
};
use crate::{
    api::{self, Api, Reply, api_versions},
    context::{RequestContext, Shared},
};

/// Read buffer of a connection: most requests fit, a large body bypasses it.
const READ_BUFFER: usize = 8 * 1024;
/// Memory taken for a body before its bytes have arrived; the rest is taken as it fills, so that
/// claiming a large frame costs the client its bytes.
const FIRST_BODY_BYTES: usize = 64 * 1024;
/// Time that a body may take to arrive, plus a second per MiB: a slow sender holds a part of the
/// process-wide budget.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Time without progress after which a client that does not read its answers is given up.
const WRITE_STALL: Duration = Duration::from_secs(60);

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let connection =
        Connection { peer, stop: CancellationToken::new(), activity: Activity::new(), shared: shared.clone() };
    tokio::select! {
        () = connection.run(stream) => {}
        () = shared.shutdown.aborted() => {}
    }
}

struct Connection {
    peer: SocketAddr,
    shared: Arc<Shared>,
    /// Cancelled when no further request will be read. Handlers that wait watch it.
    stop: CancellationToken,
    activity: Activity,
}

/// A request that was read, on its way to its answer.
struct Pending {
    api: &'static Api,
    /// Of the answer; for an unsupported ApiVersions request 0.
    version: i16,
    correlation_id: i32,
    reply: BoxFuture<'static, Reply>,
    /// Held until the answer has been written.
    request: Arriving,
    /// The same of the answer.
    memory: AnswerMemory,
}

/// Why no further request is read.
enum End {
    /// The client closed the connection, or it broke.
    Gone,
    /// Bytes that no Kafka client sends, or a request that is not served.
    Refused(String),
    Idle,
    Draining,
    /// Other gateways may do what this one can not.
    CutOff,
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

impl Connection {
    async fn run(&self, stream: TcpStream) {
        // Answers are small and awaited: they must not wait for the next one to fill a segment.
        if stream.set_nodelay(true).and_then(|()| keep_alive::set(&stream)).is_err() {
            return;
        }
        let (read, write) = stream.into_split();
        let (queue, answers) = mpsc::channel(self.shared.config.limits.max_pipelined_requests as usize);
        let reading = async {
            let idle = Duration::from_millis(self.shared.config.limits.connection_idle_ms);
            let end = tokio::select! {
                end = self.read_requests(read, queue) => end,
                () = self.activity.idle_for(idle) => End::Idle,
                () = self.shared.shutdown.draining() => End::Draining,
                () = self.shared.coordinator.cut_off() => End::CutOff,
                () = self.stop.cancelled() => End::Gone,
            };
            self.report(end);
            self.stop.cancel();
        };
        tokio::join!(biased; reading, self.write_answers(write, answers));
    }

    async fn read_requests(&self, read: OwnedReadHalf, queue: mpsc::Sender<Pending>) -> End {
        let mut input = BufReader::with_capacity(READ_BUFFER, read);
        loop {
            let Ok(slot) = queue.reserve().await else {
                return End::Gone;
            };
            match self.read_request(&mut input).await {
                Ok(pending) => slot.send(pending),
                Err(end) => return end,
            }
        }
    }

    async fn read_request(&self, input: &mut BufReader<OwnedReadHalf>) -> Result<Pending, End> {
        let mut head = [0; 8];
        let mut size = [0; 4];
        input.read_exact(&mut size).await.map_err(|_| End::Gone)?;
        self.activity.touch();
        head[..4].copy_from_slice(&size);
        // Before more is waited for: a stranger may never send it.
        self.shared.frame_limits.check_size(size).map_err(|error| refusal(&head, &error))?;
        input.read_exact(&mut head[4..]).await.map_err(|_| End::Gone)?;
        let frame = FrameHead::parse(&head).map_err(|error| refusal(&head, &error))?;
        let size = self.shared.frame_limits.check(&frame).map_err(|error| refusal(&head, &error))?;
        let Some(api) = api::find(frame.api_key) else {
            return Err(refusal(&head, &format!("unknown api key {}", frame.api_key)));
        };
        let budgets = &self.shared.budgets;
        let mut request = if api.key == ApiKey::Produce as i16 { budgets.produce() } else { budgets.other() };
        let body = self.read_body(input, size, &mut request).await?;
        self.start(api, frame.api_version, body, request).await
    }

    async fn read_body(
        &self,
        input: &mut BufReader<OwnedReadHalf>,
        size: usize,
        request: &mut Arriving,
    ) -> Result<Bytes, End> {
        // The client's time, without the waits for memory.
        let time = BODY_TIME + Duration::from_secs((size >> 20) as u64);
        let mut left = time;
        let mut body = BytesMut::new();
        let mut input = input.take(size as u64);
        while body.len() < size {
            if body.len() == body.capacity() {
                let more = body.len().max(FIRST_BODY_BYTES).min(size - body.len());
                request.grow(more).await;
                body.reserve(more);
            }
            let start = Instant::now();
            match timeout(left, input.read_buf(&mut body)).await {
                Ok(Ok(read)) if read > 0 => {}
                Ok(_) => return Err(End::Gone),
                Err(_) => return Err(End::Refused(format!("a request of {size} bytes took longer than {time:?}"))),
            }
            left = left.saturating_sub(start.elapsed());
            self.activity.touch();
        }
        Ok(body.freeze())
    }

    /// Decodes a request and hands it on. For a two-phase API this waits until the request has its
    /// place in the store's queue, which is what keeps Produce in arrival order.
    async fn start(&self, api: &'static Api, version: i16, mut body: Bytes, arrived: Arriving) -> Result<Pending, End> {
        let refuse = |reason: &dyn std::fmt::Display| End::Refused(format!("{} v{version}: {reason}", api.name));
        let header = RequestHeader::decode(api.key, version, &mut body).map_err(|error| refuse(&error))?;
        let correlation_id = header.correlation_id;
        if !api.serves(version) {
            if api.key != ApiKey::ApiVersions as i16 {
                return Err(refuse(&"this version is not served"));
            }
            // KIP-511: the body of an unknown version is not parsed, the answer is a v0 one.
            let reply = Box::pin(std::future::ready(Reply::Respond(api_versions::unsupported_version(api))));
            let memory = AnswerMemory::default();
            return Ok(Pending { api, version: 0, correlation_id, reply, request: arrived, memory });
        }
        let request = wire::decode_request(api.key, version, body).map_err(|error| refuse(&error))?;
        let ctx = RequestContext {
            shared: self.shared.clone(),
            api,
            peer: self.peer,
            client_id: header.client_id,
            disconnected: self.stop.clone(),
            answer_memory: AnswerMemory::default(),
        };
        let memory = ctx.answer_memory.clone();
        match api::dispatch(ctx, version, request).await {
            Some(reply) => Ok(Pending { api, version, correlation_id, reply, request: arrived, memory }),
            None => Err(refuse(&"this request is not served")),
        }
    }

    async fn write_answers(&self, mut write: OwnedWriteHalf, mut answers: mpsc::Receiver<Pending>) {
        let ended = self.answer_in_order(&mut write, &mut answers).await;
        self.stop.cancel();
        drop(write);
        // Nobody is left to be answered, but an accepted Produce request keeps its bytes until it
        // is stored, and so must keep its part of the budget.
        if let Err(Ended { reason, accepted }) = ended {
            debug!(peer = %self.peer, reason, "closing connection");
            if let Some(accepted) = accepted {
                accepted.await;
            }
        }
        while let Some(pending) = answers.recv().await {
            if pending.api.is_two_phase() {
                pending.reply.await;
            }
        }
    }

    async fn answer_in_order(
        &self,
        write: &mut OwnedWriteHalf,
        answers: &mut mpsc::Receiver<Pending>,
    ) -> Result<(), Ended> {
        // One for the connection: every request waits for it.
        let mut cut_off = pin!(self.shared.coordinator.cut_off());
        while let Some(Pending { api, version, correlation_id, mut reply, request, memory }) = next(answers).await {
            let reply = tokio::select! {
                biased;
                reply = &mut reply => reply,
                () = &mut cut_off => {
                    let accepted = async move {
                        reply.await;
                        drop((request, memory));
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
            self.write_frame(write, frame).await?;
            drop((request, memory));
        }
        Ok(())
    }

    async fn write_frame(&self, write: &mut OwnedWriteHalf, mut frame: Bytes) -> Result<(), &'static str> {
        while !frame.is_empty() {
            match timeout(WRITE_STALL, write.write_buf(&mut frame)).await {
                Ok(Ok(written)) if written > 0 => self.activity.touch(),
                Ok(_) => return Err("the client went away"),
                Err(_) => return Err("the client does not read its answers"),
            }
        }
        Ok(())
    }

    fn report(&self, end: End) {
        match end {
            End::Refused(reason) if self.shared.log_limit.allows(self.peer.ip()) => {
                warn!(peer = %self.peer, reason, "closing connection (one such line per peer and minute)");
            }
            End::Refused(reason) => debug!(peer = %self.peer, reason, "closing connection"),
            End::Idle => debug!(peer = %self.peer, "closing idle connection"),
            End::Gone | End::Draining | End::CutOff => {}
        }
    }
}

/// The next of the queue, without asking to be woken for it: whatever the read half puts there, it
/// does just before this is polled. To wake a task that is running costs it a second turn, and
/// another thread is woken to look for work.
fn next(answers: &mut mpsc::Receiver<Pending>) -> impl Future<Output = Option<Pending>> {
    poll_fn(|_| match answers.try_recv() {
        Ok(pending) => Poll::Ready(Some(pending)),
        Err(TryRecvError::Empty) => Poll::Pending,
        Err(TryRecvError::Disconnected) => Poll::Ready(None),
    })
}

/// Names the usual strangers; their bytes otherwise read as a senseless frame length.
fn refusal(head: &[u8; 8], error: &dyn std::fmt::Display) -> End {
    let hint = match head {
        [0x16, 0x03, ..] => " (this looks like TLS; the port speaks plain Kafka)",
        [b'G' | b'P' | b'H' | b'D' | b'O' | b'C', b'A'..=b'Z', b'A'..=b'Z' | b' ', ..] => {
            " (this looks like HTTP; the HTTP port is another one)"
        }
        _ => "",
    };
    End::Refused(format!("{error}{hint}"))
}

/// When bytes last moved, for the idle time-out.
struct Activity {
    start: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self { start: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    fn touch(&self) {
        self.last_ms.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Resolves when nothing has moved for `limit`. A request that is still being answered does
    /// not count as activity: that is Apache Kafka's rule for `connections.max.idle.ms` too.
    async fn idle_for(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let idle = self.start.elapsed().saturating_sub(last);
            if idle >= limit {
                return;
            }
            sleep(limit - idle).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_named() {
        let reason = |head: &[u8; 8]| match refusal(head, &"error") {
            End::Refused(reason) => reason,
            _ => unreachable!(),
        };
        assert!(reason(b"\x16\x03\x01\x02\x00\x01\x00\x01").contains("TLS"));
        assert!(reason(b"GET / HT").contains("HTTP"));
        assert!(reason(b"POST /a ").contains("HTTP"));
        assert_eq!(reason(b"\xff\xff\xff\xff\0\0\0\0"), "error");
    }

    #[tokio::test]
    async fn idle_time_counts_from_the_last_byte() {
        let activity = Activity::new();
        let limit = Duration::from_millis(200);
        sleep(limit / 2).await;
        activity.touch();
        let touched = Instant::now();
        activity.idle_for(limit).await;
        assert!(touched.elapsed() >= limit - Duration::from_millis(1));
    }
}
