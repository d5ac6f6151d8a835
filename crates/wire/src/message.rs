//! Whole messages: thin over the generated message crate, which is only let near bytes that
//! [`crate::shape`] has walked.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};
use kafka_protocol::protocol::Encodable;
use thiserror::Error;

use crate::shape::{self, Malformed};

/// Bytes reserved for a response whose size is not worth computing beforehand.
const USUAL_RESPONSE: usize = 512;

/// Why bytes are no request (or, for a client, no response).
#[derive(Debug, Error)]
pub enum DecodeError {
    #[error("API key {0} is not known")]
    UnknownApi(i16),
    #[error("version {api_version} of API key {api_key} is not known")]
    UnknownVersion { api_key: i16, api_version: i16 },
    /// A length does not fit, the bytes end too early, or they would swell when decoded.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The message crate refuses a value: null where null is not allowed, or invalid UTF-8.
    #[error("API key {api_key} version {api_version}: {reason}")]
    Invalid { api_key: i16, api_version: i16, reason: String },
}

/// Why a message cannot be written: nearly always a field that its version does not have.
#[derive(Debug, Error)]
#[error("API key {api_key} version {api_version} cannot be encoded: {reason}")]
pub struct EncodeError {
    pub api_key: i16,
    pub api_version: i16,
    pub reason: String,
}

/// Decodes the message of a request: what [`crate::RequestHeader::decode`] has left. Of every API and version that
/// the message crate knows; which of them are served is for the caller to say.
///
/// Byte fields, above all the records of a Produce request, are slices of `body`. Bytes after the message
/// are ignored, as Apache Kafka ignores them; librdkafka sends some.
///
/// # Errors
/// [`DecodeError`]; after `Malformed` and `Invalid` the connection should end, as Kafka ends it.
pub fn decode_request(api_key: i16, api_version: i16, body: Bytes) -> Result<RequestKind, DecodeError> {
    let shape = shape::of(api_key).ok_or(DecodeError::UnknownApi(api_key))?;
    if !shape.has_version(api_version) {
        return Err(DecodeError::UnknownVersion { api_key, api_version });
    }
    let length = shape.check(api_version, &body)?;
    let mut rest = body.slice(..length);
    let key = message_key(api_key)?;
    let request = RequestKind::decode(key, &mut rest, api_version)
        .map_err(|error| invalid(api_key, api_version, format!("{error:#}")))?;
    if rest.is_empty() {
        Ok(request)
    } else {
        Err(invalid(api_key, api_version, format!("the decoder left {} bytes of the message", rest.len())))
    }
}

/// Encodes a response as a whole frame, size field included.
///
/// `api_version` is the request's; for the answer to an ApiVersions request of an unknown version it is 0
/// (KIP-511). `response` must be of the API `api_key`.
///
/// # Errors
/// [`EncodeError`] when a field is set that the version does not have, or an unknown key is given.
pub fn encode_response(
    api_key: i16,
    api_version: i16,
    correlation_id: i32,
    response: &ResponseKind,
) -> Result<Bytes, EncodeError> {
    let failed = |reason: String| EncodeError { api_key, api_version, reason };
    let key = ApiKey::try_from(api_key).map_err(|()| failed("unknown API key".to_owned()))?;
    let expected = match response {
        // Records of megabytes: growing would copy them several times.
        ResponseKind::Fetch(fetch) => fetch.compute_size(api_version).map_err(|e| failed(format!("{e:#}")))?,
        _ => USUAL_RESPONSE,
    };
    let mut frame = start_frame(expected);
    frame.put_i32(correlation_id);
    // The response header of ApiVersions is version 0 always, so that any client can read it (KIP-511);
    // the message crate knows that.
    if key.response_header_version(api_version) >= 1 {
        frame.put_u8(0);
    }
    response.encode(&mut frame, api_version).map_err(|e| failed(format!("{e:#}")))?;
    finish_frame(frame).map_err(failed)
}

/// Encodes a request as a client does: a whole frame, size field included.
///
/// # Errors
/// [`EncodeError`] when a field is set that the version does not have, or an unknown key is given.
pub fn encode_request(
    api_key: i16,
    api_version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &RequestKind,
) -> Result<Bytes, EncodeError> {
    let failed = |reason: String| EncodeError { api_key, api_version, reason };
    let key = ApiKey::try_from(api_key).map_err(|()| failed("unknown API key".to_owned()))?;
    let mut frame = start_frame(USUAL_RESPONSE);
    frame.put_i16(api_key);
    frame.put_i16(api_version);
    frame.put_i32(correlation_id);
    match client_id {
        Some(id) => {
            let length = i16::try_from(id.len()).map_err(|_| failed("client id is too long".to_owned()))?;
            frame.put_i16(length);
            frame.put_slice(id.as_bytes());
        }
        None => frame.put_i16(-1),
    }
    if key.request_header_version(api_version) >= 2 {
        frame.put_u8(0);
    }
    request.encode(&mut frame, api_version).map_err(|e| failed(format!("{e:#}")))?;
    finish_frame(frame).map_err(failed)
}

/// Decodes a response as a client does: `bytes` is a frame without its size field. Returns the correlation id too.
///
/// Only for a server that is trusted: claimed lengths are not checked.
///
/// # Errors
/// [`DecodeError`] when the bytes are not this response.
pub fn decode_response(api_key: i16, api_version: i16, mut bytes: Bytes) -> Result<(i32, ResponseKind), DecodeError> {
    let key = message_key(api_key)?;
    let mut reader = shape::Reader::new(&bytes);
    let correlation_id = reader.int32("correlation_id")?;
    if key.response_header_version(api_version) >= 1 {
        reader.skip_tagged_fields()?;
    }
    let message = reader.remaining();
    let _ = bytes.split_to(bytes.len() - message);
    let response = ResponseKind::decode(key, &mut bytes, api_version)
        .map_err(|error| invalid(api_key, api_version, format!("{error:#}")))?;
    if bytes.is_empty() {
        Ok((correlation_id, response))
    } else {
        Err(invalid(api_key, api_version, format!("{} bytes follow the message", bytes.len())))
    }
}

fn message_key(api_key: i16) -> Result<ApiKey, DecodeError> {
    ApiKey::try_from(api_key).map_err(|()| DecodeError::UnknownApi(api_key))
}

fn invalid(api_key: i16, api_version: i16, reason: String) -> DecodeError {
    DecodeError::Invalid { api_key, api_version, reason }
}

fn start_frame(expected: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(expected + 16);
    frame.put_i32(0);
    frame
}

fn finish_frame(mut frame: BytesMut) -> Result<Bytes, String> {
    let size = i32::try_from(frame.len() - 4).map_err(|_| "frame is larger than 2^31 - 1 bytes".to_owned())?;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    Ok(frame.freeze())
}
