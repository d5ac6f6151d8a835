//! Bytes that no client sends: that connection closes, others do not notice, and memory stays
//! (storage.md Invariant 8).

use std::time::Duration;

use gateway::api::APIS;
use kafka_protocol::messages::ApiVersionsRequest;
use testkit::{Client, TestGateway};
use tokio::time::timeout;

use crate::samples::{batch, fetch, metadata, produce};

/// A frame with a classic header and this body.
fn frame(api_key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut frame = i32::try_from(10 + body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend(api_key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0xff, 0xff]);
    frame.extend(body);
    frame
}

async fn assert_closes(gateway: &TestGateway, what: &str, bytes: &[u8]) {
    let mut client = gateway.client().await;
    // The gateway may close before all was sent.
    let _ = client.send_bytes(bytes).await;
    let answer = client.receive_frame().await;
    assert!(matches!(answer, Ok(None)), "{what}: {answer:?}");
}

async fn assert_serves(client: &mut Client) {
    let response = client.call(0, ApiVersionsRequest::default()).await;
    assert_eq!(response.error_code, 0);
}

/// The most memory that this process has had resident, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_on_the_port() {
    let gateway = TestGateway::start().await;
    let mut steady = gateway.client().await;
    let produce_limit = 104_857_600_i32;
    let mut oversized = frame(0, 7, &[]);
    oversized[..4].copy_from_slice(&(produce_limit + 1).to_be_bytes());
    let mut large_metadata = frame(3, 7, &[]);
    large_metadata[..4].copy_from_slice(&(2_097_152_i32 + 1).to_be_bytes());
    for (what, bytes) in [
        ("TLS", &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random"[..]),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("negative length", b"\xff\xff\xff\xff\0\x12\0\0"),
        ("least length", b"\x80\0\0\0\0\x12\0\0"),
        ("zero length", b"\0\0\0\0\0\x12\0\0"),
        ("header does not fit", b"\0\0\0\x09\0\x12\0\0\0\0\0\x01\0"),
        ("Produce above its limit", &oversized),
        ("Metadata above its limit", &large_metadata),
        ("unknown key", &frame(999, 0, &[])),
        ("negative key", &frame(-1, 0, &[])),
        ("a key of Kafka's that is not served", &frame(4, 0, &[])),
        ("SaslHandshake", &frame(17, 1, b"\0\x05PLAIN")),
        ("client id longer than the frame", b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\x7f\xff"),
        ("nothing but ones", &[0xff; 4096]),
        ("zero length and no more", b"\0\0\0\0"),
        ("negative length and no more", b"\xff\xff\xff\xff"),
        ("a length above all limits and no more", b"\x7f\xff\xff\xff"),
    ] {
        assert_closes(&gateway, what, bytes).await;
        assert_serves(&mut steady).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_claims_in_every_api() {
    let gateway = TestGateway::start().await;
    let mut steady = gateway.client().await;
    assert_serves(&mut steady).await;
    let before = peak_memory();
    for api in APIS {
        for version in api.served_min..=api.max {
            for claim in
                [&b"\x7f\xff\xff\xf0"[..], b"\0\x7f\xff\xff\xf0", b"\0\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07"]
            {
                // Where the claim is read as something harmless the answer is one, too.
                for padding in [0, 64] {
                    let mut client = gateway.client().await;
                    let body = [claim, &vec![0x7f; padding]].concat();
                    client.send_bytes(&frame(api.key, version, &body)).await.unwrap();
                    let answer = timeout(Duration::from_secs(5), client.receive_frame()).await;
                    assert!(answer.is_ok(), "{} v{version} {claim:?} is not answered and not closed", api.name);
                }
            }
        }
    }
    assert_serves(&mut steady).await;
    let grown = peak_memory() - before;
    assert!(grown < 64, "memory grew by {grown} MiB");
}

/// 100 MB of empty strings would be gigabytes of structs; at the limit of such requests they are
/// refused or stay small.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_elements() {
    let gateway = TestGateway::start().await;
    let before = peak_memory();
    let names = 1_000_000_u32;
    let mut body = names.to_be_bytes().to_vec();
    body.resize(4 + names as usize * 2, 0);
    let mut client = gateway.client().await;
    client.send_bytes(&frame(3, 1, &body)).await.unwrap();
    let _ = client.receive_frame().await.unwrap();
    let grown = peak_memory() - before;
    assert!(grown < 256, "memory grew by {grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_requests_hold_nobody_up() {
    let gateway = TestGateway::start().await;
    let mut unfinished = Vec::new();
    for bytes in [&b"\0"[..], b"\0\0\0\x20\0\x03", b"\x06\0\0\0\0\0\0\x07\0\0"] {
        let mut client = gateway.client().await;
        client.send_bytes(bytes).await.unwrap();
        unfinished.push(client);
    }
    assert_serves(&mut gateway.client().await).await;
}

/// Large requests that are announced and never come leave the memory to those that do.
#[tokio::test(flavor = "multi_thread")]
async fn announced_bytes_hold_nobody_up() {
    let gateway = TestGateway::start_with(|config| {
        (config.server.limits.max_request_bytes, config.server.limits.produce_memory_bytes) = (8 << 20, 8 << 20);
    })
    .await;
    let mut announced = Vec::new();
    for _ in 0..10 {
        let mut head = frame(0, 7, &[0; 1_000]);
        head[..4].copy_from_slice(&(8_i32 << 20).to_be_bytes());
        let mut client = gateway.client().await;
        client.send_bytes(&head).await.unwrap();
        announced.push(client);
    }
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let large = vec![0; 900_000];
    let stored = timeout(Duration::from_secs(10), client.call(9, produce("t", -1, batch(&large)))).await.unwrap();
    assert_eq!(stored.responses[0].partition_responses[0].error_code, 0);
}

/// Answers that nobody reads fill their budget and no more; others get theirs, if smaller.
#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_are_bounded() {
    let gateway = TestGateway::start_with(|config| config.server.limits.fetch_memory_bytes = 16 << 20).await;
    let mut client = gateway.client().await;
    client.call(12, metadata("t")).await;
    let large = vec![0; 1_000_000];
    for _ in 0..16 {
        client.call(9, produce("t", -1, batch(&large))).await;
    }
    let mut request = fetch("t", 0, 0).with_max_bytes(50 << 20);
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let before = peak_memory();
    let mut unread = Vec::new();
    for _ in 0..40 {
        let mut client = gateway.client().await;
        let _ = client.send(11, request.clone()).await;
        unread.push(client);
    }
    let answer = timeout(Duration::from_secs(30), client.call(11, request)).await.unwrap();
    assert_eq!((answer.error_code, answer.responses[0].partitions[0].error_code), (0, 0));
    assert_eq!(answer.responses[0].partitions[0].high_watermark, 16);
    let grown = peak_memory() - before;
    assert!(grown < 256, "memory grew by {grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn api_versions_of_the_future_can_fall_back() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    for version in [5_i16, 127, -1, i16::MAX] {
        client.send_bytes(&frame(18, version, b"\x80a body of another time")).await.unwrap();
        let answer = client.receive_frame().await.unwrap().expect("an answer");
        // Header v0: the correlation id alone. Error 35, one entry: key 18, versions 0 to 4.
        assert_eq!(&answer[..], b"\0\0\0\x01\0\x23\0\0\0\x01\0\x12\0\0\0\x04", "version {version}");
    }
    assert_serves(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_software_is_checked() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    for (name, version, code) in [("librdkafka", "2.15.0", 0), ("", "1", 42), ("bad name", "1", 42), ("a", "-", 42)] {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(name.to_owned().into())
            .with_client_software_version(version.to_owned().into());
        assert_eq!(client.call(3, request).await.error_code, code, "{name:?} {version:?}");
    }
}
