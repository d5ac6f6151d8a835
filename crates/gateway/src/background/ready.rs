//! Whether the gateway is ready: the schema is up to date, and Postgres is there.

use std::{sync::Arc, time::Duration};

use store::StoreError;
use tracing::{info, warn};

use crate::{
    context::Shared,
    periodic::{Next, Periodic, always, never},
};

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

/// The same until it has worked.
pub(super) const PREPARATION: Periodic<Shared> = Periodic {
    name: "bring the schema up to date",
    // Halved, it bounds the pause between attempts: each takes locks that other clients of the tables wait for.
    period: |_| Duration::from_secs(60),
    turn: always,
    wake: never,
    run: |shared| Box::pin(prepare_once(shared)),
};

async fn prepare_once(shared: Arc<Shared>) -> Result<Next, StoreError> {
    let prepared = prepare(&shared).await;
    tell(&shared, prepared.as_ref().err());
    prepared.map(|()| Next::Never)
}

/// A connection is enough, while all is well.
pub(super) async fn look_at_postgres(shared: Arc<Shared>) -> Result<Next, StoreError> {
    if shared.readiness.reason().is_some() {
        return look_at_schema(shared).await;
    }
    let looked = shared.store.acquire().await.map(drop);
    tell(&shared, looked.as_ref().err());
    Ok(Next::InTime)
}

/// Somebody may have changed it. Several statements.
pub(super) async fn look_at_schema(shared: Arc<Shared>) -> Result<Next, StoreError> {
    if shared.readiness.is_prepared() {
        let looked = shared.store.schema.schema_status().await.and_then(|status| status.require());
        tell(&shared, looked.as_ref().err());
    }
    Ok(Next::InTime)
}

fn tell(shared: &Shared, error: Option<&StoreError>) {
    let reason = error.map(ToString::to_string);
    if shared.readiness.set(reason.clone()) {
        match reason {
            None => info!("ready"),
            Some(reason) => warn!(reason, "not ready"),
        }
    }
}
