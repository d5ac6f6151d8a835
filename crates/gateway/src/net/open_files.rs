//! The system's limit of open files. Connections of Kafka clients leave free what the rest of the process needs:
//! without it no connection to Postgres opens, and nobody is accepted any more, not even to be told so.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// What is open beside the connections to Postgres and to Kafka clients: standard streams, listeners, the runtime's
/// own, HTTP connections, a refused client until it is closed.
const OTHERS: u64 = 40;
/// A migration's, the lease's and the one that listens, beside those of `--db-max-connections`.
const MORE_POSTGRES: u64 = 4;

/// The limit leaves nothing for Kafka clients.
#[derive(Debug, thiserror::Error)]
#[error("the limit of open files is {limit}, and {needed} are needed beside Kafka connections: raise it (ulimit -n)")]
pub struct TooFewOpenFiles {
    limit: u64,
    needed: u64,
}

/// Raises the limit as far as `kafka` connections and `postgres` ones need and the system allows. Returns how many
/// Kafka connections fit into it, at most `kafka`; a lower number is told in a warning.
///
/// # Errors
/// [`TooFewOpenFiles`] if that is none.
pub(crate) fn kafka_connections(kafka: u32, postgres: u32) -> Result<u32, TooFewOpenFiles> {
    let needed = u64::from(postgres) + MORE_POSTGRES + OTHERS;
    let wanted = needed + u64::from(kafka);
    let limit = raised(wanted);
    let Some(left) = limit.checked_sub(needed).filter(|left| *left > 0) else {
        return Err(TooFewOpenFiles { limit, needed });
    };
    let fitting = left.min(u64::from(kafka)) as u32;
    if fitting < kafka {
        warn!(
            max_connections = kafka,
            possible = fitting,
            open_files = limit,
            "the limit of open files allows fewer Kafka connections than --max-connections; raise it to {wanted} (ulimit -n)"
        );
    }
    Ok(fitting)
}

/// The limit after an attempt to make it at least `wanted`.
fn raised(wanted: u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::MAX };
    if soft >= wanted {
        return soft;
    }
    let higher = wanted.min(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, higher, hard) {
        Ok(()) => higher,
        Err(_) => soft, // some systems have a lower one of their own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_do_not_fit_are_cut_to_what_does() {
        assert_eq!(kafka_connections(10, 16).unwrap(), 10);
        let few = kafka_connections(1, u32::MAX).unwrap_err().to_string();
        assert!(few.contains("4294967339 are needed"), "{few}");
    }
}
