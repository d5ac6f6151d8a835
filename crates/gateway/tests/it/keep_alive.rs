//! Keep-alive of accepted sockets, as Linux tells of it.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use testkit::{Client, TestGateway};
use tokio::time::sleep;

/// A connection's address as in /proc/net/tcp.
fn hexadecimal(address: SocketAddr) -> String {
    let SocketAddr::V4(address) = address else { panic!("not IPv4: {address}") };
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

/// The time until the first keep-alive question on the gateway's side of the connection; `None`: the socket has no
/// keep-alive timer.
fn until_keep_alive(gateway: SocketAddr, client: &Client) -> Option<Duration> {
    let ends = [hexadecimal(gateway), hexadecimal(client.address())];
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut sockets = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let socket = sockets.find(|fields| fields[1..3] == ends)?;
    // The timer that runs (2: keep-alive) and its hundredths of a second (proc_net_tcp.txt of Linux).
    let (timer, hundredths) = socket[5].split_once(':').unwrap();
    (timer == "02").then(|| Duration::from_millis(u64::from_str_radix(hundredths, 16).unwrap() * 10))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_looks_after_accepted_sockets() {
    let gateway = TestGateway::start().await;
    let client = gateway.client().await;
    let deadline = Instant::now() + Duration::from_secs(10);
    let until = loop {
        // The client may be connected before the gateway has accepted it.
        match until_keep_alive(gateway.address(), &client) {
            Some(until) => break until,
            None if Instant::now() > deadline => panic!("no keep-alive"),
            None => sleep(Duration::from_millis(20)).await,
        }
    };
    assert!(until <= Duration::from_secs(60), "{until:?}");
}
