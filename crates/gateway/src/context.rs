//! What a handler may see.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use kafka_protocol::{messages::BrokerId, protocol::StrBytes};
use store::{SchemaProfile, Store};
use tokio_util::sync::CancellationToken;
use wire::FrameLimits;

use crate::{
    config::{HostPort, ServerConfig},
    coordinator::Coordinator,
    net::{
        budget::{Budgets, Held},
        log_limit::LogLimit,
        shutdown::Shutdown,
    },
    readiness::Readiness,
    topics::LastList,
};

/// Leader epoch of every partition. The log is one whichever gateway leads, and none is ever truncated,
/// so it never changes (api.md 3.2: "constant otherwise").
pub const LEADER_EPOCH: i32 = 0;

/// What all requests share.
#[derive(Debug)]
pub struct Shared {
    pub config: ServerConfig,
    pub store: Store,
    pub shutdown: Shutdown,
    pub readiness: Readiness,
    pub clock: Clock,
    pub(crate) schema_profile: SchemaProfile,
    /// Where clients reach this node.
    pub(crate) advertised: HostPort,
    pub(crate) frame_limits: FrameLimits,
    pub(crate) budgets: Budgets,
    pub(crate) log_limit: LogLimit,
    pub(crate) last_list: LastList,
    pub(crate) coordinator: Arc<Coordinator>,
}

/// One request's surroundings.
#[derive(Debug, Clone)]
pub struct RequestContext {
    pub shared: Arc<Shared>,
    pub peer: SocketAddr,
    pub client_id: Option<String>,
    /// Cancelled when the client is gone or the gateway drains: whoever waits answers at once with
    /// what there is.
    pub disconnected: CancellationToken,
    /// Memory of the answer, given back when it has been written.
    pub(crate) held: Held,
}

/// A broker as clients are told about it. Metadata, FindCoordinator and DescribeCluster all take it
/// from [`Shared::node`], so they can never disagree.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: BrokerId,
    pub host: StrBytes,
    pub port: i32,
}

impl From<store::Node> for Node {
    fn from(node: store::Node) -> Self {
        Self { id: BrokerId(node.node_id), host: StrBytes::from_string(node.host), port: node.port }
    }
}

impl Shared {
    /// This node under its advertised address.
    pub fn node(&self) -> Node {
        Node {
            id: BrokerId(self.config.node_id),
            host: StrBytes::from_string(self.advertised.host.clone()),
            port: i32::from(self.advertised.port),
        }
    }

    /// All live gateways by node id, this one among them.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.coordinator.nodes().into_iter().map(Node::from).collect()
    }

    /// Milliseconds since 1970, UTC.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// The wall clock, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub fn system() -> Self {
        Self::new(SystemTime::now)
    }

    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}
