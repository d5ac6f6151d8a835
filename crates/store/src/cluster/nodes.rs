//! The gateways on this database, each a broker of the cluster, and which of them lead partitions
//! (storage.md D12).
//!
//! The leaders are the gateways that were alive when somebody looked last. They stand in one row
//! with their leader epoch, which rises whenever they change. Whoever finds that the live gateways
//! are others than the leaders writes them down, unless somebody else was quicker.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Row, postgres::PgRow};
use tokio::{sync::watch, time::sleep};
use uuid::Uuid;

use crate::{cluster::Cluster, error::StoreError};

/// How often one look tries to write the leaders down while others do the same. Each loser looks
/// again, so after that the next heartbeat finds little left to do.
const ROUNDS: usize = 5;

/// How much longer than the lease a gateway counts as live, as a multiple of the lease. Its node id
/// can be had as soon as the lease is over, so a gateway that was killed and started again takes it
/// before the others leave the node out of Metadata. librdkafka gives up a broker that Metadata does
/// not list, with all that it has asked there, and does not ask again for five minutes.
const LIVE: &str = "1.25";

/// Between two looks whether the others know of a gateway that starts.
const SEEN_LOOK: Duration = Duration::from_millis(20);

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

/// Who leads partitions. The same epoch means the same node ids, whichever gateway is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// Leader epoch of every partition, ≥ 0. It never goes back.
    pub epoch: i32,
    /// By node id; at least one.
    pub leaders: Vec<Node>,
}

/// What this gateway knows of it.
pub(super) struct LastSeen {
    leadership: watch::Sender<Option<Arc<Leadership>>>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

impl Default for LastSeen {
    fn default() -> Self {
        Self { leadership: watch::Sender::new(None), asking: tokio::sync::Mutex::default() }
    }
}

/// What one statement saw.
struct Seen {
    live: Vec<Node>,
    epoch: i32,
    leader_ids: Vec<i32>,
    /// Those leaders whose address is known.
    leaders: Vec<Node>,
}

impl Cluster {
    /// Who leads, as last seen: by the last heartbeat, or since. `None`: nothing was seen yet.
    #[must_use]
    pub fn leadership(&self) -> Option<Arc<Leadership>> {
        self.state.last_seen.leadership.borrow().clone()
    }

    /// Resolves when gateways came or went, by what another gateway says.
    pub async fn nodes_changed(&self) {
        self.state.channel.nodes_changed().await;
    }

    pub(crate) fn watch_leadership(&self) -> watch::Receiver<Option<Arc<Leadership>>> {
        self.state.last_seen.leadership.subscribe()
    }

    /// The leader epoch; −1 while it is not known.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        self.state.last_seen.leadership.borrow().as_ref().map_or(-1, |leadership| leadership.epoch)
    }

    /// The leader epoch after a client has named one: a client that knows a newer one has it from
    /// another gateway, so Postgres is asked.
    ///
    /// # Errors
    /// As every statement.
    pub async fn leader_epoch_since(&self, named: i32) -> Result<i32, StoreError> {
        if named > self.leader_epoch() {
            let _asking = self.state.last_seen.asking.lock().await;
            if named > self.leader_epoch() {
                let seen = self.see_nodes(Duration::ZERO).await?;
                self.note(&seen);
            }
        }
        Ok(self.leader_epoch())
    }

    /// Registers the gateway or tells that it lives, in one statement. Who has not done so for
    /// `lease` is taken for dead soon after, and a node id of his can be had by another process.
    ///
    /// # Errors
    /// As every statement.
    pub async fn heartbeat_node(&self, node: &Node, lease: Duration) -> Result<Heartbeat, StoreError> {
        let sql = format!(
            "WITH asynchronously AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
             me AS (INSERT INTO {nodes} AS n (node_id, host, port, rack, instance) \
               SELECT $2, $3, $4, $5, $6 FROM asynchronously \
               ON CONFLICT (node_id) DO UPDATE SET host = excluded.host, port = excluded.port, \
                 rack = excluded.rack, instance = excluded.instance, heartbeat_at = now(), \
                 started_at = CASE WHEN n.instance = excluded.instance THEN n.started_at ELSE now() END \
               WHERE n.instance = excluded.instance OR n.heartbeat_at < now() - $1 * interval '1 second' \
               RETURNING node_id, host, port, rack, instance), \
             nodes AS (SELECT *, true AS is_live FROM me UNION ALL {others} \
               AND node_id NOT IN (SELECT node_id FROM me)) \
             {pairs}",
            nodes = self.db.tables().kafka_node,
            others = self.select_nodes(),
            pairs = self.select_pairs(),
        );
        let mut connection = self.db.acquire_for_lease().await?;
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(lease.as_secs_f64())
            .bind(node.node_id)
            .bind(&node.host)
            .bind(node.port)
            .bind(&node.rack)
            .bind(node.instance)
            .fetch_all(&mut *connection)
            .await?;
        drop(connection);
        let live = self.settle(Seen::read(&rows)?, lease).await?;
        match live.iter().find(|other| other.node_id == node.node_id) {
            Some(registered) if registered.instance == node.instance => Ok(Heartbeat::Live(live)),
            Some(other) => Ok(Heartbeat::Conflict(other.clone())),
            // It was registered in the same moment and not to be seen yet.
            None => Err(StoreError::Contended(format!("node id {} is being registered by another", node.node_id))),
        }
    }

