//! The read half: frames from the socket become requests on the queue.
//!
//! A request that may change the session is answered before the next one is read. So whatever a session is
//! asked about a request holds when the request is accepted, and not only when it has its turn.

use std::{
    fmt::Display,
    future::ready,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use tokio::{
    io::{AsyncRead, AsyncReadExt, BufReader},
    sync::{mpsc, oneshot},
    time::timeout,
};
use wire::{FrameHead, RequestHeader};

use super::state::{Connection, Pending};
use crate::{
    api::{self, Api, Kind, Reply, api_versions},
    context::RequestContext,
    net::budget::{AnswerMemory, Arriving},
};

/// Read buffer of a connection: most requests fit, a large body bypasses it.
const READ_BUFFER: usize = 8 * 1024;
/// Memory taken for a body before its bytes have arrived; the rest is taken as it fills, so that
/// claiming a large frame costs the client its bytes.
const FIRST_BODY_BYTES: usize = 64 * 1024;
/// Time that a body may take to arrive, plus a second per MiB: a slow sender holds a part of the
/// process-wide budget.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Why no further request is read.
pub(super) enum End {
    /// The client closed the connection, or it broke.
    Gone,
    /// Bytes that no Kafka client sends, or a request that is not served.
    Refused(String),
    Idle,
    Draining,
    /// Other gateways may do what this one can not.
    CutOff,
}

pub(super) struct Requests<'c, R> {
    connection: &'c Connection,
    input: BufReader<R>,
}

impl<'c, R: AsyncRead + Unpin> Requests<'c, R> {
    pub(super) fn new(connection: &'c Connection, input: R) -> Self {
        Self { connection, input: BufReader::with_capacity(READ_BUFFER, input) }
    }

    /// Reads until there is nothing more to read, or to be read.
    pub(super) async fn read(mut self, queue: mpsc::Sender<Pending>) -> End {
        loop {
            let Ok(slot) = queue.reserve().await else { return End::Gone };
            let mut request = match self.next().await {
                Ok(request) => request,
                Err(end) => return end,
            };
            if request.api.kind != Kind::Session {
                slot.send(request);
                continue;
            }
            let (answered, is_answered) = oneshot::channel();
            request.answered = Some(answered);
            slot.send(request);
            let _ = is_answered.await;
        }
    }

    async fn next(&mut self) -> Result<Pending, End> {
        let Connection { shared, activity, .. } = self.connection;
        let mut head = [0; 8];
        let mut size = [0; 4];
        self.input.read_exact(&mut size).await.map_err(|_| End::Gone)?;
        activity.touch();
        head[..4].copy_from_slice(&size);
        // Before more is waited for: a stranger may never send it.
        shared.frame_limits.check_size(size).map_err(|error| stranger(&head, &error))?;
        self.input.read_exact(&mut head[4..]).await.map_err(|_| End::Gone)?;
        let frame = FrameHead::parse(&head).map_err(|error| stranger(&head, &error))?;
        let size = shared.frame_limits.check(&frame).map_err(|error| stranger(&head, &error))?;
        let Some(api) = api::find(frame.api_key) else {
            return Err(stranger(&head, &format!("unknown api key {}", frame.api_key)));
        };
        let is_produce = api.key == ApiKey::Produce as i16;
        let mut arriving = if is_produce { shared.budgets.produce() } else { shared.budgets.other() };
        let body = self.body(size, &mut arriving).await?;
        self.accept(api, frame.api_version, body, arriving).await
    }

    async fn body(&mut self, size: usize, arriving: &mut Arriving) -> Result<Bytes, End> {
        // The client's time, without the waits for memory.
        let time = BODY_TIME + Duration::from_secs((size >> 20) as u64);
        let mut left = time;
        let mut body = BytesMut::new();
        let mut input = (&mut self.input).take(size as u64);
        while body.len() < size {
            if body.len() == body.capacity() {
                let more = body.len().max(FIRST_BODY_BYTES).min(size - body.len());
                arriving.grow(more).await;
                body.reserve(more);
            }
            let start = Instant::now();
            match timeout(left, input.read_buf(&mut body)).await {
                Ok(Ok(read)) if read > 0 => {}
                Ok(_) => return Err(End::Gone),
                Err(_) => return Err(End::Refused(format!("a request of {size} bytes took longer than {time:?}"))),
            }
            left = left.saturating_sub(start.elapsed());
            self.connection.activity.touch();
        }
        Ok(body.freeze())
    }

    /// Decodes a request and hands it on. For a two-phase API this waits until the request has its
    /// place in the store's queue, which is what keeps Produce in arrival order.
    async fn accept(
        &self,
        api: &'static Api,
        version: i16,
        mut body: Bytes,
        arriving: Arriving,
    ) -> Result<Pending, End> {
        let refuse = |reason: &dyn Display| End::Refused(format!("{} v{version}: {reason}", api.name));
        let header = RequestHeader::decode(api.key, version, &mut body).map_err(|error| refuse(&error))?;
        let correlation_id = header.correlation_id;
        let answer = AnswerMemory::default();
        let pending = |version, reply, answer| Pending {
            api,
            version,
            correlation_id,
            reply,
            memory: (arriving, answer),
            answered: None,
        };
        if !api.serves(version) {
            if api.key != ApiKey::ApiVersions as i16 {
                return Err(refuse(&"this version is not served"));
            }
            // KIP-511: the body of an unknown version is not parsed, the answer is a v0 one.
            let reply = Reply::Respond(api_versions::unsupported_version(api));
            return Ok(pending(0, Box::pin(ready(reply)), answer));
        }
        let request = wire::decode_request(api.key, version, body).map_err(|error| refuse(&error))?;
        let ctx = RequestContext {
            shared: self.connection.shared.clone(),
            session: self.connection.session.clone(),
            api,
            client_id: header.client_id,
            disconnected: self.connection.stop.clone(),
            answer_memory: answer.clone(),
        };
        match api::dispatch(ctx, version, request).await {
            Some(reply) => Ok(pending(version, reply, answer)),
            None => Err(refuse(&"this request is not served")),
        }
    }
}

/// Names the usual strangers; their bytes otherwise read as a senseless frame length.
fn stranger(head: &[u8; 8], error: &dyn Display) -> End {
    let hint = match head {
        [0x16, 0x03, ..] => " (this looks like TLS; the port speaks plain Kafka)",
        [b'G' | b'P' | b'H' | b'D' | b'O' | b'C', b'A'..=b'Z', b'A'..=b'Z' | b' ', ..] => {
            " (this looks like HTTP; the HTTP port is another one)"
        }
        _ => "",
    };
    End::Refused(format!("{error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_named() {
        let reason = |head: &[u8; 8]| match stranger(head, &"error") {
            End::Refused(reason) => reason,
            _ => unreachable!(),
        };
        assert!(reason(b"\x16\x03\x01\x02\x00\x01\x00\x01").contains("TLS"));
        assert!(reason(b"GET / HT").contains("HTTP"));
        assert!(reason(b"POST /a ").contains("HTTP"));
        assert_eq!(reason(b"\xff\xff\xff\xff\0\0\0\0"), "error");
    }
}
