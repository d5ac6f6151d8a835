//! Every advertised API at every version: a valid answer, and a retriable error in the request's
//! own version while Postgres is away (B024, B038).

use gateway::api::{APIS, Api};
use kafka_protocol::messages::{ApiKey, ResponseKind};
use local_postgres::StopMode;
use testkit::{Client, TestDatabase, TestGateway};
use wire::ErrorCode;

use crate::samples::{self, Sample, Subject, WhileAway, errors};

const SUBJECT: Subject = Subject { topic: "orders", new_topic: "made" };

async fn call(client: &mut Client, api: &Api, version: i16) -> ResponseKind {
    let request = (Sample::of(api.key).request)(version, SUBJECT);
    client.call_any(api.key, version, &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_has_a_valid_answer() {
    let gateway = TestGateway::start_with(|config| config.server.groups.group_initial_rebalance_delay_ms = 0).await;
    let mut client = gateway.client().await;
    client.call(12, samples::metadata(SUBJECT.topic)).await;
    for api in APIS {
        for version in api.served_min..=api.max {
            let response = call(&mut client, api, version).await;
            let errors = errors(&response);
            assert!(!errors.is_empty(), "{} v{version} says nothing: {response:?}", api.name);
            let regular = (Sample::of(api.key).told)(version).code();
            assert!(errors.iter().all(|code| [0, regular].contains(code)), "{} v{version}: {response:?}", api.name);
            assert!(errors.contains(&regular), "{} v{version}: {response:?}", api.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn advertised_versions_that_are_not_served_close_the_connection() {
    let gateway = TestGateway::start().await;
    for api in APIS.iter().filter(|api| api.key != ApiKey::ApiVersions as i16) {
        for version in [-1, api.served_min - 1, api.max + 1, i16::MAX] {
            let mut client = gateway.client().await;
            let mut frame = vec![0, 0, 0, 10];
            frame.extend(api.key.to_be_bytes());
            frame.extend(version.to_be_bytes());
            frame.extend([0, 0, 0, 7, 0xff, 0xff]);
            client.send_bytes(&frame).await.unwrap();
            assert_eq!(client.receive_frame().await.unwrap(), None, "{} v{version}", api.name);
        }
    }
}

/// The crate wire decodes more than is served.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_decoded_and_not_in_the_list_closes_the_connection() {
    let gateway = TestGateway::start().await;
    for key in ApiKey::iter().filter(|key| APIS.iter().all(|api| api.key != *key as i16)) {
        let mut client = gateway.client().await;
        // The head is enough: nothing of the message is waited for.
        let [key_high, key_low] = (key as i16).to_be_bytes();
        client.send_bytes(&[0, 0, 0, 100, key_high, key_low, 0, key.valid_versions().max as u8]).await.unwrap();
        assert_eq!(client.receive_frame().await.unwrap(), None, "{key:?}");
    }
    let mut newer = 0;
    for api in APIS.iter().filter(|api| api.key != ApiKey::ApiVersions as i16) {
        let version = api.max + 1;
        let request = (Sample::of(api.key).request)(version, SUBJECT);
        if let Ok(frame) = wire::encode_request(api.key, version, 1, None, &request) {
            let mut client = gateway.client().await;
            client.send_bytes(&frame).await.unwrap();
            assert_eq!(client.receive_frame().await.unwrap(), None, "{} v{version}", api.name);
            newer += 1;
        }
    }
    assert!(newer > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_shape_of_the_requests_version() {
    let gateway = TestGateway::start_on(TestDatabase::on_private_server().await, |_| {}).await;
    gateway.client().await.call(12, samples::metadata(SUBJECT.topic)).await;
    gateway.database().server().stop(StopMode::Immediate).unwrap();
    // What was seen of topics is believed for a second.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;

    everything_is_retriable(&gateway).await;
}

/// While Postgres serves nobody.
pub(crate) async fn everything_is_retriable(gateway: &TestGateway) {
    let mut client = gateway.client().await;
    for api in APIS {
        let while_away = Sample::of(api.key).while_away;
        if while_away == WhileAway::InItsTime {
            continue;
        }
        for version in api.served_min..=api.max {
            let response = call(&mut client, api, version).await;
            let errors: Vec<ErrorCode> =
                errors(&response).into_iter().filter_map(ErrorCode::from_code).filter(|c| c.code() != 0).collect();
            if while_away == WhileAway::AsAlways {
                assert!(errors.is_empty(), "{} v{version}: {response:?}", api.name);
                continue;
            }
            assert!(!errors.is_empty(), "{} v{version} has no error: {response:?}", api.name);
            assert!(errors.iter().all(|code| code.is_retriable()), "{} v{version}: {response:?}", api.name);
        }
    }
}