    /// All gateways whose last heartbeat is younger than `lease` and a quarter of it, by node id.
    ///
    /// # Errors
    /// As every statement.
    pub async fn live_nodes(&self, lease: Duration) -> Result<Vec<Node>, StoreError> {
        let seen = self.see_nodes(lease).await?;
        self.settle(seen, lease).await
    }

    /// Returns when every other live gateway has looked who is there since the last heartbeat of this
    /// one. Before that its clients would hear of more brokers here than there.
    ///
    /// # Errors
    /// As every statement.
    pub async fn seen_by_others(&self, instance: Uuid, lease: Duration) -> Result<(), StoreError> {
        // Not that of the heartbeats, which go on meanwhile.
        let mut connection = self.db.acquire().await?;
        let since: f64 = sqlx::query_scalar("SELECT extract(epoch FROM clock_timestamp())::float8")
            .fetch_one(&mut *connection)
            .await?;
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {} WHERE instance <> $1 \
               AND heartbeat_at > now() - $2 * interval '1 second' AND heartbeat_at <= to_timestamp($3))",
            self.db.tables().kafka_node
        );
        while sqlx::query_scalar(AssertSqlSafe(sql.as_str()))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .bind(since)
            .fetch_one(&mut *connection)
            .await?
        {
            sleep(SEEN_LOOK).await;
        }
        Ok(())
    }

    /// At the end of a gateway, so that the others need not wait for its lease time. The last one
    /// stays the leader, so that nothing has changed for clients when it comes back. `false`: it was
    /// not registered, or its node id is another process's by now.
    ///
    /// # Errors
    /// As every statement.
    pub async fn remove_node(&self, node_id: i32, instance: Uuid) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH gone AS (DELETE FROM {nodes} WHERE node_id = $1 AND instance = $2 RETURNING node_id), \
             remaining AS (UPDATE {cluster} c SET leader_epoch = c.leader_epoch + 1, \
                 leaders = array_remove(c.leaders, gone.node_id) FROM gone \
               WHERE gone.node_id = ANY (c.leaders) AND cardinality(c.leaders) > 1 RETURNING c.leader_epoch) \
             SELECT gone.node_id, pg_notify($3, $4) FROM gone",
            nodes = self.db.tables().kafka_node,
            cluster = self.db.tables().kafka_cluster,
        );
        let mut connection = self.db.acquire_for_lease().await?;
        let removed = sqlx::query(AssertSqlSafe(sql))
            .bind(node_id)
            .bind(instance)
            .bind(self.state.channel.name())
            .bind(self.state.channel.nodes_changed_payload())
            .fetch_optional(&mut *connection)
            .await?;
        Ok(removed.is_some())
    }

    /// Live gateways and leaders; `$1`: the lease in seconds.
    fn select_nodes(&self) -> String {
        let is_live = format!("heartbeat_at > now() - $1 * {LIVE} * interval '1 second'");
        format!(
            "SELECT node_id, host, port, rack, instance, {is_live} \
             FROM {}, {} c WHERE ({is_live} OR node_id = ANY (c.leaders))",
            self.db.tables().kafka_node,
            self.db.tables().kafka_cluster
        )
    }

    /// Epoch and leaders, with each of `nodes` beside them, or alone.
    fn select_pairs(&self) -> String {
        format!(
            "SELECT c.leader_epoch, c.leaders, nodes.* FROM {} c LEFT JOIN nodes ON true ORDER BY nodes.node_id",
            self.db.tables().kafka_cluster
        )
    }

    async fn see_nodes(&self, lease: Duration) -> Result<Seen, StoreError> {
        let nodes = self.select_nodes();
        let sql =
            format!("WITH nodes (node_id, host, port, rack, instance, is_live) AS ({nodes}) {}", self.select_pairs());
        let mut connection = self.db.acquire_for_lease().await?;
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(lease.as_secs_f64()).fetch_all(&mut *connection).await?;
        Seen::read(&rows)
    }

    /// Makes the live gateways the leaders; returns them.
    async fn settle(&self, mut seen: Seen, lease: Duration) -> Result<Vec<Node>, StoreError> {
        for _ in 0..ROUNDS {
            self.note(&seen);
            let Some(epoch) = self.epoch_due(&seen) else { break };
            if self.write_leaders(&seen, epoch).await? {
                let leader_ids = node_ids(&seen.live);
                seen = Seen { epoch, leader_ids, leaders: seen.live.clone(), live: seen.live };
                self.note(&seen);
                break;
            }
            seen = self.see_nodes(lease).await?;
        }
        Ok(seen.live)
    }

    /// The epoch to write, if the leaders are not as they should be. It is also raised where Postgres
    /// has lost what this gateway has told its clients, as after a failover to an asynchronous standby.
    fn epoch_due(&self, seen: &Seen) -> Option<i32> {
        let known = self.leader_epoch();
        let is_right = node_ids(&seen.live) == seen.leader_ids && seen.epoch >= known;
        if is_right || seen.live.is_empty() {
            return None;
        }
        let is_first = seen.leader_ids.is_empty() && seen.epoch > known;
        Some(if is_first { seen.epoch } else { seen.epoch.max(known).saturating_add(1) })
    }

    /// `false`: somebody else wrote since `seen`. Waits for the disk: an epoch that clients have
    /// seen must not come again with other leaders.
    async fn write_leaders(&self, seen: &Seen, epoch: i32) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH written AS (UPDATE {} SET leader_epoch = $1, leaders = $2 \
               WHERE leader_epoch = $3 AND leaders = $4 RETURNING leader_epoch) \
             SELECT leader_epoch, pg_notify($5, $6) FROM written",
            self.db.tables().kafka_cluster
        );
        let mut connection = self.db.acquire_for_lease().await?;
        let written = sqlx::query(AssertSqlSafe(sql))
            .bind(epoch)
            .bind(node_ids(&seen.live))
            .bind(seen.epoch)
            .bind(&seen.leader_ids)
            .bind(self.state.channel.name())
            .bind(self.state.channel.nodes_changed_payload())
            .fetch_optional(&mut *connection)
            .await?;
        Ok(written.is_some())
    }

    /// Remembers it. Without the address of a leader it is not worth telling; it is about to be
    /// replaced then.
    fn note(&self, seen: &Seen) {
        if seen.leaders.is_empty() || node_ids(&seen.leaders) != seen.leader_ids {
            return;
        }
        let new = Leadership { epoch: seen.epoch, leaders: seen.leaders.clone() };
        self.state.last_seen.leadership.send_if_modified(|known| {
            let is_news = known.as_ref().is_none_or(|known| **known != new && known.epoch <= new.epoch);
            if is_news {
                *known = Some(Arc::new(new));
            }
            is_news
        });
    }
}

fn node_ids(nodes: &[Node]) -> Vec<i32> {
    nodes.iter().map(|node| node.node_id).collect()
}

impl Seen {
    fn read(rows: &[PgRow]) -> Result<Self, StoreError> {
        let first = rows.first().ok_or_else(|| StoreError::Corrupt("the table of the cluster is empty".into()))?;
        let leader_ids: Vec<i32> = first.try_get("leaders")?;
        let mut seen =
            Self { epoch: first.try_get("leader_epoch")?, leader_ids, live: Vec::new(), leaders: Vec::new() };
        for row in rows {
            let Some(node_id) = row.try_get("node_id")? else { continue };
            let node = Node {
                node_id,
                host: row.try_get("host")?,
                port: row.try_get("port")?,
                rack: row.try_get("rack")?,
                instance: row.try_get("instance")?,
            };
            if seen.leader_ids.contains(&node_id) {
                seen.leaders.push(node.clone());
            }
            if row.try_get("is_live")? {
                seen.live.push(node);
            }
        }
        Ok(seen)
    }
}
