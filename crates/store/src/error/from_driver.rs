use sqlx::postgres::PgDatabaseError;

use super::{sqlstate, store_error::StoreError};

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match &error {
            sqlx::Error::Database(database) => {
                let postgres = database.try_downcast_ref::<PgDatabaseError>();
                let code = database.code().unwrap_or_default();
                let routine = postgres.and_then(PgDatabaseError::routine).unwrap_or_default();
                sqlstate::kind(&code, routine)(format!("{} (SQLSTATE {code})", database.message()))
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            // Of a pooler that has changed the session.
            | sqlx::Error::BeginFailed
            // A connection that ended in the middle of a message.
            | sqlx::Error::Protocol(_) => StoreError::Unavailable(error.to_string()),
            sqlx::Error::Configuration(_) => StoreError::InvalidConfig(error.to_string()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Other(error.to_string()),
        }
    }
}
