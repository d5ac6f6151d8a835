//! Brokers as clients are told of them, the same by Metadata, FindCoordinator and DescribeCluster.

use std::collections::BTreeMap;

use kafka_protocol::{messages::BrokerId, protocol::StrBytes};
use store::Leadership;

use crate::context::RequestContext;

#[derive(Debug, Clone)]
pub(crate) struct Broker {
    pub(crate) id: BrokerId,
    pub(crate) host: StrBytes,
    pub(crate) port: i32,
}

impl From<&store::Node> for Broker {
    fn from(node: &store::Node) -> Self {
        Self { id: BrokerId(node.node_id), host: StrBytes::from_string(node.host.clone()), port: node.port }
    }
}

/// This gateway, under the address of the listener that the client has come by.
pub(crate) fn own(ctx: &RequestContext) -> Broker {
    let advertised = &ctx.session.listener.advertised;
    Broker {
        id: BrokerId(ctx.shared.config.node_id),
        host: StrBytes::from_string(advertised.host.clone()),
        port: i32::from(advertised.port),
    }
}

/// The gateways that lead, by node id, and this one whether it leads or not.
pub(crate) fn all(ctx: &RequestContext, leadership: Option<&Leadership>) -> Vec<Broker> {
    let leaders = leadership.into_iter().flat_map(|leadership| &leadership.leaders);
    let mut brokers: BTreeMap<i32, Broker> = leaders.map(|node| (node.node_id, Broker::from(node))).collect();
    brokers.insert(ctx.shared.config.node_id, own(ctx));
    brokers.into_values().collect()
}
