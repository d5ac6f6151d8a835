//! What is given out once for all gateways: the cluster id and the ids of producers.

use sqlx::Row;

use crate::{cluster::Cluster, database::statements, error::StoreError};

statements! {
    pub(super) struct IdStatements;

    /// → cluster_id.
    cluster_id: "SELECT cluster_id FROM {kafka_cluster}";

    /// → producer_id.
    next_producer_id: "SELECT nextval('{kafka_producer_id_seq}') AS producer_id";
}

impl Cluster {
    /// Identifies the cluster: all gateways of these tables are brokers of it.
    ///
    /// # Errors
    /// As every statement.
    pub async fn cluster_id(&self) -> Result<String, StoreError> {
        let ask = async {
            let mut connection = self.db.acquire().await?;
            let row = self.state.ids.cluster_id().fetch_one(&mut *connection).await?;
            Ok::<String, StoreError>(row.try_get("cluster_id")?)
        };
        self.state.cluster_id.get_or_try_init(|| ask).await.cloned()
    }

    /// A producer id that no producer of any gateway has had or will have: a sequence of Postgres
    /// never goes back, not even when the transaction or the server dies.
    ///
    /// # Errors
    /// As every statement.
    pub async fn next_producer_id(&self) -> Result<i64, StoreError> {
        let mut connection = self.db.acquire().await?;
        let row = self.state.ids.next_producer_id().fetch_one(&mut *connection).await?;
        Ok(row.try_get("producer_id")?)
    }
}
