//! Producer ids of idempotent producers.

use sqlx::AssertSqlSafe;

use crate::{Store, error::StoreError};

impl Store {
    /// A producer id that no producer of any gateway has had or will have: a sequence of Postgres
    /// never goes back, not even when the transaction or the server dies.
    ///
    /// # Errors
    /// As every statement.
    pub async fn next_producer_id(&self) -> Result<i64, StoreError> {
        let sequence = &self.tables().kafka_producer_id_seq;
        let mut connection = self.acquire().await?;
        Ok(sqlx::query_scalar(AssertSqlSafe(format!("SELECT nextval('{sequence}')")))
            .fetch_one(&mut *connection)
            .await?)
    }
}
