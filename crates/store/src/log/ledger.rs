//! The sequence ledger (storage.md D3): makes sure that offsets never start over, also when all
//! rows of a partition are gone.
//!
//! Appends do not touch it, so that it is no hot table. It is brought up to date from the rows
//! themselves, far more often than the shortest retention; and by a trigger when SQL deletes the rows at
//! the end of a partition (`R__kafka_keep_ends.sql`).

use sqlx::PgConnection;

use crate::{error::StoreError, log::Log};

impl Log {
    /// Notes the end of every partition whose log has grown since it was last noted; returns how
    /// many. Costs a few index look-ups a partition and writes only what has moved.
    ///
    /// # Errors
    /// [`StoreError`] as Postgres answers; a later call makes up for it.
    pub async fn update_ledger(&self) -> Result<u64, StoreError> {
        self.update_ledger_on(&mut *self.db.acquire().await?).await
    }

    /// The same within the transaction of `connection`.
    ///
    /// # Errors
    /// As [`Log::update_ledger`].
    pub async fn update_ledger_on(&self, connection: &mut PgConnection) -> Result<u64, StoreError> {
        Ok(self.state.statements.update_ledger().execute(connection).await?.rows_affected())
    }
}
