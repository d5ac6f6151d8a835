//! A Kafka client that does exactly what it is told: any request at any version, any bytes, any
//! order. Panics where a test should fail.

use std::{io, net::SocketAddr, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::{
    messages::{RequestKind, ResponseHeader, ResponseKind},
    protocol::{Decodable, HeaderVersion, Request},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// No answer of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection to a gateway.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    next_correlation_id: i32,
}

/// A request that was sent and whose answer has not been read.
#[must_use = "read the answer"]
#[derive(Debug)]
pub struct Sent<R> {
    correlation_id: i32,
    version: i16,
    request: std::marker::PhantomData<R>,
}

impl Client {
    /// # Panics
    /// If nothing listens there.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the gateway accepts connections");
        stream.set_nodelay(true).expect("a TCP option");
        Self { stream, next_correlation_id: 1 }
    }

    /// Its own end of the connection.
    ///
    /// # Panics
    /// If the connection is closed.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.stream.local_addr().expect("an open connection")
    }

    /// Sends a request and reads its answer.
    ///
    /// # Panics
    /// If the connection closes, or the answer is another one's or does not decode.
    pub async fn call<R: Request + Into<RequestKind>>(&mut self, version: i16, request: R) -> R::Response {
        let sent = self.send(version, request).await;
        self.receive(sent).await
    }

    /// The same of a gateway that may close the connection; `None`: it has.
    ///
    /// # Panics
    /// If the answer is another one's or does not decode, or none comes.
    pub async fn try_call<R: Request + Into<RequestKind>>(&mut self, version: i16, request: R) -> Option<R::Response> {
        let sent = self.try_send(version, request).await?;
        self.try_receive(sent).await
    }

    /// Sends a request without waiting for its answer.
    ///
    /// # Panics
    /// If the request does not fit its version or the connection is closed.
    pub async fn send<R: Request + Into<RequestKind>>(&mut self, version: i16, request: R) -> Sent<R> {
        self.try_send(version, request).await.expect("an open connection")
    }

    async fn try_send<R: Request + Into<RequestKind>>(&mut self, version: i16, request: R) -> Option<Sent<R>> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let frame = wire::encode_request(R::KEY, version, correlation_id, Some("testkit"), &request.into())
            .expect("a request that fits its version");
        self.send_bytes(&frame).await.ok()?;
        Some(Sent { correlation_id, version, request: std::marker::PhantomData })
    }

    /// Reads the next answer, which must be this request's.
    ///
    /// # Panics
    /// If the connection closes, or the answer is another one's or does not decode.
    pub async fn receive<R: Request>(&mut self, sent: Sent<R>) -> R::Response {
        self.try_receive(sent).await.expect("an answer, not a closed connection")
    }

    /// The same of a gateway that may close the connection; `None`: it has.
    ///
    /// # Panics
    /// If the answer is another one's or does not decode, or none comes.
    pub async fn try_receive<R: Request>(&mut self, sent: Sent<R>) -> Option<R::Response> {
        let mut frame = self.receive_frame().await.expect("readable")?;
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(sent.version)).expect("a header");
        assert_eq!(header.correlation_id, sent.correlation_id, "answers come in the order of their requests");
        let response = R::Response::decode(&mut frame, sent.version).expect("an answer in the request's version");
        assert!(frame.is_empty(), "{} bytes follow the answer", frame.len());
        Some(response)
    }

    /// Sends a request of any API and reads its answer.
    ///
    /// # Panics
    /// As [`Client::call`].
    pub async fn call_any(&mut self, api_key: i16, version: i16, request: &RequestKind) -> ResponseKind {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let frame = wire::encode_request(api_key, version, correlation_id, Some("testkit"), request)
            .expect("a request that fits its version");
        self.send_bytes(&frame).await.expect("an open connection");
        let frame = self.receive_frame().await.expect("readable").expect("an answer, not a closed connection");
        let (answered, response) = wire::decode_response(api_key, version, frame).expect("an answer in its version");
        assert_eq!(answered, correlation_id, "answers come in the order of their requests");
        response
    }

    /// Sends anything.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next frame without its length, or `None` when the gateway has closed the connection.
    ///
    /// # Errors
    /// If the connection breaks within a frame, or nothing comes in 30 s.
    pub async fn receive_frame(&mut self) -> io::Result<Option<Bytes>> {
        timeout(PATIENCE, self.read_frame()).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn read_frame(&mut self) -> io::Result<Option<Bytes>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length).await {
            Ok(_) => {}
            Err(error) if is_closed(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut frame = BytesMut::zeroed(usize::try_from((&length[..]).get_i32()).map_err(io::Error::other)?);
        self.stream.read_exact(&mut frame).await?;
        Ok(Some(frame.freeze()))
    }

    /// Waits until the gateway closes the connection; answers on the way are dropped.
    ///
    /// # Panics
    /// If it does not within 30 s.
    pub async fn wait_closed(&mut self) {
        while self.receive_frame().await.expect("the gateway closes the connection").is_some() {}
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
