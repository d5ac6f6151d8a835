//! A fresh database for each test, copied from a template that the migrations built once.
//!
//! The server is the one that `TEST_DATABASE_URL` names (a superuser's URL), or else a private one
//! that this test process starts and that goes away with it. Without PostgreSQL a test fails; it
//! is never skipped.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use local_postgres::{LocalPostgres, Settings};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use store::{SchemaProfile, Store, StoreConfig};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// A database of its own for one test.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
    store: Store,
    /// Whose it is.
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// `TEST_DATABASE_URL`: databases are dropped when their tests end.
    External,
    /// Goes away as a whole.
    OfProcess,
    Private(Box<LocalPostgres>),
}

impl TestDatabase {
    /// Migrated, in the lean profile.
    pub async fn new() -> TestDatabase {
        Self::with_profile(SchemaProfile::Lean).await
    }

    /// Migrated, with the keys of `profile`.
    pub async fn with_profile(profile: SchemaProfile) -> TestDatabase {
        static LEAN: OnceCell<String> = OnceCell::const_new();
        static DATAHUB: OnceCell<String> = OnceCell::const_new();
        let template = match profile {
            SchemaProfile::Lean => &LEAN,
            SchemaProfile::Datahub => &DATAHUB,
        };
        let template = template.get_or_init(|| build_template(profile)).await;
        Self::copy_of(template).await
    }

    /// With nothing in it.
    pub async fn empty() -> TestDatabase {
        Self::copy_of("template1").await
    }

    /// Migrated, with text in Postgres's `encoding`.
    pub async fn with_encoding(encoding: &str) -> TestDatabase {
        let database = Self::copy_of(&format!("template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'")).await;
        database.store.schema.migrate().await.expect("migrations");
        database
    }

    /// Migrated, on a server that the test may stop and kill: [`TestDatabase::server`].
    pub async fn on_private_server() -> TestDatabase {
        Self::on_private_server_with(&[]).await
    }

    /// The same with further lines of `postgresql.conf`: name and value.
    pub async fn on_private_server_with(settings: &[(&str, &str)]) -> TestDatabase {
        let server = start_server("private", settings);
        let url = server.url();
        let store = connect(&url);
        store.schema.migrate().await.expect("migrations");
        let name = "postgres".to_owned();
        TestDatabase { name, url, store, server: Server::Private(Box::new(server)) }
    }

    /// `postgres://…` as superuser.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A store on it with default settings.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Default settings for further stores on it.
    #[must_use]
    pub fn config(&self) -> StoreConfig {
        config(&self.url)
    }

    /// A further store on it, with settings changed from their defaults.
    ///
    /// # Panics
    /// If the settings are refused.
    pub fn store_with(&self, change: impl FnOnce(&mut StoreConfig)) -> Store {
        let mut config = self.config();
        change(&mut config);
        Store::connect(config).expect("sound settings")
    }

    /// A plain connection, for what other clients of the database would do.
    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the test database")
    }

    /// Makes `now()` an SQL expression, for example of `pg_catalog.now()`, as if the clock of the
    /// server differed: in sessions that begin after the first call, and in what they make. To be
    /// changed at any time.
    pub async fn set_clock(&self, now: &str) {
        let sql = format!(
            "CREATE SCHEMA IF NOT EXISTS clock; \
             CREATE OR REPLACE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$SELECT {now}$$; \
             DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = clock, pg_catalog', current_database()); END$$"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.connection().await).await.expect("another clock");
    }

    /// The private server.
    #[must_use]
    pub fn server(&self) -> &LocalPostgres {
        match &self.server {
            Server::Private(server) => server,
            _ => panic!("only a database made by on_private_server has a server of its own"),
        }
    }

    async fn copy_of(template: &str) -> TestDatabase {
        let name = unique_name("test");
        administrate(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        let url = url_of(&name);
        let store = connect(&url);
        let server = if external_url().is_some() { Server::External } else { Server::OfProcess };
        TestDatabase { name, url, store, server }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if matches!(self.server, Server::External) {
            let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
            // Drop is not async, and the test's runtime may be ending.
            let dropping = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(administrate(&statement));
            });
            let _ = dropping.join(); // a left-over database is no failure of the test
        }
    }
}

async fn build_template(profile: SchemaProfile) -> String {
    let name = unique_name("template");
    administrate(&format!("CREATE DATABASE {name} TEMPLATE template1")).await;
    let mut config = config(&url_of(&name));
    config.postgres.schema_profile = profile;
    let store = Store::connect(config).expect("sound settings");
    store.schema.migrate().await.expect("migrations");
    store.close().await; // nobody may be connected to a database that is copied
    name
}

fn connect(url: &str) -> Store {
    Store::connect(config(url)).expect("default settings")
}

/// Default settings, but that no connection is made before it is used: tests count connections.
fn config(url: &str) -> StoreConfig {
    let mut config = StoreConfig::new(url);
    config.postgres.db_min_connections = 0;
    config
}

async fn administrate(statement: &str) {
    let mut connection = PgConnection::connect(&url_of("postgres")).await.expect("the test server");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect(statement);
    connection.close().await.expect("the test server");
}

fn unique_name(kind: &str) -> String {
    format!("pgqueue_{kind}_{}", Uuid::new_v4().simple())
}

fn external_url() -> Option<String> {
    std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty())
}

/// The same server, another database.
fn url_of(database: &str) -> String {
    match external_url() {
        Some(url) => replace_database(&url, database),
        None => server_of_process().url_of(database),
    }
}

/// `scheme://authority/database?parameters`.
fn replace_database(url: &str, database: &str) -> String {
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let after_scheme = address.find("://").map_or(0, |at| at + "://".len());
    let end = address[after_scheme..].find('/').map_or(address.len(), |at| after_scheme + at);
    let separator = if parameters.is_empty() { "" } else { "?" };
    format!("{}/{database}{separator}{parameters}", &address[..end])
}

fn server_of_process() -> &'static LocalPostgres {
    static SERVER: OnceLock<LocalPostgres> = OnceLock::new();
    SERVER.get_or_init(|| start_server("shared", &[]))
}

fn start_server(kind: &str, settings: &[(&str, &str)]) -> LocalPostgres {
    let extra = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = Settings { fsync: false, ephemeral: true, extra };
    LocalPostgres::start(temporary_dir(kind), settings)
        .unwrap_or_else(|error| panic!("tests need PostgreSQL (or TEST_DATABASE_URL): {error}"))
}

fn temporary_dir(kind: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("pgqueue-gateway-{kind}-{}-{number}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced_and_the_rest_kept() {
        assert_eq!(replace_database("postgres://u:p@h:1/a?x=y", "b"), "postgres://u:p@h:1/b?x=y");
        assert_eq!(replace_database("postgres://h", "b"), "postgres://h/b");
    }

    #[tokio::test]
    async fn every_test_has_a_database_of_its_own() {
        let (one, two) = tokio::join!(TestDatabase::new(), TestDatabase::new());
        assert_ne!(one.url(), two.url());
        for database in [&one, &two] {
            let status = database.store().schema.schema_status().await.unwrap();
            assert!(status.missing.is_empty(), "{:?}", status.missing);
        }
    }
}
