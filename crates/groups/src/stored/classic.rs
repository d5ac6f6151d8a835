//! The stored form of a classic group.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    consumer_protocol::{CONSUMER_PROTOCOL_TYPE, assigned_partitions},
    owned_partition::OwnedPartition,
    time::Millis,
};

/// The version that is written. Older ones are read as well.
pub(crate) const VERSION: u32 = 1;

/// A completed generation, or an empty group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClassicGroup {
    pub(crate) version: u32,
    pub state: StoredClassicState,
    /// When the state was entered; the retention of the offsets of an empty group counts from it.
    pub state_since: Millis,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: Option<String>,
    pub members: Vec<StoredClassicMember>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredClassicState {
    Empty,
    /// The members know their generation, the assignment is not known yet.
    CompletingRebalance,
    Stable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClassicMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub protocols: Vec<StoredClassicProtocol>,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub assignment: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClassicProtocol {
    pub name: String,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub metadata: Bytes,
}

impl StoredClassicGroup {
    /// None of members that do not speak the consumer protocol: their assignments are their own business.
    pub(crate) fn owned_partitions(&self) -> Vec<OwnedPartition> {
        if self.state != StoredClassicState::Stable || self.protocol_type.as_deref() != Some(CONSUMER_PROTOCOL_TYPE) {
            return Vec::new();
        }
        let owned = |member: &StoredClassicMember| {
            let (member_id, session_timeout_ms) = (member.member_id.clone(), member.session_timeout_ms.max(0));
            let assigned = assigned_partitions(&member.assignment).unwrap_or_default();
            assigned.into_iter().map(move |(topic, partition)| OwnedPartition {
                member_id: member_id.clone(),
                session_timeout_ms,
                topic,
                partition,
            })
        };
        self.members.iter().flat_map(owned).collect()
    }
}

fn to_base64<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}
