use std::time::Duration;

use rand::Rng;

/// Growing, jittered waits between attempts, so that many who failed together do not try together.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// Starts at `initial`, doubles up to `max`.
    #[must_use]
    pub fn new(initial: Duration, max: Duration) -> Backoff {
        Backoff { next: initial, max }
    }

    /// Half to one and a half of the present step, then the step doubles.
    pub fn next_delay(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.max);
        step.mul_f64(rand::rng().random_range(0.5..1.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_maximum_with_jitter() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for step in [100, 200, 300, 300] {
            let delay = backoff.next_delay().as_millis();
            assert!((step / 2..=step * 3 / 2).contains(&delay), "{delay} for {step}");
        }
    }
}
