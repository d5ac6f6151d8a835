//! Keep-alive of the Kafka port's sockets: a client that vanished without a word (its machine is gone, a firewall
//! forgot the connection) ends within [`GONE`], and gives back its place of `--max-connections` and its memory.
//!
//! Apache Kafka sets the option too (`SocketServer.configureAcceptedSocketChannel`) and leaves the times to the
//! system, where they are two hours on Linux.

use std::{io, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Silence until the client's system is asked whether the connection is there. Less than the times after which load
/// balancers and address translators forget a silent connection (four to six minutes in the large clouds).
const IDLE: Duration = Duration::from_secs(60);
/// Between two such questions.
const INTERVAL: Duration = Duration::from_secs(15);
/// Questions without an answer that end the connection, where [`GONE`] does not.
const RETRIES: u32 = 8;
/// Time without an acknowledgement after which the client is gone: long enough for a machine that is moved or
/// suspended for a moment. It holds for answers under way as well, for which the system does not ask but goes on
/// sending, for a quarter of an hour on Linux; and nearly every consumer that vanishes has one under way, because its
/// Fetch is answered soon after.
#[cfg(target_os = "linux")]
const GONE: Duration = IDLE.saturating_add(INTERVAL.saturating_mul(RETRIES));

/// # Errors
/// If the socket is closed already.
pub(crate) fn set(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let times = TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL).with_retries(RETRIES);
    socket.set_tcp_keepalive(&times)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(GONE))?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_vanished_client_is_gone_after_three_minutes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (stream, _) = accepted.unwrap();
        set(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let questions = socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        let three_minutes = Duration::from_secs(180);
        assert_eq!(socket.tcp_keepalive_time().unwrap() + questions, three_minutes);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(three_minutes));
    }
}
