use bytes::Bytes;
use kafka_protocol::messages::ResponseKind;
use wire::{
    DecodeError, FrameHead, FrameLimits, RequestHeader, decode_request, decode_response, encode_request,
    encode_response,
};

use crate::requests::every_request;
use crate::responses::every_response;

/// What a server does with a frame, up to the message.
fn receive(frame: Bytes) -> (RequestHeader, Bytes) {
    let head = FrameHead::parse(frame.first_chunk().unwrap()).unwrap();
    let left = FrameLimits::default().check(&head).unwrap();
    let mut body = frame.slice(8..);
    assert_eq!(body.len(), left);
    let header = RequestHeader::decode(head.api_key, head.api_version, &mut body).unwrap();
    (header, body)
}

#[test]
fn requests_of_every_api_and_version_arrive_unchanged() {
    for (key, version, request) in every_request() {
        for client_id in [None, Some("client"), Some("")] {
            let frame = encode_request(key, version, 42, client_id, &request)
                .unwrap_or_else(|error| panic!("{error}: {request:?}"));
            let (header, body) = receive(frame);
            let expected = RequestHeader {
                api_key: key,
                api_version: version,
                correlation_id: 42,
                client_id: client_id.map(str::to_owned),
            };
            assert_eq!(header, expected);
            let decoded = decode_request(key, version, body).unwrap_or_else(|error| panic!("{error}: {request:?}"));
            assert_eq!(decoded, request, "key {key} v{version}");
        }
    }
}

#[test]
fn records_are_slices_of_the_frame() {
    let (key, version, request) = every_request().swap_remove(0);
    let (_, body) = receive(encode_request(key, version, 1, None, &request).unwrap());
    let range = body.as_ptr_range();
    let kafka_protocol::messages::RequestKind::Produce(produce) = decode_request(key, version, body).unwrap() else {
        panic!("not a Produce request")
    };
    let records = produce.topic_data[0].partition_data[0].records.clone().unwrap();
    assert!(range.contains(&records.as_ptr()));
}

#[test]
fn responses_of_every_api_and_version_arrive_unchanged() {
    for (key, version, response) in every_response() {
        let frame =
            encode_response(key, version, -7, &response).unwrap_or_else(|error| panic!("{error}: {response:?}"));
        let (size, rest) = frame.split_first_chunk::<4>().unwrap();
        assert_eq!(i32::from_be_bytes(*size) as usize, rest.len());
        let (correlation_id, decoded) = decode_response(key, version, frame.slice(4..)).unwrap();
        assert_eq!(correlation_id, -7);
        assert_eq!(decoded, response, "key {key} v{version}");
    }
}

#[test]
fn the_response_header_of_api_versions_is_always_version_0() {
    let response = ResponseKind::ApiVersions(Default::default());
    for version in 0..=4 {
        let frame = encode_response(18, version, 0x0102_0304, &response).unwrap();
        // Size, correlation id, then at once the error code and the count of API keys.
        let count: &[u8] = if version >= 3 { b"\0\0\x01" } else { b"\0\0\0\0\0\0" };
        assert!(frame[4..].starts_with(&[b"\x01\x02\x03\x04", count].concat()), "v{version}");
    }
}

#[test]
fn unknown_apis_and_versions() {
    let decode = |key, version| decode_request(key, version, Bytes::new()).unwrap_err();
    for key in [-1, 4, 6, 88, 93, 1000, i16::MAX] {
        assert!(matches!(decode(key, 0), DecodeError::UnknownApi(_)), "{key}");
    }
    for (key, version) in [(18, 5), (18, -1), (0, 2), (0, 14), (1, 3), (3, i16::MAX)] {
        assert!(matches!(decode(key, version), DecodeError::UnknownVersion { .. }), "{key} v{version}");
    }
}

#[test]
fn null_and_bad_text_are_refused_where_the_schema_says_so() {
    // Heartbeat v0 with a null group id, then with one that is not UTF-8.
    for group in [&b"\xff\xff"[..], b"\0\x02\xc3\x28"] {
        let body = [group, b"\0\0\0\x01", b"\0\0"].concat();
        assert!(matches!(decode_request(12, 0, Bytes::from(body)), Err(DecodeError::Invalid { .. })));
    }
}

#[test]
fn a_field_the_version_does_not_have_cannot_be_encoded() {
    let (_, _, newest) = every_response().into_iter().rfind(|(key, ..)| *key == 1).unwrap();
    assert!(encode_response(1, 4, 1, &newest).is_err());
    assert!(encode_response(-1, 0, 1, &newest).is_err());
}
