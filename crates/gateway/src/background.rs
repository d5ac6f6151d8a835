//! Tasks that run beside the requests, from the start until the gateway drains.

mod for_all;
mod ready;

use std::{fmt::Display, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use store::StoreError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    context::Shared,
    periodic::{Next, Periodic, always, never},
};
pub(crate) use ready::prepare;

/// How long the start waits for the coordinator slots.
const FIRST_SLOTS: Duration = Duration::from_secs(2);

/// What each gateway does for itself.
const OWN: [Periodic<Shared>; 7] = [
    Periodic {
        name: "look at Postgres",
        period: |_| Duration::from_secs(2),
        turn: always,
        wake: never,
        run: |shared| Box::pin(ready::look_at_postgres(shared)),
    },
    Periodic {
        name: "look at the schema",
        period: |_| Duration::from_secs(30),
        turn: always,
        wake: never,
        run: |shared| Box::pin(ready::look_at_schema(shared)),
    },
    Periodic {
        name: "renew the coordinator slots",
        period: between_renewals,
        turn: always,
        wake: |shared| Box::pin(shared.store.cluster.nodes_changed()),
        run: |shared| Box::pin(async move { shared.membership.renew().await.map(|()| Next::InTime) }),
    },
    Periodic {
        // Beside the renewals, which must not wait for it.
        name: "load the groups of new coordinator slots",
        period: between_renewals,
        turn: always,
        wake: tenure_changed,
        run: |shared| Box::pin(async move { shared.coordinator.arrange().await.map(|()| Next::InTime) }),
    },
    Periodic {
        name: "lease the members' partitions",
        // A quarter of the shortest session timeout.
        period: |_| Duration::from_millis(1_500),
        turn: always,
        wake: |shared| Box::pin(shared.coordinator.assigned()),
        run: |shared| Box::pin(async move { shared.coordinator.keep_leases().await.map(|()| Next::InTime) }),
    },
    Periodic {
        // Of the groups that it coordinates.
        name: "expire offsets",
        period: |shared| Duration::from_millis(shared.config.groups.offsets_retention_check_interval_ms),
        turn: always,
        wake: never,
        run: |shared| Box::pin(expire_offsets(shared)),
    },
    Periodic {
        // Of these groups too.
        name: "look for offsets past the end",
        period: |_| Duration::from_secs(60),
        turn: always,
        wake: never,
        run: |shared| Box::pin(async move { shared.coordinator.find_stuck_ahead().await.map(|()| Next::InTime) }),
    },
];

/// Tasks that wait for events by themselves.
const ENDLESS: [fn(Arc<Shared>) -> BoxFuture<'static, ()>; 4] = [
    |shared| Box::pin(async move { shared.membership.fence_in_time().await }),
    |shared| Box::pin(async move { shared.coordinator.follow_slots().await }),
    |shared| Box::pin(async move { shared.store.log.watch(CancellationToken::new()).await }),
    |shared| Box::pin(async move { shared.store.log.exchange_hints().await }),
];

/// Starts all of them; each ends when the gateway drains. `prepared`: the schema is up to date.
pub(crate) fn start(shared: &Arc<Shared>, prepared: bool) {
    let preparation = (!prepared).then_some(ready::PREPARATION);
    for task in preparation.into_iter().chain(OWN).chain(for_all::FOR_ALL) {
        let telling = shared.clone();
        let tell = move |task: &str, error: &dyn Display| {
            // A gateway that is not ready has said why, and that says more.
            if telling.readiness.reason().is_none() {
                warn!(%error, "cannot {task}; will try again");
            }
        };
        until_drained(shared, task.repeat(shared.clone(), tell));
    }
    for task in ENDLESS {
        until_drained(shared, task(shared.clone()));
    }
}

fn until_drained(shared: &Shared, task: impl Future<Output = ()> + Send + 'static) {
    let shutdown = shared.shutdown.clone();
    shared.shutdown.spawn(async move {
        tokio::select! {
            () = task => {}
            () = shutdown.draining() => {}
        }
    });
}

/// A quarter of the lease, so that some may fail. In a conflict more often: the slots of this gateway's former process
/// are free when its lease is over, and are to be this one's before another gateway takes them.
fn between_renewals(shared: &Shared) -> Duration {
    let lease = shared.membership.lease();
    if shared.membership.is_in_conflict() { lease / 24 } else { lease / 4 }
}

fn tenure_changed(shared: &Shared) -> BoxFuture<'_, ()> {
    let mut tenure = shared.membership.subscribe();
    // The membership is the gateway's own, so the channel is never closed.
    Box::pin(async move { drop(tenure.changed().await) })
}

async fn expire_offsets(shared: Arc<Shared>) -> Result<Next, StoreError> {
    match shared.coordinator.expire().await? {
        0 => {}
        offsets => info!(offsets, "committed offsets expired"),
    }
    Ok(Next::InTime)
}

/// Before the first request, so that a client of a gateway that has just started finds its
/// coordinator. Without it the background goes on trying.
pub(crate) async fn first_slots(shared: &Shared) {
    let first = async {
        shared.membership.renew().await?;
        shared.coordinator.arrange().await
    };
    if let Ok(Err(error)) = timeout(FIRST_SLOTS, first).await {
        warn!(%error, "no coordinator slots yet; will try again");
    }
}

/// Before the first request too: clients that hear of different brokers from different gateways
/// drop connections, and with them what they have asked.
pub(crate) async fn known_to_others(shared: &Shared) {
    if let Err(error) = shared.membership.known_to_others().await {
        warn!(%error, "other gateways may not know of this one yet");
    }
}
