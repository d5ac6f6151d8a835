//! Who speaks on a connection, and where it came in.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use crate::config::HostPort;

/// Characters that are remembered of the name and of the version of a client's software: a frame may hold
/// two million, and they would stay as long as the connection.
const MAX_SOFTWARE: usize = 64;

/// One client connection; all its requests share it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: SocketAddr,
    pub(crate) listener: Arc<Listener>,
    pub(crate) principal: Principal,
    software: OnceLock<Software>,
}

/// Where clients come in.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Kafka's name of it (`listeners`), which is its protocol too.
    pub(crate) name: &'static str,
    /// Where its clients are told to connect to.
    pub(crate) advertised: HostPort,
}

/// Who the client is taken for (Kafka: `KafkaPrincipal`).
#[derive(Debug)]
pub(crate) struct Principal(&'static str);

/// What the client runs, in its own words (KIP-511).
#[derive(Debug)]
pub(crate) struct Software {
    name: String,
    version: String,
}

impl Session {
    /// A client that has not said who it is.
    pub(crate) fn new(peer: SocketAddr, listener: Arc<Listener>) -> Self {
        Self { peer, listener, principal: Principal::ANONYMOUS, software: OnceLock::new() }
    }

    /// `None` until the client has told it, which from version 3 of ApiVersions on it does.
    pub(crate) fn software(&self) -> Option<&Software> {
        self.software.get()
    }

    /// The first that a connection tells stands.
    pub(crate) fn set_software(&self, name: &str, version: &str) {
        let short = |text: &str| text.chars().take(MAX_SOFTWARE).collect();
        self.software.get_or_init(|| Software { name: short(name), version: short(version) });
    }
}

impl Principal {
    const ANONYMOUS: Self = Self("ANONYMOUS");
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User:{}", self.0)
    }
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.name, self.advertised)
    }
}
