//! Bounds the bytes of requests in flight for the whole process.
//!
//! A request's bytes are reserved before its body is read and given back when its answer has been
//! written. When a budget is used up, connections stop reading, TCP pushes back to the clients,
//! and nothing is refused. Produce has a budget of its own, so that neither kind of traffic can
//! keep the other from being served.
//!
//! What a batch becomes when it is decompressed is bounded too: a few batches are inflated at a
//! time, and what they came to is reserved until it is stored.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{api, config::ServerConfig};

/// The two budgets of the process.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    produce: Arc<Semaphore>,
    other: Arc<Semaphore>,
    inflating: Arc<Semaphore>,
    inflated: Arc<Semaphore>,
}

/// Batches that are decompressed at the same time; each may come to `--max-request-bytes` before
/// its size is known.
const INFLATING: usize = 4;

/// Bytes that are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Budgets {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let budget = |bytes: u64| {
            let permits = usize::try_from(bytes).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(permits))
        };
        Self {
            produce: budget(config.produce_memory_bytes),
            other: budget(config.other_memory_bytes),
            inflating: Arc::new(Semaphore::new(INFLATING)),
            inflated: budget(config.produce_memory_bytes),
        }
    }

    /// Waits until `bytes` are free. Frames are served in the order in which they ask, so a large
    /// one is not overtaken for ever.
    pub(crate) async fn reserve(&self, api_key: i16, bytes: usize) -> Reserved {
        let budget = if api_key == api::PRODUCE { &self.produce } else { &self.other };
        take(budget, bytes).await
    }

    /// Waits for one of the few places in which a batch may be decompressed.
    pub(crate) async fn decompression(&self) -> Decompression {
        Decompression { place: self.inflating.clone().acquire_owned().await.ok(), budget: self.inflated.clone() }
    }
}

/// A place to decompress one batch in.
#[derive(Debug)]
pub(crate) struct Decompression {
    place: Option<OwnedSemaphorePermit>,
    budget: Arc<Semaphore>,
}

impl Decompression {
    /// Gives the place back and keeps `bytes` of memory reserved instead. What is stored frees
    /// memory for those who wait here, so they never wait for one another.
    pub(crate) async fn keep(self, bytes: usize) -> Reserved {
        let kept = take(&self.budget, bytes).await;
        drop(self.place);
        kept
    }
}

/// Frames and batches are below `u32::MAX` (config.rs), and the semaphores are never closed: the
/// fallbacks are for the type checker only.
async fn take(budget: &Arc<Semaphore>, bytes: usize) -> Reserved {
    let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
    Reserved(budget.clone().acquire_many_owned(permits).await.ok())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_full_budget_waits_and_leaves_the_other_one_alone() {
        let mut config = Config::defaults().server;
        config.produce_memory_bytes = 1_000;
        config.other_memory_bytes = 100;
        let budgets = Budgets::new(&config);
        let held = budgets.reserve(api::PRODUCE, 900).await;
        assert!(timeout(Duration::from_millis(20), budgets.reserve(api::PRODUCE, 200)).await.is_err());
        let _other = timeout(Duration::from_millis(20), budgets.reserve(3, 100)).await.expect("own budget");
        drop(held);
        timeout(Duration::from_secs(1), budgets.reserve(api::PRODUCE, 1_000)).await.expect("given back");
    }
}
