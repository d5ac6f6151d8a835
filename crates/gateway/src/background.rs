//! Tasks that run beside the requests: the schema, its time partitions, the sequence ledger, and
//! whether the gateway is ready.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rand::Rng;
use store::{Backoff, StoreError};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::Shared;

/// Between two looks at the time partitions. A look costs little, and the premade partitions last
/// for many of them.
const UPKEEP: Duration = Duration::from_secs(600);
/// Between two looks at Postgres.
const READINESS: Duration = Duration::from_secs(2);
/// One look of this many is at the schema too, which takes several statements.
const SCHEMA_LOOK: u32 = 15;
/// Between two looks at the sequence ledger: far less than the shortest retention, an hour.
const LEDGER: Duration = Duration::from_secs(300);

/// Between two looks at the leases on partitions: a quarter of the shortest session timeout.
const LEASES: Duration = Duration::from_millis(1_500);
/// One look of this many is at the registrations too.
const REGISTRATIONS: u32 = 20;
/// Between two looks for offsets that are past the end of the log.
const STUCK_AHEAD: Duration = Duration::from_secs(60);
/// How long the start waits for the coordinator slots.
const FIRST_SLOTS: Duration = Duration::from_secs(2);

/// Starts all of them; each ends when the gateway drains.
pub(crate) fn start(shared: &Arc<Shared>, prepared: bool) {
    let task = |task: fn(Arc<Shared>, bool) -> futures::future::BoxFuture<'static, ()>| {
        let (shared, shutdown) = (shared.clone(), shared.shutdown.clone());
        shutdown.clone().spawn(async move {
            tokio::select! {
                () = task(shared, prepared) => {}
                () = shutdown.draining() => {}
            }
        });
    };
    task(|shared, prepared| Box::pin(keep_ready(shared, prepared)));
    task(|shared, _| Box::pin(keep_time_partitions(shared)));
    task(|shared, _| Box::pin(keep_ledger(shared)));
    task(|shared, _| Box::pin(keep_slots(shared)));
    task(|shared, _| Box::pin(arrange_slots(shared)));
    task(|shared, _| Box::pin(async move { shared.membership.fence_in_time().await }));
    task(|shared, _| Box::pin(async move { shared.coordinator.follow_slots().await }));
    task(|shared, _| Box::pin(keep_leases(shared)));
    task(|shared, _| Box::pin(expire_offsets(shared)));
    task(|shared, _| Box::pin(find_stuck_ahead(shared)));
    task(|shared, _| Box::pin(async move { shared.store.log.watch(CancellationToken::new()).await }));
    task(|shared, _| Box::pin(async move { shared.store.log.exchange_hints().await }));
}

/// Brings the schema up, or only looks at it with `--no-migrate`.
pub(crate) async fn prepare(shared: &Shared) -> Result<(), StoreError> {
    if shared.config.no_migrate {
        return shared.store.schema.schema_status().await?.require();
    }
    let report = shared.store.schema.migrate().await?;
    if !report.applied.is_empty() {
        info!(scripts = report.applied.join(", "), "schema brought up to date");
    }
    Ok(())
}

/// Repeats [`prepare`] until it has worked, then tells when Postgres or the schema is lost.
async fn keep_ready(shared: Arc<Shared>, mut prepared: bool) {
    let mut backoff = retry();
    for look in 0_u32.. {
        let state = match prepared {
            false => prepare(&shared).await,
            true if look.is_multiple_of(SCHEMA_LOOK) || shared.readiness.reason().is_some() => {
                shared.store.schema.schema_status().await.and_then(|status| status.require())
            }
            true => shared.store.acquire().await.map(drop),
        };
        prepared |= state.is_ok();
        let pause = if prepared { jittered(READINESS) } else { backoff.next_delay() };
        tell(&shared, state.err());
        sleep(pause).await;
    }
}

fn tell(shared: &Shared, error: Option<StoreError>) {
    let reason = error.map(|error| error.to_string());
    if shared.readiness.set(reason.clone()) {
        match reason {
            None => info!("ready"),
            Some(reason) => warn!(reason, "not ready"),
        }
    }
}

