use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

use crate::partition::PartitionKey;

/// Partitions to which this gateway has appended since it last told other gateways.
#[derive(Default)]
pub(super) struct PendingHints {
    appended: Mutex<BTreeSet<PartitionKey>>,
    has_appended: Notify,
}

impl PendingHints {
    pub(super) fn add(&self, partition: PartitionKey) {
        self.appended.lock().unwrap_or_else(PoisonError::into_inner).insert(partition);
        self.has_appended.notify_one();
    }

    /// Waits until there are some.
    pub(super) async fn take(&self) -> Vec<PartitionKey> {
        self.has_appended.notified().await;
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *appended).into_iter().collect()
    }
}
