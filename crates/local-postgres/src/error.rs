//! What can go wrong, each in one line that a person can act on.

use std::io;
use std::path::PathBuf;

/// Why a private PostgreSQL could not be made, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server programs of a usable version on this machine.
    #[error(
        "PostgreSQL {minimum} or later is not installed (looked for initdb, pg_ctl and postgres in {searched}): \
         install it (Debian and Ubuntu: apt-get install postgresql) or use an existing server with --database-url"
    )]
    Missing {
        /// Lowest major version that is accepted.
        minimum: u32,
        /// Where it was looked for, comma-separated.
        searched: String,
    },

    /// Running as root, and no other user exists to run the server as.
    #[error("PostgreSQL refuses to run as root, and neither a user 'postgres' nor 'nobody' exists")]
    NoUnprivilegedUser,

    /// The operating system user of the server cannot enter the directory.
    #[error(
        "the operating system user '{user}' that PostgreSQL runs as cannot enter {}: \
         choose a data directory below a directory that every user may enter", blocked.display()
    )]
    Unreachable {
        /// Name of that user.
        user: String,
        /// The first directory of the path that it may not enter.
        blocked: PathBuf,
    },

    /// Another living process uses the directory.
    #[error("another process runs the PostgreSQL in {}", .0.display())]
    InUse(PathBuf),

    /// One of PostgreSQL's programs ended with an error.
    #[error("{program} failed: {message}")]
    Program {
        /// `initdb` or `pg_ctl start`, for example.
        program: String,
        /// Its last words.
        message: String,
    },

    /// A file of ours could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io { path: path.into(), source }
    }
}
