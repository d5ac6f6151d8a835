use std::{fmt, sync::Arc, time::Duration};

use store::{Cluster, Node, SlotLease};
use tokio::sync::watch;
use uuid::Uuid;
use wire::ErrorCode;

use super::tenure::{OwnedSlots, Tenure};
use crate::config::{HostPort, ServerConfig};

/// This gateway among all gateways of the tables.
pub(crate) struct Membership {
    pub(super) cluster: Cluster,
    /// This gateway as other gateways see it.
    pub(super) node: Node,
    /// How long other gateways wait for a sign of life.
    pub(super) lease: Duration,
    pub(super) tenure: watch::Sender<Tenure>,
    /// The lease is over: other gateways may have all the slots that this one had. Changes while
    /// `tenure` is locked, so that the two agree.
    pub(super) cut_off: watch::Sender<bool>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Membership {
    pub(crate) fn new(config: &ServerConfig, cluster: Cluster, advertised: &HostPort) -> Arc<Self> {
        let node = Node {
            node_id: config.node_id,
            host: advertised.host.clone(),
            port: i32::from(advertised.port),
            rack: None,
            instance: Uuid::new_v4(),
        };
        Arc::new(Self {
            cluster,
            node,
            lease: Duration::from_millis(config.groups.coordinator_lease_ms),
            tenure: watch::Sender::new(Tenure::default()),
            cut_off: watch::Sender::new(false),
        })
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Tells of every renewal and every loss.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Tenure> {
        self.tenure.subscribe()
    }

    /// Before the first renewal.
    pub(crate) fn is_loading(&self) -> bool {
        self.tenure.borrow().is_loading()
    }

    /// `None` before the first renewal.
    pub(crate) fn owned(&self) -> Option<OwnedSlots> {
        self.tenure.borrow().owned()
    }

    /// The slot of a group, if it is this gateway's now.
    pub(crate) fn slot_of(&self, group_id: &str) -> Result<SlotLease, ErrorCode> {
        self.tenure.borrow().slot_of(group_id, &self.node)
    }

    /// The gateway that coordinates a group.
    pub(crate) fn owner_of(&self, group_id: &str) -> Result<Node, ErrorCode> {
        self.tenure.borrow().owner_of(group_id, &self.node)
    }

    /// Another process had this gateway's node id when it looked last.
    pub(crate) fn is_in_conflict(&self) -> bool {
        self.tenure.borrow().in_conflict
    }
}
