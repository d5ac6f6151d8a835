//! The sign of life that keeps the slots.

use std::sync::Arc;

use store::{Heartbeat, Node, StoreError};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{handle::Membership, tenure::Tenure};

impl Membership {
    /// Says that this gateway lives and renews its slots, as quickly as that can be told to other
    /// gateways: it waits for nothing but Postgres.
    pub(crate) async fn renew(&self) -> Result<(), StoreError> {
        let was_cut_off = self.fence_if_due();
        if was_cut_off {
            // What was sent before and comes late must not count, also where no other gateway took the slots.
            self.cluster.release_slots(self.node.instance, None).await?;
        }
        let lease_end = Instant::now() + self.lease;
        let (nodes, in_conflict) = match self.cluster.heartbeat_node(&self.node, self.lease).await? {
            Heartbeat::Live(nodes) => (nodes, false),
            Heartbeat::Conflict(other) => {
                if !self.is_in_conflict() {
                    self.tell_conflict(&other);
                }
                (self.cluster.live_nodes(self.lease).await?, true)
            }
        };
        let slots = self.cluster.keep_slots(self.node.instance, self.lease).await?;
        let is_alone = nodes.iter().all(|node| node.instance == self.node.instance);
        if Instant::now() >= lease_end || !was_cut_off && self.fence_if_due() {
            return Err(StoreError::Unavailable("the lease was over before it was renewed".to_owned()));
        }
        let owned = slots.of(self.node.instance).map(|lease| (lease.slot, lease)).collect();
        let lease_end = (!is_alone).then_some(lease_end);
        self.tenure.send_modify(|tenure| {
            *tenure = Tenure { slots: Some(Arc::new(slots)), owned, nodes, in_conflict, lease_end };
            if self.cut_off.send_if_modified(std::mem::take) {
                info!("the lease on the coordinator slots is renewed; serving again");
            }
        });
        Ok(())
    }

    fn tell_conflict(&self, other: &Node) {
        if (&other.host, other.port) == (&self.node.host, self.node.port) {
            let lease_ms = self.lease.as_millis() as u64;
            return info!(
                lease_ms,
                "a former process of this gateway was killed; its groups follow when its lease is over"
            );
        }
        warn!(
            node_id = other.node_id,
            host = other.host,
            port = other.port,
            "another gateway has this node id; give each gateway its own --node-id"
        );
    }
}
