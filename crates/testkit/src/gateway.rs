//! A gateway on free ports with a database of its own.

use std::net::SocketAddr;

use gateway::{Gateway, Handle, config::Config};

use crate::{Client, TestDatabase};

/// A running gateway; it ends with the test's runtime.
#[derive(Debug)]
pub struct TestGateway {
    handle: Handle,
    database: TestDatabase,
}

impl TestGateway {
    /// With the default options.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With options changed from their defaults.
    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(TestDatabase::new().await, change).await
    }

    /// On a database that the test has made.
    ///
    /// # Panics
    /// If the gateway does not start.
    pub async fn start_on(database: TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::defaults();
        config.store.postgres.database_url = Some(database.url().to_owned());
        config.server.listen = ([127, 0, 0, 1], 0).into();
        config.server.http_listen = ([127, 0, 0, 1], 0).into();
        change(&mut config);
        let handle = Gateway::start(config).await.expect("the gateway starts");
        Self { handle, database }
    }

    /// Where the Kafka port listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.handle.kafka_addr()
    }

    /// The Kafka port as clients are configured with it.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.address().to_string()
    }

    /// Where the HTTP port listens.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        self.handle.http_addr()
    }

    #[must_use]
    pub fn database(&self) -> &TestDatabase {
        &self.database
    }

    /// A new connection.
    pub async fn client(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// Stops it as SIGTERM does, and gives its database back. The flag says whether all requests
    /// finished in time.
    pub async fn stop(self) -> (TestDatabase, bool) {
        let finished = self.handle.shutdown().await;
        (self.database, finished)
    }
}
