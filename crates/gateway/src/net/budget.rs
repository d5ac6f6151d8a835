//! Bounds the bytes of requests and of Fetch answers in memory, for the whole process.
//!
//! A request's bytes are reserved as they arrive, so that claiming a large frame costs others
//! nothing, and given back when its answer has been written. When a budget is used up, connections
//! stop reading, TCP pushes back to the clients, and nothing is refused; one connection at a time
//! may go on beyond the budget, or requests that have half arrived would wait for one another.
//! Produce has a budget of its own, so that neither kind of traffic can keep the other from being
//! served.
//!
//! What a batch becomes when it is decompressed is bounded too: a few batches are inflated at a
//! time, and what they came to is reserved until it is stored.
//!
//! A Fetch answer is held until its client has taken it. It gets a part of what is free, never all
//! of it: clients that do not read their answers make those of others smaller at first.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::LimitsConfig;

/// The budgets of the process.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    produce: Budget,
    other: Budget,
    inflating: Arc<Semaphore>,
    inflated: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
struct Budget {
    bytes: Arc<Semaphore>,
    /// One place, for the request that goes on when the bytes are used up.
    beyond: Arc<Semaphore>,
}

/// Batches that are decompressed at the same time; each may come to `--max-request-bytes` before
/// its size is known.
const INFLATING: usize = 4;

/// The part of the free bytes that one Fetch answer may take.
const ANSWER_PART: usize = 8;
/// Bytes that an answer may take even if they are more than its part: it waits until they are free.
const LEAST_ANSWER: usize = 1024 * 1024;

/// Bytes that are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Budgets {
    pub(crate) fn new(config: &LimitsConfig) -> Self {
        let bytes = |bytes: u64| {
            let permits = usize::try_from(bytes).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(permits))
        };
        let budget = |limit: u64| Budget { bytes: bytes(limit), beyond: Arc::new(Semaphore::new(1)) };
        Self {
            produce: budget(config.produce_memory_bytes),
            other: budget(config.other_memory_bytes),
            inflating: Arc::new(Semaphore::new(INFLATING)),
            inflated: bytes(config.produce_memory_bytes),
            answers: bytes(config.fetch_memory_bytes),
        }
    }

    /// For a Produce request of which nothing has arrived yet.
    pub(crate) fn produce(&self) -> Arriving {
        self.produce.arriving()
    }

    /// The same for a request of any other API.
    pub(crate) fn other(&self) -> Arriving {
        self.other.arriving()
    }

    /// Waits for one of the few places in which a batch may be decompressed.
    pub(crate) async fn decompression(&self) -> Decompression {
        Decompression { place: self.inflating.clone().acquire_owned().await.ok(), budget: self.inflated.clone() }
    }

    /// Waits for memory for an answer of at most `wanted` bytes.
    pub(crate) async fn answer(&self, wanted: usize) -> AnswerSpace {
        let part = (self.answers.available_permits() / ANSWER_PART).max(LEAST_ANSWER);
        let permits = u32::try_from(wanted.min(part)).unwrap_or(u32::MAX);
        AnswerSpace(self.answers.clone().acquire_many_owned(permits).await.ok())
    }
}

impl Budget {
    fn arriving(&self) -> Arriving {
        Arriving { budget: self.clone(), bytes: None, beyond: None }
    }
}

/// What a request that is being read holds of its budget, until its answer has been written.
#[derive(Debug)]
pub(crate) struct Arriving {
    budget: Budget,
    bytes: Option<OwnedSemaphorePermit>,
    beyond: Option<OwnedSemaphorePermit>,
}

impl Arriving {
    /// Waits until `more` bytes are free, or for the one place that needs none.
    pub(crate) async fn grow(&mut self, more: usize) {
        if self.beyond.is_some() {
            return;
        }
        let permits = u32::try_from(more).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            bytes = self.budget.bytes.clone().acquire_many_owned(permits) => match (&mut self.bytes, bytes) {
                (Some(before), Ok(bytes)) => before.merge(bytes),
                (before, bytes) => *before = bytes.ok(),
            },
            beyond = self.budget.beyond.clone().acquire_owned() => self.beyond = beyond.ok(),
        }
    }
}

/// Memory for one Fetch answer.
#[derive(Debug)]
pub(crate) struct AnswerSpace(Option<OwnedSemaphorePermit>);

impl AnswerSpace {
    /// Bytes that the answer may have.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Gives back what the answer does not need.
    pub(crate) fn keep(mut self, bytes: usize) -> Reserved {
        let spare = self.bytes().saturating_sub(bytes);
        drop(self.0.as_mut().and_then(|permit| permit.split(spare)));
        Reserved(self.0)
    }
}

/// What is reserved for a request's answer until it has been written; shared by the handler and the
/// connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerMemory(Arc<Mutex<Option<Reserved>>>);

impl AnswerMemory {
    /// Replaces what was reserved before.
    pub(crate) fn set(&self, reserved: Option<Reserved>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reserved;
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
        // Batches are below `u32::MAX` (config.rs), and the semaphores are never closed: the
        // fallbacks are for the type checker only.
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        let kept = Reserved(self.budget.clone().acquire_many_owned(permits).await.ok());
        drop(self.place);
        kept
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::config::Config;

    const SOON: Duration = Duration::from_millis(20);

    fn budgets(change: impl FnOnce(&mut LimitsConfig)) -> Budgets {
        let mut config = Config::defaults().server.limits;
        change(&mut config);
        Budgets::new(&config)
    }

    #[tokio::test]
    async fn a_full_budget_waits_and_leaves_the_other_one_alone() {
        let budgets = budgets(|config| (config.produce_memory_bytes, config.other_memory_bytes) = (1_000, 100));
        let (mut first, mut beyond) = (budgets.produce(), budgets.produce());
        first.grow(900).await;
        timeout(SOON, beyond.grow(200)).await.expect("one may go beyond");
        timeout(SOON, beyond.grow(5_000)).await.expect("and on");
        let mut waiting = budgets.produce();
        assert!(timeout(SOON, waiting.grow(200)).await.is_err());
        timeout(SOON, waiting.grow(50)).await.expect("what is free is free");
        timeout(SOON, budgets.other().grow(100)).await.expect("own budget");
        drop(first);
        timeout(SOON, waiting.grow(950)).await.expect("given back");
        drop(beyond);
        timeout(SOON, waiting.grow(1)).await.expect("the place is free again");
    }

    #[tokio::test]
    async fn answers_share_what_is_free() {
        let mib = 1024 * 1024;
        let budgets = budgets(|config| config.fetch_memory_bytes = 16 * mib);
        let mib = mib as usize;
        let first = budgets.answer(50 * mib).await;
        assert_eq!(first.bytes(), 2 * mib);
        let kept = first.keep(mib);
        let mut answers = vec![kept];
        for _ in 0..15 {
            let answer = timeout(SOON, budgets.answer(50 * mib)).await.expect("the least answer is free");
            answers.push(answer.keep(mib));
        }
        assert!(timeout(SOON, budgets.answer(50 * mib)).await.is_err());
        timeout(SOON, budgets.answer(0)).await.expect("nothing is always free");
        answers.pop();
        assert_eq!(timeout(SOON, budgets.answer(mib)).await.expect("given back").bytes(), mib);
    }
}
