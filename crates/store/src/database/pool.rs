//! The bounded pool of a gateway (B059), and what every connection of it is set up with.

use std::{
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, Postgres, Row,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{
    config::{PostgresConfig, StoreConfig},
    error::{Backoff, StoreError},
};

/// A connection that was idle for longer is looked at before it is used: the network may have
/// dropped it. The pool hands out the one that was idle longest, so the connections of a gateway with
/// little to do are idle for seconds each, and looking at every one would double the statements.
const TRUSTED_IDLE: Duration = Duration::from_secs(30);
/// The server is looked at once in this time, over whatever connection is used next: it may have gone,
/// or have been demoted to a read-only standby (B027).
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// After a connection was found broken or read-only, every one is looked at for this long.
const DISTRUST: Duration = Duration::from_secs(30);
/// A gateway that fell off the network in a transaction holds partition locks until then.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(30);

/// A server that has refused the password all this time is not asked again at once: it may lock the
/// account after so many attempts.
const DENIED: Duration = Duration::from_millis(250);

/// The gateway's few sessions are meant to be idle for long, whatever the role's limit for forgotten
/// ones. Not SET, which is an error before PostgreSQL 14, where there is no such limit.
const STAY_IDLE: &str = "SELECT set_config('idle_session_timeout', '0', false) \
     WHERE current_setting('idle_session_timeout', true) <> '0'";

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The pool, and a gate before it that keeps requests from queueing up for a server that is down.
#[derive(Debug)]
pub(crate) struct Pool {
    connections: PgPool,
    watch: Arc<Watch>,
    gate: Mutex<Gate>,
    acquire_timeout: Duration,
}

/// Open while `shut_until` is past.
#[derive(Debug)]
struct Gate {
    last_success: Instant,
    shut_until: Instant,
    reason: String,
    backoff: Backoff,
}

impl Gate {
    fn new() -> Gate {
        let now = Instant::now();
        let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        Gate { last_success: now, shut_until: now, reason: String::new(), backoff }
    }
}

impl Pool {
    /// Connects when first used, so that a start does not fail while Postgres is down. Must be
    /// called in a tokio runtime.
    pub(crate) fn new(config: &PostgresConfig) -> Result<Pool, StoreError> {
        let lifetime = Some(Duration::from_secs(30 * 60));
        Pool::of(config, config.db_min_connections, config.db_max_connections, lifetime, Arc::new(Watch::new()))
    }

    /// One connection more to the same server, for what must not wait until another is free. It is
    /// kept: a server that is full might not give another one.
    pub(crate) fn reserved(&self, config: &PostgresConfig) -> Result<Pool, StoreError> {
        Pool::of(config, 0, 1, None, Arc::clone(&self.watch))
    }

    fn of(
        config: &PostgresConfig,
        least: u32,
        most: u32,
        lifetime: Option<Duration>,
        watch: Arc<Watch>,
    ) -> Result<Pool, StoreError> {
        let setup: Arc<str> = session_setup(config).into();
        let options = connect_options(database_url(config)?)?;
        let port = options.get_port();
        let admitting = Arc::clone(&watch);
        let connections = PgPoolOptions::new()
            .max_connections(most)
            .min_connections(least)
            .acquire_timeout(config.acquire_timeout)
            .test_before_acquire(false) // Watch does that
            .max_lifetime(lifetime)
            .after_connect(move |connection, _| {
                let setup = Arc::clone(&setup);
                Box::pin(async move { set_up(connection, port, &setup).await })
            })
            .before_acquire(move |connection, meta| {
                let watch = Arc::clone(&admitting);
                Box::pin(async move { Ok(watch.admit(connection, meta.idle_for).await) })
            })
            .connect_lazy_with(options);
        Ok(Pool { connections, watch, gate: Mutex::new(Gate::new()), acquire_timeout: config.acquire_timeout })
    }

    pub(crate) fn connections(&self) -> &PgPool {
        &self.connections
    }

    /// Waits for a connection; fails at once while the server is known to be down.
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.pass_gate()?;
        match self.connections.acquire().await {
            Ok(connection) => {
                let mut gate = self.lock_gate();
                if !gate.reason.is_empty() {
                    *gate = Gate::new();
                }
                gate.last_success = Instant::now();
                Ok(connection)
            }
            Err(sqlx::Error::PoolTimedOut) => Err(self.shut_gate(StoreError::Unavailable(format!(
                "no connection within {:?}: the server is down, unreachable, or all are in use",
                self.acquire_timeout
            )))),
            Err(error) => Err(self.shut_gate(StoreError::from(error))),
        }
    }

    /// Whether a connection that was kept for `idle_for` may be used again, by the same rules as one
    /// that the pool kept.
    pub(crate) async fn admits(&self, connection: &mut PgConnection, idle_for: Duration) -> bool {
        let admitted = timeout(self.acquire_timeout, self.watch.admit(connection, idle_for)).await;
        admitted.unwrap_or_else(|_| {
            self.watch.looked(false);
            false
        })
    }

    pub(crate) fn note_look(&self, usable: bool) {
        self.watch.looked(usable);
    }

    fn pass_gate(&self) -> Result<(), StoreError> {
        let gate = self.lock_gate();
        if Instant::now() < gate.shut_until {
            return Err(StoreError::Unavailable(gate.reason.clone()));
        }
        Ok(())
    }

    /// A pool whose connections are merely all in use keeps its gate open, and so does one that is
    /// denied another connection while those that it has are of use.
    fn shut_gate(&self, error: StoreError) -> StoreError {
        let mut gate = self.lock_gate();
        let now = Instant::now();
        let lately = match error {
            StoreError::Denied(_) => DENIED,
            _ => self.acquire_timeout,
        };
        let served_lately = now - gate.last_success < lately;
        if error.is_retriable() && !served_lately && now >= gate.shut_until {
            gate.reason = error.to_string();
            gate.shut_until = now + gate.backoff.next_delay();
        }
        error
    }

    fn lock_gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection outside the pool, set up alike but without statement and lock time-outs; for
/// migrations. The caller closes it.
pub(crate) async fn connect_alone(config: &PostgresConfig) -> Result<PgConnection, StoreError> {
    let unlimited =
        PostgresConfig { statement_timeout: Duration::ZERO, lock_timeout: Duration::ZERO, ..config.clone() };
    let connecting = async {
        let options = connect_options(database_url(config)?)?;
        let mut connection = options.connect().await?;
        match set_up(&mut connection, options.get_port(), &session_setup(&unlimited)).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                let _ = connection.close().await; // the first error is the one to tell
                Err(StoreError::from(error))
            }
        }
    };
    timeout(config.acquire_timeout, connecting)
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("connecting took too long".to_owned())))
}

