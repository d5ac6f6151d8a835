/// A failed operation of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No usable connection, it was lost, or the server is in no state to work: trying again later
    /// helps. If the connection was lost during a commit, nobody knows whether the transaction took
    /// effect.
    #[error("Postgres is not available: {0}")]
    Unavailable(String),
    /// Lost against another transaction (deadlock, serialization, lock time-out): nothing was
    /// changed, trying again at once helps.
    #[error("contended in Postgres: {0}")]
    Contended(String),
    /// An internal error of Postgres, such as a catalog entry that another session changes in the
    /// same moment, or whatever a pooler reports as one: trying again later mostly helps.
    #[error("internal error of Postgres: {0}")]
    Internal(String),
    /// No time partition of message takes a row of now: until the next maintenance.
    #[error("no time partition for the row: {0}")]
    NoTimePartition(String),
    /// Schema, tables or columns are missing, in words. Helped by `migrate`.
    #[error("{0}")]
    SchemaNotReady(String),
    /// The database user may not do this, or may not connect (any more): until somebody grants it or
    /// sets the password right.
    #[error("the database user is denied this: {0}")]
    Denied(String),
    /// What was to be written is not accepted: by a constraint or a trigger that the database's owner
    /// has added, or because no column or index can hold it.
    #[error("refused by Postgres: {0}")]
    Refused(String),
    /// A row with this key is there already.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// A setting that cannot work.
    #[error("{0}")]
    InvalidConfig(String),
    /// A row that nobody can read.
    #[error("corrupt row: {0}")]
    Corrupt(String),
    /// Anything else: a bug here or a database that somebody changed.
    #[error("unexpected answer of Postgres: {0}")]
    Other(String),
}

impl StoreError {
    /// May the same request succeed later? Then nothing is wrong with the request, only with the
    /// server or the way it is set up, and clients are told to try again.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        self.passes_by_itself() || matches!(self, StoreError::SchemaNotReady(_) | StoreError::Denied(_))
    }

    /// Would the same request succeed later without anybody doing anything?
    #[must_use]
    pub fn passes_by_itself(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable(_)
                | StoreError::Contended(_)
                | StoreError::Internal(_)
                | StoreError::NoTimePartition(_)
        )
    }

    /// Was nothing changed, and would the same transaction succeed if it were repeated at once?
    #[must_use]
    pub fn is_contended(&self) -> bool {
        matches!(self, StoreError::Contended(_))
    }

    /// May it lie in some of the rows that were to be written together, so that the others are
    /// accepted without them?
    pub(crate) fn may_lie_in_one_row(&self) -> bool {
        !matches!(self, StoreError::Unavailable(_) | StoreError::NoTimePartition(_) | StoreError::InvalidConfig(_))
    }

    /// The same error, saying where it happened.
    pub(crate) fn in_context(mut self, place: &str) -> StoreError {
        let (StoreError::Unavailable(reason)
        | StoreError::Contended(reason)
        | StoreError::Internal(reason)
        | StoreError::NoTimePartition(reason)
        | StoreError::SchemaNotReady(reason)
        | StoreError::Denied(reason)
        | StoreError::Refused(reason)
        | StoreError::AlreadyExists(reason)
        | StoreError::InvalidConfig(reason)
        | StoreError::Corrupt(reason)
        | StoreError::Other(reason)) = &mut self;
        reason.insert_str(0, &format!("{place}: "));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_told_with_the_reason() {
        let error = StoreError::Denied("no".to_owned()).in_context("V001");
        assert_eq!(error.to_string(), "the database user is denied this: V001: no");
    }
}
