//! ApiVersions: which APIs and versions this broker speaks.
//!
//! Answered from the list of `api.rs`; needs no database. An unsupported version gets a v0
//! answer with error 35 and only the entry of key 18, from which the client takes the version to
//! try next (KIP-511; Kafka: `ApiVersionsRequest.getErrorResponse`). From v3 on the client names
//! its software, and a name outside Kafka's pattern is INVALID_REQUEST (`ApiVersionsRequest.isValid`).
//! No features are listed and the epoch is −1, "unknown": clients then stay with the transaction
//! protocol that needs no feature.

use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, ResponseKind, api_versions_response::ApiVersion,
};
use wire::ErrorCode;

use super::entry::Api;
use crate::{context::RequestContext, error::ApiError};

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &ApiVersionsRequest,
) -> Result<ApiVersionsResponse, ApiError> {
    let named = [&request.client_software_name, &request.client_software_version];
    if version >= 3 && !named.iter().all(|text| is_software_name(text)) {
        return Ok(error_response(version, request, ErrorCode::InvalidRequest));
    }
    if version >= 3 {
        ctx.session.set_software(&request.client_software_name, &request.client_software_version);
    }
    Ok(ApiVersionsResponse::default().with_api_keys(ctx.shared.apis.iter().map(entry).collect()))
}

pub(super) fn error_response(_version: i16, _request: &ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(code.code())
}

/// The answer, in version 0, to a version that is not served.
pub(crate) fn unsupported_version(own: &Api) -> ResponseKind {
    ResponseKind::ApiVersions(
        ApiVersionsResponse::default()
            .with_error_code(ErrorCode::UnsupportedVersion.code())
            .with_api_keys(vec![entry(own)]),
    )
}

fn entry(api: &Api) -> ApiVersion {
    ApiVersion::default().with_api_key(api.key).with_min_version(api.min).with_max_version(api.max)
}

/// Kafka's pattern: `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
fn is_software_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::*;

    #[test]
    fn software_names_follow_kafkas_pattern() {
        for good in ["librdkafka", "apache-kafka-java", "4.1.0", "a", "1"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".", "a b", "a_b", "é"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }

    #[test]
    fn an_unsupported_version_lists_only_itself() {
        let own = crate::api::find(ApiKey::ApiVersions as i16).unwrap();
        let ResponseKind::ApiVersions(response) = unsupported_version(own) else { unreachable!() };
        assert_eq!(response.error_code, 35);
        assert_eq!(response.api_keys.len(), 1);
        assert_eq!((response.api_keys[0].api_key, response.api_keys[0].max_version), (18, 4));
    }
}
