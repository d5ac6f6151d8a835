//! How a subcommand fails.

/// Why the process ends, in one line, and with which exit code (see [`crate::settings::EXIT_CODES`]).
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// Something that was tried did not work: exit code 1.
    pub(crate) fn failed(message: impl ToString) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// The settings cannot be meant like this: exit code 2, clap's own.
    pub(crate) fn refused(message: impl ToString) -> Self {
        Self { code: 2, message: message.to_string() }
    }
}
