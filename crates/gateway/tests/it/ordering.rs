//! Answers leave a connection in the order of its requests (B010), and acks=0 has none (B032).

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use testkit::TestGateway;

use crate::samples::{batch, fetch, metadata, produce};

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_fetch_holds_back_what_follows() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("quiet")).await;
    let start = Instant::now();
    let parked = client.send(11, fetch("quiet", 0, 1_000)).await;
    let second = client.send(0, ApiVersionsRequest::default()).await;
    let third = client.send(1, MetadataRequest::default().with_topics(None)).await;
    let fetched = client.receive(parked).await;
    assert!(start.elapsed() >= Duration::from_millis(900), "answered after {:?}", start.elapsed());
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0);
    assert_eq!(partition.records.as_ref().map(Bytes::len), Some(0), "empty, not null (B006)");
    assert_eq!(client.receive(second).await.error_code, 0);
    assert_eq!(client.receive(third).await.topics.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_fetch_is_woken_by_another_connection() {
    let gateway = TestGateway::start().await;
    let mut consumer = gateway.client().await;
    consumer.call(12, metadata("t")).await;
    let start = Instant::now();
    let parked = consumer.send(11, fetch("t", 0, 20_000)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.client().await.call(9, produce("t", -1, batch(b"hello"))).await;
    let fetched = consumer.receive(parked).await;
    assert!(start.elapsed() < Duration::from_secs(5), "woken after {:?}", start.elapsed());
    assert!(fetched.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_produce_keeps_its_order() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let mut sent = Vec::new();
    for round in 0..50_usize {
        let size = [1, 500_000, 10, 100_000, 2][round % 5];
        sent.push(client.send(9, produce("t", -1, batch(&vec![b'x'; size]))).await);
    }
    let between = client.send(0, ApiVersionsRequest::default()).await;
    for (offset, request) in sent.into_iter().enumerate() {
        let response = client.receive(request).await;
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, offset as i64));
    }
    client.receive(between).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_0_is_stored_and_not_answered() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    for _ in 0..100 {
        let _ = client.send(9, produce("t", 0, batch(b"x"))).await;
    }
    // Would fail on the correlation id if anything had been answered.
    let response = client.call(9, produce("t", -1, batch(b"last"))).await;
    assert_eq!(response.responses[0].partition_responses[0].base_offset, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_0_is_stored_when_the_client_leaves_at_once() {
    let gateway = TestGateway::start().await;
    let mut other = gateway.client().await;
    other.call(12, metadata("t")).await;
    let mut client = gateway.client().await;
    for _ in 0..20 {
        let _ = client.send(9, produce("t", 0, batch(b"x"))).await;
    }
    drop(client);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let fetched = other.call(11, fetch("t", 0, 0)).await;
        if fetched.responses[0].partitions[0].high_watermark == 20 {
            return;
        }
        assert!(Instant::now() < deadline, "{fetched:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_with_acks_0_closes_the_connection() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    let _ = client.send(9, produce("no-such-topic", 0, batch(b"x"))).await;
    assert_eq!(client.receive_frame().await.unwrap(), None);
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let _ = client.send(9, produce("t", 0, Bytes::from_static(b"not a batch"))).await;
    assert_eq!(client.receive_frame().await.unwrap(), None);
}
