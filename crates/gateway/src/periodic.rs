//! Work that is repeated as long as the gateway serves: when it is due, and what follows a failure.

use std::{any::Any, fmt::Display, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use rand::Rng;
use store::{Backoff, StoreError};
use tokio::time::{Instant, timeout};

/// The first pause after a failure, unless the period is short.
const FIRST_RETRY: Duration = Duration::from_millis(200);
/// The longest one.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// What may pass by itself is told when it has not in this time.
const TOLD_AFTER: Duration = Duration::from_secs(60);

/// One such work, done for `C`.
pub(crate) struct Periodic<C: 'static> {
    /// What it does, as in "cannot renew the coordinator slots".
    pub(crate) name: &'static str,
    /// From the start of a run to the start of the next, give or take a fifth, so that gateways that were started
    /// together spread over time.
    pub(crate) period: fn(&C) -> Duration,
    /// Resolves when this gateway may run it: [`always`], or while it has the lease on work that one gateway does for
    /// all.
    pub(crate) turn: fn(&C) -> BoxFuture<'_, ()>,
    /// Resolves when a run is due before its time: [`never`], or an event.
    pub(crate) wake: fn(&C) -> BoxFuture<'_, ()>,
    pub(crate) run: fn(Arc<C>) -> BoxFuture<'static, Result<Next, StoreError>>,
}

/// When it is to be run again after a run that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// After its period.
    InTime,
    /// Something was in the way: as after a failure that nobody needs to hear of.
    Soon,
    Never,
}

/// A turn of every gateway's.
pub(crate) fn always<C>(_: &C) -> BoxFuture<'_, ()> {
    Box::pin(std::future::ready(()))
}

/// A period that nothing cuts short.
pub(crate) fn never<C>(_: &C) -> BoxFuture<'_, ()> {
    Box::pin(std::future::pending())
}

impl<C> Periodic<C> {
    /// Runs it at once and then again and again, until [`Next::Never`]. After a failure it is tried again with growing
    /// pauses, at most half of the period and half a minute. `tell` hears of failures that trying again soon does not
    /// help.
    pub(crate) async fn repeat(self, context: Arc<C>, tell: impl Fn(&str, &dyn Display)) {
        let mut failing: Option<(Instant, Backoff)> = None;
        loop {
            (self.turn)(&context).await;
            let period = (self.period)(&context);
            // Before the run, so that no event is lost that comes while it lasts.
            let wake = (self.wake)(&context);
            let start = Instant::now();
            let outcome = AssertUnwindSafe((self.run)(Arc::clone(&context))).catch_unwind().await;
            let pause = match outcome {
                Ok(Ok(Next::Never)) => return,
                Ok(Ok(Next::InTime)) => {
                    failing = None;
                    jittered(period).saturating_sub(start.elapsed())
                }
                other => {
                    let (since, backoff) = failing.get_or_insert_with(|| (start, backoff(period)));
                    match other {
                        Ok(Err(error)) if !error.passes_by_itself() || since.elapsed() >= TOLD_AFTER => {
                            tell(self.name, &error);
                        }
                        Ok(_) => {}
                        Err(panic) => tell(self.name, &format_args!("a panic, which is a bug: {}", words(&*panic))),
                    }
                    backoff.next_delay()
                }
            };
            // The time-out is what is waited for.
            let _ = timeout(pause, wake).await;
        }
    }
}

fn backoff(period: Duration) -> Backoff {
    Backoff::new(FIRST_RETRY.min(period / 4), LONGEST_RETRY.min(period / 2))
}

