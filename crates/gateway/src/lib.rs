//! The server: Kafka's protocol on one side, the store's tables on the other.
//!
//! [`Gateway::start`] listens and serves until [`Handle::shutdown`].

pub mod api;
pub mod config;

mod acl;
mod background;
mod broker;
mod broker_config;
mod context;
mod coordinator;
mod error;
mod http;
mod membership;
mod net;
mod periodic;
mod readiness;
mod resolve;
mod session;
mod topic_config;
mod topic_creation;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use store::{Store, StoreError};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tracing::{info, warn};
use wire::FrameLimits;

use crate::{
    config::{Config, Contradiction, HostPort, ServerConfig},
    context::Shared,
    coordinator::Coordinator,
    membership::Membership,
    net::{
        budget::Budgets,
        listener,
        open_files::{self, TooFewOpenFiles},
        shutdown::Shutdown,
    },
    readiness::Readiness,
    resolve::Resolver,
    session::Listener,
};

/// What the last write of records and the closing of connections may take at shutdown, after the
/// connections of clients have had their time.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Settings(#[from] Contradiction),
    #[error(transparent)]
    OpenFiles(#[from] TooFewOpenFiles),
    #[error("cannot listen on {address} ({option}): {error}")]
    Listen { option: &'static str, address: SocketAddr, error: io::Error },
    #[error("{0}")]
    Database(StoreError),
}

/// The entry point.
#[derive(Debug)]
pub struct Gateway;

/// A running gateway. Dropping it does not stop it; see [`Handle::shutdown`].
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    kafka_addr: SocketAddr,
    http_addr: SocketAddr,
    writers: JoinSet<()>,
}

impl Gateway {
    /// Listens, brings the schema up to date and serves.
    ///
    /// A Postgres that cannot be reached is no error: clients get retriable answers and the gateway
    /// goes on trying.
    ///
    /// # Errors
    /// Settings that contradict one another, a limit of open files that leaves nothing for clients, an
    /// address that cannot be listened on, a database that refuses the user or cannot be migrated.
    pub async fn start(config: Config) -> Result<Handle, StartError> {
        config.check()?;
        let Config { store, mut server } = config;
        let limits = &mut server.limits;
        limits.max_connections =
            open_files::kafka_connections(limits.max_connections, store.postgres.db_max_connections)?;
        let store = Store::connect(store).map_err(StartError::Database)?;
        let kafka = bind("--listen", server.listen).await?;
        let http = bind("--http-listen", server.http_listen).await?;
        let (kafka, kafka_addr) = kafka;
        let (http, http_addr) = http;
        let advertised = server.advertise.clone().unwrap_or_else(|| own_address(kafka_addr));
        let listener = Arc::new(Listener { name: "PLAINTEXT", advertised });
        let shared = Arc::new(compose(server, store, &listener));
        shared.shutdown.spawn(http::run(http, shared.clone()));
        let prepared = match first_look(&shared).await {
            Ok(prepared) => prepared,
            Err(error) => {
                shared.shutdown.drain(Duration::ZERO).await;
                return Err(error);
            }
        };
        if prepared {
            background::first_slots(&shared).await;
        }
        background::start(&shared, prepared);
        if prepared {
            background::known_to_others(&shared).await;
        }
        let writers = shared.store.log.spawn_writers();
        shared.shutdown.spawn(listener::run(kafka, listener.clone(), shared.clone()));
        info!(kafka = %kafka_addr, advertised = %listener.advertised, http = %http_addr, "serving");
        Ok(Handle { shared, kafka_addr, http_addr, writers })
    }
}

impl Handle {
    /// Where the Kafka port listens.
    pub fn kafka_addr(&self) -> SocketAddr {
        self.kafka_addr
    }

    /// Where the HTTP port listens.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Takes no new connections and requests, gives running ones `--drain-ms` to finish, writes
    /// what was accepted and closes the database connections. Returns whether all finished by
    /// themselves.
    pub async fn shutdown(mut self) -> bool {
        let grace = Duration::from_millis(self.shared.config.drain_ms);
        let mut in_time = self.shared.shutdown.drain(grace).await;
        // Before the last records: clients are already looking for another coordinator.
        let _ = timeout(LAST_WRITES, self.shared.membership.resign()).await;
        self.shared.store.log.close_appends();
        in_time &= timeout(LAST_WRITES, async { while self.writers.join_next().await.is_some() {} }).await.is_ok();
        self.writers.abort_all();
        // The next start may be later than the retention. It is no failure of this shutdown when
        // Postgres is away: the start looks at the ledger too.
        let _ = timeout(LAST_WRITES, self.shared.store.log.update_ledger()).await;
        in_time &= timeout(LAST_WRITES, self.shared.store.close()).await.is_ok();
        if !in_time {
            warn!("some requests did not finish in time and were cut off");
        }
        in_time
    }
}

/// What all requests share.
fn compose(config: ServerConfig, store: Store, listener: &Listener) -> Shared {
    let shutdown = Shutdown::default();
    let membership = Membership::new(&config, store.cluster.clone(), &listener.advertised);
    Shared {
        apis: api::APIS,
        coordinator: Coordinator::new(&config.groups, store.clone(), membership.clone(), shutdown.clone()),
        membership,
        frame_limits: FrameLimits {
            produce: config.limits.max_request_bytes as usize,
            other: config.limits.max_other_request_bytes as usize,
        },
        budgets: Budgets::new(&config.limits),
        resolver: Resolver::new(store.clone()),
        config,
        store,
        shutdown,
        readiness: Readiness::default(),
        log_limit: Default::default(),
    }
}

async fn bind(option: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { option, address, error };
    let socket = listener::listen(address).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    Ok((socket, bound))
}

fn own_address(address: SocketAddr) -> HostPort {
    HostPort { host: address.ip().to_string(), port: address.port() }
}

/// Whether the schema is ready; `Ok(false)` when that must be tried again, an error when trying
/// again cannot help.
async fn first_look(shared: &Shared) -> Result<bool, StartError> {
    match background::prepare(shared).await {
        Ok(()) => {
            shared.readiness.set(None);
            Ok(true)
        }
        Err(error) if error.passes_by_itself() => {
            warn!(reason = %error, "not ready; starting all the same");
            shared.readiness.set(Some(error.to_string()));
            Ok(false)
        }
        Err(error) => Err(StartError::Database(error)),
    }
}
