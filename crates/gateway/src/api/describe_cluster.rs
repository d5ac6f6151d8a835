//! DescribeCluster: cluster id, brokers and controller (KIP-700).
//!
//! Endpoint type 1 asks for brokers; 2 asks for controllers, which this is not
//! (MISMATCHED_ENDPOINT_TYPE), and others are UNSUPPORTED_ENDPOINT_TYPE (KIP-919). There are no
//! fenced brokers, so v2's `include_fenced_brokers` changes nothing.

use kafka_protocol::{
    messages::{DescribeClusterRequest, DescribeClusterResponse, describe_cluster_response::DescribeClusterBroker},
    protocol::StrBytes,
};
use wire::ErrorCode;

use crate::{
    acl::{self, ResourceType},
    broker,
    context::RequestContext,
    error::ApiError,
};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(super) async fn handle(
    ctx: &RequestContext,
    version: i16,
    request: &DescribeClusterRequest,
) -> Result<DescribeClusterResponse, ApiError> {
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => return Ok(error_response(version, request, ErrorCode::MismatchedEndpointType)),
        _ => return Ok(error_response(version, request, ErrorCode::UnsupportedEndpointType)),
    }
    let cluster_id = ctx.shared.store.cluster.cluster_id().await?;
    let leadership = ctx.shared.store.cluster.leadership();
    let brokers = broker::all(ctx, leadership.as_deref()).into_iter().map(|broker| {
        DescribeClusterBroker::default().with_broker_id(broker.id).with_host(broker.host).with_port(broker.port)
    });
    Ok(DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_string(cluster_id))
        .with_controller_id(broker::own(ctx).id)
        .with_brokers(brokers.collect())
        .with_cluster_authorized_operations(acl::authorized_operations(
            ResourceType::Cluster,
            request.include_cluster_authorized_operations,
        )))
}

/// Without the endpoint type: as in Kafka only an answer with brokers repeats it.
pub(super) fn error_response(
    _version: i16,
    _request: &DescribeClusterRequest,
    code: ErrorCode,
) -> DescribeClusterResponse {
    DescribeClusterResponse::default()
        .with_error_code(code.code())
        .with_error_message(Some(StrBytes::from_static_str(code.message())))
}