/// Partitions for now and ahead, and the indexes that a migration had to leave for later. The first
/// look comes at once: a gateway may have been down for long.
async fn keep_time_partitions(shared: Arc<Shared>) {
    let mut backoff = retry();
    loop {
        let kept = match shared.store.schema.ensure_time_partitions().await {
            Ok(_) => shared.store.schema.build_indexes().await,
            Err(error) => Err(error),
        };
        let pause = match kept {
            Ok(true) => {
                backoff = retry();
                jittered(UPKEEP)
            }
            Ok(false) => backoff.next_delay(),
            Err(error) => {
                if shared.readiness.reason().is_none() {
                    warn!(%error, "cannot look after the time partitions; will try again");
                }
                backoff.next_delay()
            }
        };
        sleep(pause).await;
    }
}

/// The first look comes at once: the last gateway may have been killed.
async fn keep_ledger(shared: Arc<Shared>) {
    let mut backoff = retry();
    loop {
        let pause = match shared.store.log.update_ledger().await {
            Ok(_) => {
                backoff = retry();
                jittered(LEDGER)
            }
            Err(error) => {
                failed(&shared, &error, "cannot write the sequence ledger");
                backoff.next_delay()
            }
        };
        sleep(pause).await;
    }
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

/// This gateway among the others, and its coordinator slots.
async fn keep_slots(shared: Arc<Shared>) {
    let lease = Duration::from_millis(shared.config.groups.coordinator_lease_ms);
    let retry = || Backoff::new(Duration::from_millis(200), lease / 6);
    let mut backoff = retry();
    loop {
        // The lease runs from here, however long Postgres takes.
        let start = Instant::now();
        let pause = match shared.membership.renew().await {
            Ok(()) => {
                backoff = retry();
                // Within the time that the others give the process before.
                let period = if shared.membership.is_in_conflict() { lease / 24 } else { jittered(lease / 4) };
                period.saturating_sub(start.elapsed())
            }
            Err(error) => {
                failed(&shared, &error, "cannot renew the coordinator slots");
                backoff.next_delay()
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = shared.store.cluster.nodes_changed() => {}
        }
    }
}

/// Beside the renewals, which must not wait for it.
async fn arrange_slots(shared: Arc<Shared>) {
    let mut backoff = retry();
    let mut tenure = shared.membership.subscribe();
    loop {
        tenure.mark_unchanged();
        match shared.coordinator.arrange().await {
            Ok(()) => {
                backoff = retry();
                // The membership is the gateway's own, so the channel is never closed.
                drop(tenure.changed().await);
            }
            Err(error) => {
                failed(&shared, &error, "cannot load the groups of new coordinator slots");
                sleep(backoff.next_delay()).await;
            }
        }
    }
}

async fn keep_leases(shared: Arc<Shared>) {
    for round in 0_u32.. {
        let all = round.is_multiple_of(REGISTRATIONS);
        if let Err(error) = shared.coordinator.keep_leases(all).await {
            failed(&shared, &error, "cannot lease the members' partitions");
        }
        shared.coordinator.upkeep_due(LEASES).await;
    }
}

async fn expire_offsets(shared: Arc<Shared>) {
    let interval = Duration::from_millis(shared.config.groups.offsets_retention_check_interval_ms);
    loop {
        match shared.coordinator.expire().await {
            Ok(0) => {}
            Ok(offsets) => info!(offsets, "committed offsets expired"),
            Err(error) => failed(&shared, &error, "cannot expire offsets"),
        }
        sleep(jittered(interval)).await;
    }
}

async fn find_stuck_ahead(shared: Arc<Shared>) {
    loop {
        if let Err(error) = shared.coordinator.find_stuck_ahead().await {
            failed(&shared, &error, "cannot look for offsets past the end");
        }
        sleep(jittered(STUCK_AHEAD)).await;
    }
}

/// Tells what will be tried again, unless that was to be expected or the gateway is not ready, which says more.
fn failed(shared: &Shared, error: &StoreError, what: &str) {
    if !error.passes_by_itself() && shared.readiness.reason().is_none() {
        warn!(%error, "{what}; will try again");
    }
}

fn retry() -> Backoff {
    Backoff::new(Duration::from_millis(200), Duration::from_secs(30))
}

/// Spreads what several gateways would do at the same moment.
fn jittered(period: Duration) -> Duration {
    period.mul_f64(rand::rng().random_range(0.8..1.2))
}
