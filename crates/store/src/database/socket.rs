//! Options of the sockets to Postgres, which the driver leaves as they are.
//!
//! TCP_NODELAY: a small COPY ends in two small writes, its rows and its end. Without the option the
//! second one waits for the acknowledgement of the first, and the server's kernel delays that by
//! 40 ms: no append took less. sqlx 0.9.0 lost the option (launchbadge/sqlx issue 4335; 0.8 had it, main
//! has it again).
//!
//! Keep-alive and TCP_USER_TIMEOUT: a server that vanishes without a word (its machine is gone, a
//! firewall forgot the connection) is given up in half a minute, where Linux would wait for a quarter
//! of an hour, and every connection of the pool with it. libpq has parameters for it, sqlx has not.

use std::{
    fs,
    os::fd::{AsRawFd, RawFd},
};

use nix::sys::socket::{
    SetSockOpt, SockaddrStorage, getpeername, setsockopt,
    sockopt::{KeepAlive, TcpKeepIdle, TcpKeepInterval, TcpNoDelay, TcpUserTimeout},
};

/// Seconds without a byte until the server is asked whether it is there.
const KEEP_ALIVE_IDLE: u32 = 10;
/// Seconds between two such questions.
const KEEP_ALIVE_INTERVAL: u32 = 5;
/// Milliseconds without an acknowledgement of what was sent, the questions among it.
const USER_TIMEOUT: u32 = 15_000;

/// Sets them on every socket of the process whose peer has this port, because the driver does not
/// tell which one is its own.
pub(crate) fn set_options(port: u16) {
    // Not there, as on other systems than Linux: slow, but right.
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return };
    for descriptor in descriptors.flatten() {
        let number = descriptor.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(number) = number.filter(|number| peer_port(*number) == Some(port)) {
            // What fails leaves the socket as it was: it may have been closed in this moment.
            let _ = set(&number, TcpNoDelay, true);
            let _ = set(&number, KeepAlive, true);
            let _ = set(&number, TcpKeepIdle, KEEP_ALIVE_IDLE);
            let _ = set(&number, TcpKeepInterval, KEEP_ALIVE_INTERVAL);
            let _ = set(&number, TcpUserTimeout, USER_TIMEOUT);
        }
    }
}

fn set<O: SetSockOpt>(socket: &impl AsRawFd, option: O, value: O::Val) -> nix::Result<()> {
    setsockopt(socket.as_raw_fd(), option, &value)
}

/// `None`: no connected TCP socket.
fn peer_port(descriptor: RawFd) -> Option<u16> {
    let peer = getpeername::<SockaddrStorage>(descriptor).ok()?;
    peer.as_sockaddr_in().map(|v4| v4.port()).or_else(|| peer.as_sockaddr_in6().map(|v6| v6.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::sys::socket::getsockopt;

    use super::*;

    #[test]
    fn the_options_are_set_on_the_sockets_to_one_port() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let streams = listeners.each_ref().map(|listener| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        set_options(listeners[0].local_addr().unwrap().port());
        let found = streams.each_ref().map(|stream| {
            let socket = stream.as_raw_fd();
            (
                getsockopt(socket, TcpNoDelay).unwrap(),
                getsockopt(socket, KeepAlive).unwrap(),
                getsockopt(socket, TcpKeepIdle).unwrap(),
                getsockopt(socket, TcpKeepInterval).unwrap(),
                getsockopt(socket, TcpUserTimeout).unwrap(),
            )
        });
        assert_eq!(found[0], (true, true, 10, 5, 15_000));
        assert_eq!((found[1].0, found[1].1, found[1].4), (false, false, 0));
    }
}
