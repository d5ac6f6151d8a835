//! Everything that speaks SQL. Domain types in and out, no wire messages.
//!
//! [`Store`] is the handle. Its parts are the rooms of this crate: [`Log`] (records of partitions),
//! [`Groups`] (what consumer groups leave in the tables), [`Cluster`] (gateways, leadership, coordinator
//! slots), [`Catalog`] (topics) and [`Schema`] (tables and time partitions). Each owns its state and is the
//! only one to touch it; they share the [`Database`](database::Database).

mod catalog;
mod cluster;
mod config;
mod database;
mod error;
mod groups;
mod log;
mod offset;
mod partition;
mod record;
mod schema;
mod store;

pub use catalog::{Catalog, MAX_PARTITIONS, NewTopic, Topic, TopicConfig, TopicRef};
pub use cluster::{Cluster, Heartbeat, Leadership, Node, Slot, SlotLease, Slots};
pub use config::{AppendConfig, PostgresConfig, StoreConfig};
pub use database::Tables;
pub use error::{Backoff, StoreError};
pub use groups::{
    Committed, DeletedGroup, Groups, LiveGroup, NewOffset, OffsetCommit, OffsetQuery, PartitionHold, Registration,
    StoredGroup, StoredOffset, StuckAhead,
};
pub use log::{
    Append, AppendError, AppendReply, Appended, Fetched, Log, LogEnd, OffsetAndTimestamp, ReadError, ReadLimit,
    Reservation, Subscription,
};
pub use offset::{Offset, Seq};
pub use partition::PartitionKey;
pub use record::PayloadCompression;
pub use schema::{
    MigrateReport, PartitionInterval, PartitionManager, Schema, SchemaProfile, SchemaStatus, TimePartitions,
};
pub use store::Store;
