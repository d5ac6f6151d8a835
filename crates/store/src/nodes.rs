//! The gateways on this database, each a broker of the cluster (storage.md D12).

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row, postgres::PgRow};
use uuid::Uuid;

use crate::{Store, error::StoreError};

/// A gateway as clients are to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// ≥ 0
    pub node_id: i32,
    pub host: String,
    /// 1..=65535
    pub port: i32,
    pub rack: Option<String>,
    /// Of the process: another one with each start.
    pub instance: Uuid,
}

/// Who is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heartbeat {
    /// All live gateways, this one among them, by node id.
    Live(Vec<Node>),
    /// Another live process has this node id; this one is not registered. After a restart it is
    /// often the former process of the same gateway, which is gone after the lease time.
    Conflict(Node),
}

impl Store {
    /// Registers the gateway or tells that it lives, in one statement. Who has not done so for
    /// `lease` is taken for dead, and a node id of his can be had by another process.
    ///
    /// # Errors
    /// As every statement.
    pub async fn heartbeat_node(&self, node: &Node, lease: Duration) -> Result<Heartbeat, StoreError> {
        let sql = format!(
            "WITH asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
             me AS (INSERT INTO {nodes} AS n (node_id, host, port, rack, instance) \
               SELECT $1, $2, $3, $4, $5 FROM asynchronously \
               ON CONFLICT (node_id) DO UPDATE SET host = excluded.host, port = excluded.port, \
                 rack = excluded.rack, instance = excluded.instance, heartbeat_at = now(), \
                 started_at = CASE WHEN n.instance = excluded.instance THEN n.started_at ELSE now() END \
               WHERE n.instance = excluded.instance OR n.heartbeat_at < now() - $6 * interval '1 second' \
               RETURNING node_id, host, port, rack, instance) \
             SELECT node_id, host, port, rack, instance, true FROM me \
             UNION ALL SELECT node_id, host, port, rack, instance, false FROM {nodes} \
             WHERE node_id NOT IN (SELECT node_id FROM me) AND heartbeat_at > now() - $6 * interval '1 second' \
             ORDER BY 1",
            nodes = self.tables().kafka_node
        );
        let mut connection = self.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(node.node_id)
            .bind(&node.host)
            .bind(node.port)
            .bind(&node.rack)
            .bind(node.instance)
            .bind(lease.as_secs_f64())
            .fetch_all(&mut *connection)
            .await?;
        let mut live = Vec::with_capacity(rows.len());
        let mut is_registered = false;
        for row in &rows {
            is_registered |= row.try_get::<bool, _>(5)?;
            live.push(read_node(row)?);
        }
        if is_registered {
            return Ok(Heartbeat::Live(live));
        }
        match live.into_iter().find(|other| other.node_id == node.node_id) {
            Some(other) => Ok(Heartbeat::Conflict(other)),
            // It was registered in the same moment and not to be seen yet.
            None => Err(StoreError::Contended(format!("node id {} is being registered by another", node.node_id))),
        }
    }

    /// All gateways whose last heartbeat is younger than `lease`, by node id.
    ///
    /// # Errors
    /// As every statement.
    pub async fn live_nodes(&self, lease: Duration) -> Result<Vec<Node>, StoreError> {
        let sql = format!(
            "SELECT node_id, host, port, rack, instance FROM {} \
             WHERE heartbeat_at > now() - $1 * interval '1 second' ORDER BY 1",
            self.tables().kafka_node
        );
        let mut connection = self.acquire().await?;
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(lease.as_secs_f64()).fetch_all(&mut *connection).await?;
        rows.iter().map(read_node).collect()
    }

    /// At the end of a gateway, so that the others need not wait for its lease time. `false`: it was
    /// not registered, or its node id is another process's by now.
    ///
    /// # Errors
    /// As every statement.
    pub async fn remove_node(&self, node_id: i32, instance: Uuid) -> Result<bool, StoreError> {
        let sql = format!("DELETE FROM {} WHERE node_id = $1 AND instance = $2", self.tables().kafka_node);
        let mut connection = self.acquire().await?;
        let removed = sqlx::query(AssertSqlSafe(sql)).bind(node_id).bind(instance).execute(&mut *connection).await?;
        Ok(removed.rows_affected() == 1)
    }
}

fn read_node(row: &PgRow) -> Result<Node, StoreError> {
    Ok(Node {
        node_id: row.try_get(0)?,
        host: row.try_get(1)?,
        port: row.try_get(2)?,
        rack: row.try_get(3)?,
        instance: row.try_get(4)?,
    })
}
