//! What one gateway does for all of them: the one that has coordinator slot 0.
//!
//! The lease on that slot is enough. A live gateway always has it, or gets it when the lease of a dead one is over,
//! and all of this may wait for so long. It is only there to save work: each of these statements is harmless when two
//! gateways run it at the same moment, as one may that has lost the slot and does not know yet. Nothing here needs to
//! name the fencing number, therefore; work that does is to take it from [`Membership`](crate::membership::Membership).

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use store::StoreError;

use crate::{
    context::Shared,
    periodic::{Next, Periodic, never},
};

const SLOT: i32 = 0;

pub(super) const FOR_ALL: [Periodic<Shared>; 3] = [
    Periodic {
        name: "look after the time partitions",
        // A look costs little, and the premade partitions last for many of them.
        period: |_| Duration::from_secs(600),
        turn: slot_is_owned,
        wake: never,
        run: |shared| Box::pin(keep_time_partitions(shared)),
    },
    Periodic {
        name: "write the sequence ledger",
        // Far less than the shortest retention, an hour.
        period: |_| Duration::from_secs(300),
        turn: slot_is_owned,
        wake: never,
        run: |shared| Box::pin(async move { shared.store.log.update_ledger().await.map(|_| Next::InTime) }),
    },
    Periodic {
        name: "remove partition leases that ended",
        period: |_| Duration::from_secs(600),
        turn: slot_is_owned,
        wake: never,
        run: |shared| {
            Box::pin(async move { shared.store.groups.forget_partition_leases().await.map(|_| Next::InTime) })
        },
    },
];

/// Partitions for now and ahead, and the indexes that a migration had to leave for later.
async fn keep_time_partitions(shared: Arc<Shared>) -> Result<Next, StoreError> {
    shared.store.schema.ensure_time_partitions().await?;
    let complete = shared.store.schema.build_indexes().await?;
    Ok(if complete { Next::InTime } else { Next::Soon })
}

fn slot_is_owned(shared: &Shared) -> BoxFuture<'_, ()> {
    let mut tenure = shared.membership.subscribe();
    Box::pin(async move {
        let owned =
            tenure.wait_for(|tenure| tenure.owned().is_some_and(|owned| owned.share().any(|lease| lease.slot == SLOT)));
        // The membership is the gateway's own, so the channel is never closed.
        let _ = owned.await;
    })
}
