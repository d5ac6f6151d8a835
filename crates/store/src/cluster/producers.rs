//! What is given out once for all gateways: the cluster id and the ids of producers.

use sqlx::AssertSqlSafe;

use crate::{cluster::Cluster, error::StoreError};

impl Cluster {
    /// Identifies the cluster: all gateways of these tables are brokers of it.
    ///
    /// # Errors
    /// As every statement.
    pub async fn cluster_id(&self) -> Result<String, StoreError> {
        let ask = async {
            let statement = format!("SELECT cluster_id FROM {}", self.db.tables().kafka_cluster);
            let mut connection = self.db.acquire().await?;
            Ok::<String, StoreError>(sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut *connection).await?)
        };
        self.state.cluster_id.get_or_try_init(|| ask).await.cloned()
    }

    /// A producer id that no producer of any gateway has had or will have: a sequence of Postgres
    /// never goes back, not even when the transaction or the server dies.
    ///
    /// # Errors
    /// As every statement.
    pub async fn next_producer_id(&self) -> Result<i64, StoreError> {
        let sequence = &self.db.tables().kafka_producer_id_seq;
        let mut connection = self.db.acquire().await?;
        Ok(sqlx::query_scalar(AssertSqlSafe(format!("SELECT nextval('{sequence}')")))
            .fetch_one(&mut *connection)
            .await?)
    }
}
