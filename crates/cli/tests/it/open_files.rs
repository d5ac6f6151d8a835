//! A process with few file descriptors and more clients than those.

use futures::future::join_all;
use kafka_protocol::messages::{ApiVersionsRequest, InitProducerIdRequest};
use testkit::{Client, TestDatabase};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::process::GatewayProcess;

const LIMIT: &str = "--nofile=256:256";

/// The client if the gateway serves it; otherwise it has closed the connection.
async fn served(gateway: &GatewayProcess) -> Option<Client> {
    let mut client = Client::connect(gateway.address()).await;
    let answer = client.try_call(0, ApiVersionsRequest::default()).await?;
    assert_eq!(answer.error_code, 0);
    Some(client)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_limit_are_refused_and_all_others_served() {
    let database = TestDatabase::new().await;
    let gateway = GatewayProcess::start_under(&["prlimit", LIMIT], database.url(), &[]);
    let clients: Vec<_> = join_all((0..400).map(|_| served(&gateway))).await;
    let mut clients: Vec<Client> = clients.into_iter().flatten().collect();
    assert!((150..250).contains(&clients.len()), "{} of 400 are served", clients.len());

    // Each takes a connection to Postgres, of which few are open so far.
    let request = InitProducerIdRequest::default().with_transactional_id(None);
    let answers = join_all(clients.iter_mut().map(|client| client.call(4, request.clone()))).await;
    let codes: Vec<i16> = answers.iter().map(|answer| answer.error_code).collect();
    assert!(codes.iter().all(|code| *code == 0), "{codes:?}");
    let mut probe = TcpStream::connect(gateway.http_address()).await.unwrap();
    probe.write_all(b"GET /health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    clients.truncate(50);
    for _ in 0..100 {
        if served(&gateway).await.is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("nobody is served in place of those that left");
}