fn jittered(period: Duration) -> Duration {
    period.mul_f64(rand::rng().random_range(0.8..1.2))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::{sync::Notify, time::sleep};

    use super::*;

    type Outcome = fn() -> Result<Next, StoreError>;

    /// How each run ends, the first one last; after them all is well.
    struct Runs {
        start: Instant,
        outcomes: Mutex<Vec<Outcome>>,
        at: Mutex<Vec<Duration>>,
        has_turn: Notify,
        woken: Notify,
    }

    const PERIOD: Duration = Duration::from_secs(600);

    fn work() -> Periodic<Runs> {
        Periodic {
            name: "work",
            period: |_| PERIOD,
            turn: always,
            wake: |runs| Box::pin(runs.woken.notified()),
            run: |runs| {
                Box::pin(async move {
                    runs.at.lock().unwrap().push(runs.start.elapsed());
                    let outcome = runs.outcomes.lock().unwrap().pop();
                    outcome.map_or(Ok(Next::InTime), |outcome| outcome())
                })
            },
        }
    }

    fn runs(mut outcomes: Vec<Outcome>) -> Arc<Runs> {
        outcomes.reverse();
        let (outcomes, at) = (Mutex::new(outcomes), Mutex::default());
        Arc::new(Runs { start: Instant::now(), outcomes, at, has_turn: Notify::new(), woken: Notify::new() })
    }

    /// The pauses between the runs that begin within `limit`, in seconds, and what was told.
    async fn pauses(work: Periodic<Runs>, runs: &Arc<Runs>, limit: Duration) -> (Vec<f64>, Vec<String>) {
        let told = Mutex::new(Vec::new());
        let tell = |name: &str, error: &dyn Display| told.lock().unwrap().push(format!("{name}: {error}"));
        let _ = timeout(limit, work.repeat(Arc::clone(runs), tell)).await;
        let at = runs.at.lock().unwrap();
        let pauses = at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        (pauses, told.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_repeated_after_its_period_with_jitter() {
        let (pauses, told) = pauses(work(), &runs(Vec::new()), PERIOD * 20).await;
        assert!(pauses.len() >= 16 && told.is_empty(), "{pauses:?} {told:?}");
        assert!(pauses.iter().all(|pause| (479.9..720.1).contains(pause)), "{pauses:?}");
        assert!(pauses.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1.0), "all the same: {pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_run_takes_is_part_of_the_period() {
        let mut slow = work();
        slow.run = |runs| {
            Box::pin(async move {
                runs.at.lock().unwrap().push(runs.start.elapsed());
                sleep(PERIOD / 2).await;
                Ok(Next::InTime)
            })
        };
        let (pauses, _) = pauses(slow, &runs(Vec::new()), PERIOD * 5).await;
        assert!(!pauses.is_empty() && pauses.iter().all(|pause| (479.9..720.1).contains(pause)), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_with_growing_pauses_and_told_when_they_last() {
        let away = || Err(StoreError::Unavailable("away".to_owned()));
        let (pauses, told) = pauses(work(), &runs(vec![away; 12]), Duration::from_secs(200)).await;
        assert!(pauses[0] <= 0.31 && pauses[1] <= 0.61 && pauses.iter().all(|pause| *pause <= 45.1), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause > 10.0), "{pauses:?}");
        assert!(!told.is_empty() && told.len() < pauses.len() / 2, "{told:?}");
        assert!(told[0].starts_with("work: ") && told[0].ends_with("away"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_pass_is_told_at_once_and_a_panic_ends_nothing() {
        let outcomes: Vec<Outcome> = vec![
            || Err(StoreError::InvalidConfig("wrong".to_owned())),
            || panic!("out of order"),
            || Ok(Next::Soon),
            || Ok(Next::InTime),
            || Ok(Next::Never),
        ];
        let (pauses, told) = pauses(work(), &runs(outcomes), PERIOD * 10).await;
        assert_eq!(pauses.len(), 4, "{pauses:?}");
        assert!(pauses[..3].iter().all(|pause| *pause < 2.0) && pauses[3] > 479.0, "{pauses:?}");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("wrong") && told[1].contains("out of order"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_for_its_turn_and_is_woken_before_its_time() {
        let mut shared = work();
        shared.turn = |runs| Box::pin(runs.has_turn.notified());
        let runs = runs(Vec::new());
        let (first, second) = (Duration::from_secs(50), Duration::from_secs(70));
        let events = async {
            sleep(first).await;
            runs.has_turn.notify_one();
            sleep(second - first).await;
            runs.has_turn.notify_one();
            runs.woken.notify_one();
        };
        tokio::join!(pauses(shared, &runs, Duration::from_secs(300)), events);
        assert_eq!(*runs.at.lock().unwrap(), [first, second]);
    }
}
