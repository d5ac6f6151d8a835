use bytes::Bytes;

use crate::message::DecodeError;
use crate::shape::{self, Reader};

/// The API and version of a request, and the client's name for itself. One type for all header versions, as a client
/// id is never in compact form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    pub api_key: i16,
    pub api_version: i16,
    /// Returned with the response.
    pub correlation_id: i32,
    /// Invalid UTF-8 is replaced, as in Java: it only goes to logs, member ids and group descriptions.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header from `body`, the bytes of a frame after API key and version, and leaves the message.
    ///
    /// Works for any key and version, so that an ApiVersions request of the future can be answered. The
    /// tagged fields of a flexible header are skipped only when the version is known; else the rest of
    /// `body` cannot be read anyway.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] when the bytes end within the header or a length is impossible.
    pub fn decode(api_key: i16, api_version: i16, body: &mut Bytes) -> Result<RequestHeader, DecodeError> {
        let mut reader = Reader::new(body);
        let correlation_id = reader.int32("correlation_id")?;
        let client_id = reader.nullable_string("client_id")?.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if shape::of(api_key).is_some_and(|shape| shape.is_flexible(api_version)) {
            reader.skip_tagged_fields()?;
        }
        let message = reader.remaining();
        let _ = body.split_to(body.len() - message);
        Ok(RequestHeader { api_key, api_version, correlation_id, client_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(api_key: i16, api_version: i16, bytes: &[u8]) -> Result<(RequestHeader, Bytes), DecodeError> {
        let mut body = Bytes::copy_from_slice(bytes);
        let header = RequestHeader::decode(api_key, api_version, &mut body)?;
        Ok((header, body))
    }

    #[test]
    fn classic_and_flexible_headers() {
        let (header, rest) = decode(3, 1, b"\0\0\0\x05\0\x02me\0\0").unwrap();
        assert_eq!((header.correlation_id, header.client_id.as_deref(), &rest[..]), (5, Some("me"), &b"\0\0"[..]));
        // Two tagged fields: tag 0 of one byte, tag 200 of none.
        let (header, rest) = decode(3, 9, b"\xff\xff\xff\xff\xff\xff\x02\0\x01x\xc8\x01\0rest").unwrap();
        assert_eq!((header.correlation_id, header.client_id, &rest[..]), (-1, None, &b"rest"[..]));
    }

    #[test]
    fn unknown_versions_and_keys_have_a_readable_head() {
        for (key, version) in [(18, 99), (18, -1), (i16::MAX, 0), (-1, 7)] {
            let (header, rest) = decode(key, version, b"\0\0\0\x09\0\x01x\0more").unwrap();
            assert_eq!((header.correlation_id, header.client_id.as_deref(), rest.len()), (9, Some("x"), 5));
        }
    }

    #[test]
    fn malformed_headers() {
        for bytes in [&b""[..], b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\0\x05ab", b"\0\0\0\x01\xff\xfe"] {
            assert!(decode(18, 0, bytes).is_err(), "{bytes:?}");
        }
        for bytes in
            [&b"\0\0\0\x01\xff\xff"[..], b"\0\0\0\x01\xff\xff\x01\0\x05", b"\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff"]
        {
            assert!(decode(18, 3, bytes).is_err(), "{bytes:?}");
        }
        let (header, _) = decode(18, 0, b"\0\0\0\x01\0\x02\xff\xfe").unwrap();
        assert_eq!(header.client_id.as_deref(), Some("\u{fffd}\u{fffd}"));
    }
}
