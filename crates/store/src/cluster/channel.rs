//! The channel of NOTIFY between gateways of one database and prefix.

use tokio::sync::Notify;
use uuid::Uuid;

use crate::database::Tables;

/// The word for "gateways came or went".
const NODES_CHANGED: &str = "nodes";

/// Its name, and this process on it.
pub(crate) struct Channel {
    name: String,
    /// The first word of what this process sends; it knows what it did itself.
    origin: String,
    nodes_changed: Notify,
}

impl Channel {
    pub(crate) fn new(tables: &Tables) -> Channel {
        Channel {
            name: format!("{}_kafka_gateway", tables.prefix),
            origin: Uuid::new_v4().simple().to_string(),
            nodes_changed: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn nodes_changed_payload(&self) -> String {
        format!("{} {NODES_CHANGED}", self.origin)
    }

    /// Whether a word of a payload says that gateways came or went.
    pub(crate) fn is_nodes_changed(word: &str) -> bool {
        word == NODES_CHANGED
    }

    /// Another gateway said so.
    pub(crate) fn note_nodes_changed(&self) {
        self.nodes_changed.notify_one();
    }

    /// Resolves when gateways came or went, by what another gateway says.
    pub(super) async fn nodes_changed(&self) {
        self.nodes_changed.notified().await;
    }
}
