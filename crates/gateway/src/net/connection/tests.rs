//! A connection over a stream in memory, and a Postgres that nobody can reach.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use kafka_protocol::{
    messages::{
        ApiKey, ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest, ProduceRequest, RequestKind, ResponseKind,
        TopicName,
        metadata_request::MetadataRequestTopic,
        produce_request::{PartitionProduceData, TopicProduceData},
    },
    protocol::StrBytes,
};
use store::{Store, StoreConfig};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinHandle,
    time::timeout,
};

use super::serve;
use crate::{
    config::{Config, HostPort},
    context::Shared,
    session::{Listener, Session},
};

const SOON: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(30);

fn shared(listener: &Listener) -> Arc<Shared> {
    let store = Store::connect(StoreConfig::new("postgres://nobody@127.0.0.1:1/nowhere")).unwrap();
    Arc::new(crate::compose(Config::defaults().server, store, listener))
}

/// The client's end of a connection that holds `capacity` bytes each way, and the task that serves it.
fn connect(capacity: usize) -> (DuplexStream, JoinHandle<()>) {
    let listener =
        Arc::new(Listener { name: "PLAINTEXT", advertised: HostPort { host: "kafka.example".to_owned(), port: 9092 } });
    let shared = shared(&listener);
    let session = Session::new("192.0.2.1:1024".parse().unwrap(), listener);
    let (client, server) = tokio::io::duplex(capacity);
    let (input, output) = tokio::io::split(server);
    (client, tokio::spawn(serve(input, output, session, shared)))
}

fn api_versions(correlation_id: i32) -> Bytes {
    let request = ApiVersionsRequest::default()
        .with_client_software_name("client".into())
        .with_client_software_version("1.0".into());
    encode(ApiKey::ApiVersions, 3, correlation_id, request.into())
}

fn produce(correlation_id: i32, size: usize) -> Bytes {
    let partition = PartitionProduceData::default().with_records(Some(vec![0; size].into()));
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_static_str("t")))
        .with_partition_data(vec![partition]);
    let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![topic]);
    encode(ApiKey::Produce, 9, correlation_id, request.into())
}

fn encode(api: ApiKey, version: i16, correlation_id: i32, request: RequestKind) -> Bytes {
    wire::encode_request(api as i16, version, correlation_id, Some("test"), &request).unwrap()
}

async fn receive(client: &mut (impl AsyncRead + Unpin), api: ApiKey, version: i16) -> (i32, ResponseKind) {
    let mut size = [0; 4];
    timeout(PATIENCE, client.read_exact(&mut size)).await.unwrap().unwrap();
    let mut frame = vec![0; (&size[..]).get_u32() as usize];
    timeout(PATIENCE, client.read_exact(&mut frame)).await.unwrap().unwrap();
    wire::decode_response(api as i16, version, frame.into()).unwrap()
}

#[tokio::test]
async fn any_stream_will_do() {
    let (mut client, served) = connect(64);
    client.write_all(&api_versions(1)).await.unwrap();
    let (correlation_id, answer) = receive(&mut client, ApiKey::ApiVersions, 3).await;
    let ResponseKind::ApiVersions(answer) = answer else { panic!("{answer:?}") };
    assert_eq!((correlation_id, answer.error_code), (1, 0));
    // Of a transactional id every gateway is the coordinator.
    let request = FindCoordinatorRequest::default().with_key("t".into()).with_key_type(1);
    client.write_all(&encode(ApiKey::FindCoordinator, 3, 2, request.into())).await.unwrap();
    let (_, answer) = receive(&mut client, ApiKey::FindCoordinator, 3).await;
    let ResponseKind::FindCoordinator(answer) = answer else { panic!("{answer:?}") };
    assert_eq!((answer.error_code, answer.host.as_str()), (0, "kafka.example"));
    drop(client);
    timeout(PATIENCE, served).await.unwrap().unwrap();
}

/// ApiVersions changes the session; its answer does not fit into the stream, so it is told when the client
/// reads it. What follows is larger than all buffers together.
#[tokio::test]
async fn nothing_is_read_behind_a_request_that_changes_the_session() {
    let (client, _served) = connect(64);
    let (mut answers, mut requests) = tokio::io::split(client);
    requests.write_all(&api_versions(1)).await.unwrap();
    let large = produce(2, 100_000);
    let mut sending = Box::pin(requests.write_all(&large));
    assert!(timeout(SOON, &mut sending).await.is_err(), "read before the answer");
    assert_eq!(receive(&mut answers, ApiKey::ApiVersions, 3).await.0, 1);
    timeout(PATIENCE, sending).await.unwrap().unwrap();
}

/// The same of a request that does not: the next ones are read while it waits to be answered.
#[tokio::test]
async fn other_requests_are_read_while_one_is_answered() {
    let (client, _served) = connect(64);
    let (_answers, mut requests) = tokio::io::split(client);
    let named = |name: &str| MetadataRequestTopic::default().with_name(Some(TopicName(name.to_owned().into())));
    let many = MetadataRequest::default().with_topics(Some((0..50).map(|n| named(&format!("t{n}"))).collect()));
    requests.write_all(&encode(ApiKey::Metadata, 12, 1, many.into())).await.unwrap();
    timeout(PATIENCE, requests.write_all(&produce(2, 100_000))).await.unwrap().unwrap();
}
