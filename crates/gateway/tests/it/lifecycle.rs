//! Starting, stopping, limits, and Postgres going away and coming back.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use gateway::{Gateway, StartError, config::Config};
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use local_postgres::StopMode;
use testkit::{Client, TestDatabase, TestGateway};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use crate::samples::{batch, fetch, metadata, produce};

/// Status and body of a GET.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

async fn wait_for_readiness(address: SocketAddr, status: u16) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (found, body) = get(address, "/health/ready").await;
        if found == status {
            return body;
        }
        assert!(Instant::now() < deadline, "still {found}: {body}");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn still_serves(client: &mut Client) -> bool {
    client.call(0, ApiVersionsRequest::default()).await.error_code == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_postgres_and_clients_recover() {
    let gateway = TestGateway::start_on(TestDatabase::on_private_server().await, |_| {}).await;
    assert_eq!(get(gateway.http_address(), "/health/live").await.0, 200);
    assert_eq!(get(gateway.http_address(), "/health/ready").await.0, 200);
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    client.call(9, produce("t", -1, batch(b"before"))).await;
    let all = MetadataRequest::default().with_topics(None);
    assert_eq!(client.call(12, all.clone()).await.topics.len(), 1);

    gateway.database().server().stop(StopMode::Immediate).unwrap();
    let reason = wait_for_readiness(gateway.http_address(), 503).await;
    assert!(reason.contains("Postgres"), "{reason}");
    assert_eq!(get(gateway.http_address(), "/health/live").await.0, 200);
    let refused = client.call(9, produce("t", -1, batch(b"during"))).await;
    assert_eq!(refused.responses[0].partition_responses[0].error_code, 19);
    // A consumer that subscribes by pattern must not think that its topics are gone.
    let known = client.call(12, all).await;
    assert_eq!((known.topics.len(), known.brokers.len()), (1, 1));

    gateway.database().server().restart().unwrap();
    wait_for_readiness(gateway.http_address(), 200).await;
    let stored = client.call(9, produce("t", -1, batch(b"after"))).await;
    assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_postgres_is_made_up_for() {
    let database = TestDatabase::on_private_server().await;
    database.server().stop(StopMode::Fast).unwrap();
    let gateway = TestGateway::start_on(database, |_| {}).await;
    assert_eq!(get(gateway.http_address(), "/health/ready").await.0, 503);
    let mut client = gateway.client().await;
    assert_eq!(client.call(12, metadata("t")).await.topics[0].error_code, 5);
    let all = client.call(12, MetadataRequest::default().with_topics(None)).await;
    assert_eq!((all.topics.len(), all.brokers.len()), (0, 0), "nothing is known, not even that there is nothing");
    gateway.database().server().restart().unwrap();
    wait_for_readiness(gateway.http_address(), 200).await;
    assert_eq!(client.call(12, metadata("t")).await.topics[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_may_not_be_migrated_is_refused_in_words() {
    let database = TestDatabase::empty().await;
    let mut config = Config::defaults();
    config.store.postgres.database_url = Some(database.url().to_owned());
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.server.http_listen = ([127, 0, 0, 1], 0).into();
    config.server.no_migrate = true;
    let error = Gateway::start(config.clone()).await.unwrap_err();
    assert!(error.to_string().contains("schema queue does not exist"), "{error}");
    config.server.no_migrate = false;
    let handle = Gateway::start(config.clone()).await.unwrap();
    config.server.listen = handle.kafka_addr();
    let error = Gateway::start(config).await.unwrap_err();
    assert!(matches!(error, StartError::Listen { option: "--listen", .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_what_is_running_and_takes_nothing_new() {
    let gateway = TestGateway::start().await;
    let address = gateway.address();
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let stored = client.send(9, produce("t", -1, batch(b"x"))).await;
    let parked = client.send(11, fetch("t", 99, 60_000)).await;
    let mut waiting = gateway.client().await;
    waiting.call(12, metadata("quiet")).await;
    let long = waiting.send(11, fetch("quiet", 0, 60_000)).await;
    sleep(Duration::from_millis(300)).await;
    let start = Instant::now();
    let (_database, in_time) = gateway.stop().await;
    assert!(in_time && start.elapsed() < Duration::from_secs(4), "took {:?}", start.elapsed());
    assert_eq!(client.receive(stored).await.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(client.receive(parked).await.responses[0].partitions[0].error_code, 1);
    assert_eq!(client.receive_frame().await.unwrap(), None);
    assert_eq!(waiting.receive(long).await.responses[0].partitions[0].error_code, 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_are_closed_and_their_places_freed() {
    let gateway = TestGateway::start_with(|config| config.server.limits.max_connections = 2).await;
    let mut first = gateway.client().await;
    assert!(still_serves(&mut first).await);
    first.call(12, metadata("t")).await;
    let mut second = gateway.client().await;
    assert!(still_serves(&mut second).await);
    gateway.client().await.wait_closed().await;
    // A client that leaves in the middle of a long wait frees its place at once.
    let _ = second.send(11, fetch("t", 0, 600_000)).await;
    sleep(Duration::from_millis(100)).await;
    drop(second);
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let mut third = gateway.client().await;
        let _ = third.send(0, ApiVersionsRequest::default()).await;
        if matches!(third.receive_frame().await, Ok(Some(_))) {
            break;
        }
        assert!(Instant::now() < deadline, "the place is not freed");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(still_serves(&mut first).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    let gateway = TestGateway::start_with(|config| config.server.limits.connection_idle_ms = 1_000).await;
    let mut client = gateway.client().await;
    for _ in 0..3 {
        sleep(Duration::from_millis(500)).await;
        assert!(still_serves(&mut client).await);
    }
    let start = Instant::now();
    client.wait_closed().await;
    assert!(start.elapsed() >= Duration::from_millis(900), "closed after {:?}", start.elapsed());
}

/// The budget of Produce bytes is smaller than what the clients send together: they wait, and all
/// are served.
#[tokio::test(flavor = "multi_thread")]
async fn more_bytes_than_the_budget_wait_for_their_turn() {
    let gateway = TestGateway::start_with(|config| {
        config.server.limits.max_request_bytes = 1_000_000;
        config.server.limits.max_other_request_bytes = 100_000;
        config.server.limits.produce_memory_bytes = 1_000_000;
    })
    .await;
    gateway.client().await.call(12, metadata("t")).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let address = gateway.address();
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..5 {
                    let stored = client.call(9, produce("t", -1, batch(&vec![b'x'; 700_000]))).await;
                    assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Two gateways on one database: a topic made through one works through the other at once (B040).
#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_sees_new_topics_at_once() {
    let first = TestGateway::start().await;
    let mut config = Config::defaults();
    config.store.postgres.database_url = Some(first.database().url().to_owned());
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.server.http_listen = ([127, 0, 0, 1], 0).into();
    let second = Gateway::start(config).await.unwrap();
    let (mut one, mut two) = (first.client().await, Client::connect(second.kafka_addr()).await);
    for number in 0..20 {
        let name = format!("topic-{number}");
        one.call(12, metadata(&name)).await;
        let stored = two.call(9, produce(&name, -1, batch(b"x"))).await;
        assert_eq!(stored.responses[0].partition_responses[0].error_code, 0, "{name}");
    }
    assert!(second.shutdown().await);
}
