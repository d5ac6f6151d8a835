//! Coming and going.

use store::StoreError;
use tokio::time::timeout;

use super::{handle::Membership, tenure::Tenure};

impl Membership {
    /// Returns when the other gateways know of this one, or are not likely to live. In a conflict they
    /// know the node by the process before.
    pub(crate) async fn known_to_others(&self) -> Result<(), StoreError> {
        if self.is_loading() || self.is_in_conflict() {
            return Ok(());
        }
        // A gateway that lives has looked by then.
        match timeout(self.lease / 2, self.cluster.seen_by_others(self.node.instance, self.lease)).await {
            Ok(seen) => seen,
            Err(_) => Ok(()),
        }
    }

    /// Lets other gateways have these slots, which nothing here serves any more; answers how many they
    /// were.
    pub(crate) async fn release(&self, slots: &[i32]) -> Result<u64, StoreError> {
        let released = self.cluster.release_slots(self.node.instance, Some(slots)).await?;
        self.tenure.send_modify(|tenure| tenure.release(slots));
        Ok(released)
    }

    /// At the end of the process: other gateways, and the next process of this one, need not wait.
    pub(crate) async fn resign(&self) -> Result<(), StoreError> {
        self.tenure.send_replace(Tenure::default());
        self.cluster.release_slots(self.node.instance, None).await?;
        self.cluster.remove_node(self.node.node_id, self.node.instance).await?;
        Ok(())
    }
}
