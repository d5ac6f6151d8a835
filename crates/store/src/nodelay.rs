//! TCP_NODELAY for connections to Postgres, which the driver leaves out.
//!
//! A small COPY ends in two small writes, its rows and its end. Without the option the second one
//! waits for the acknowledgement of the first, and the server's kernel delays that by 40 ms: no
//! append took less. sqlx 0.9.0 lost the option (its issue 4335; 0.8 had it, its main branch has it
//! again): with the first release that sets it, this file and the dependency on nix go.

use std::{fs, os::fd::RawFd};

use nix::sys::socket::{setsockopt, sockopt::TcpNoDelay};

/// Sets it on every socket of the process, because the driver does not tell which one is its own.
/// The others are either the gateway's, which have it, or no TCP sockets, which refuse it.
pub(crate) fn set() {
    // Not there, as on other systems than Linux: slow, but right.
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return };
    for descriptor in descriptors.flatten() {
        let is_socket =
            fs::read_link(descriptor.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
        let number = descriptor.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(number) = number.filter(|_| is_socket) {
            let _ = setsockopt(number, TcpNoDelay, &true);
        }
    }
}