/// One connection for LISTEN, which goes past a pooler where that is configured.
pub(crate) fn for_listening(config: &StoreConfig) -> Result<PgPool, StoreError> {
    let url = config.direct_database_url.as_deref().map_or_else(|| database_url(&config.postgres), Ok)?;
    let options = connect_options(url)?;
    let port = options.get_port();
    Ok(PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(config.postgres.acquire_timeout)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                crate::database::socket::set_options(port);
                let setup = format!("SET application_name = 'pgqueue-gateway listening'; {STAY_IDLE}");
                sqlx::raw_sql(AssertSqlSafe(setup)).execute(connection).await.map(drop)
            })
        })
        .connect_lazy_with(options))
}

fn database_url(config: &PostgresConfig) -> Result<&str, StoreError> {
    config
        .database_url
        .as_deref()
        .ok_or_else(|| StoreError::InvalidConfig("no database: set --database-url".to_owned()))
}

/// Nothing goes into the start-up packet that a pooler might refuse (B103).
fn connect_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    // The driver itself takes any scheme.
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(StoreError::InvalidConfig("database URL: must start with postgres://".to_owned()));
    }
    let options =
        PgConnectOptions::from_str(url).map_err(|error| StoreError::InvalidConfig(format!("database URL: {error}")))?;
    Ok(options.extra_float_digits(None))
}

/// SET instead of start-up parameters (B103). Generic plans: planning over many time partitions
/// costs more than running (storage.md D5). Read committed: who has waited for a lock must see what its
/// last holder has committed. No just-in-time compilation: a generic plan over many
/// time partitions looks costly, and compiling it takes a second where running takes milliseconds.
fn session_setup(config: &PostgresConfig) -> String {
    format!(
        "SET application_name = 'pgqueue-gateway'; \
         SET plan_cache_mode = force_generic_plan; \
         SET default_transaction_isolation = 'read committed'; \
         SET jit = off; \
         SET statement_timeout = {}; \
         SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}; \
         {STAY_IDLE}; \
         SELECT set_config('synchronous_commit', 'on', false) \
          WHERE current_setting('synchronous_commit') = 'off'",
        config.statement_timeout.as_millis(),
        config.lock_timeout.as_millis(),
        IDLE_IN_TRANSACTION.as_millis(),
    )
}

async fn set_up(connection: &mut PgConnection, port: u16, setup: &str) -> Result<(), sqlx::Error> {
    crate::database::socket::set_options(port);
    sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut *connection).await?;
    if is_read_only(connection).await? {
        let reason = "the server is read-only (a standby?)";
        return Err(sqlx::Error::Io(std::io::Error::other(reason)));
    }
    Ok(())
}

async fn is_read_only(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::raw_sql("SELECT current_setting('transaction_read_only')::bool").fetch_one(connection).await?.try_get(0)
}

/// Decides which connections are looked at before they are handed out.
#[derive(Debug)]
struct Watch {
    start: Instant,
    /// Milliseconds since `start`.
    last_check: AtomicU64,
    distrust_until: AtomicU64,
}

impl Watch {
    fn new() -> Watch {
        Watch { start: Instant::now(), last_check: AtomicU64::new(0), distrust_until: AtomicU64::new(0) }
    }

    /// `false`: the pool closes the connection and takes another.
    async fn admit(&self, connection: &mut PgConnection, idle_for: Duration) -> bool {
        let now = self.now();
        let check_due = now.saturating_sub(self.last_check.load(Ordering::Relaxed)) >= CHECK_EVERY.as_millis() as u64;
        if idle_for < TRUSTED_IDLE && !check_due && now >= self.distrust_until.load(Ordering::Relaxed) {
            return true;
        }
        // Before the look, so that others do not look at the same time.
        self.last_check.store(now, Ordering::Relaxed);
        let usable = matches!(is_read_only(connection).await, Ok(false));
        self.looked(usable);
        usable
    }

    fn looked(&self, usable: bool) {
        let now = self.now();
        self.last_check.store(now, Ordering::Relaxed);
        if !usable {
            self.distrust_until.store(now + DISTRUST.as_millis() as u64, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}
