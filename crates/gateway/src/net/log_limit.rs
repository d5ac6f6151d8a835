//! At most one log line per peer and minute for what any stranger on the port can cause.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

const INTERVAL: Duration = Duration::from_secs(60);
/// Addresses remembered; beyond it nothing new is logged until old entries have passed.
const MAX_PEERS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    last: Mutex<HashMap<IpAddr, Instant>>,
}

impl LogLimit {
    /// Whether a line about this peer may be written now.
    pub(crate) fn allows(&self, peer: IpAddr) -> bool {
        self.allows_at(peer, Instant::now())
    }

    fn allows_at(&self, peer: IpAddr, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&peer).is_some_and(|at| now.duration_since(*at) < INTERVAL) {
            return false;
        }
        if last.len() >= MAX_PEERS {
            last.retain(|_, at| now.duration_since(*at) < INTERVAL);
            if last.len() >= MAX_PEERS {
                return false;
            }
        }
        last.insert(peer, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_peer_and_minute() {
        let limit = LogLimit::default();
        let (a, b) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let start = Instant::now();
        assert!(limit.allows_at(a, start));
        assert!(!limit.allows_at(a, start + Duration::from_secs(59)));
        assert!(limit.allows_at(b, start + Duration::from_secs(59)));
        assert!(limit.allows_at(a, start + Duration::from_secs(61)));
    }
}
