//! The form of a group that survives: JSON with a version. `testdata/stored/` holds a file of every version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::Millis;

/// The version that is written. Older ones are read as well.
const VERSION: u32 = 1;

/// A completed generation, or an empty group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGroup {
    pub(crate) version: u32,
    pub state: StoredState,
    /// When the state was entered; the retention of the offsets of an empty group counts from it.
    pub state_since: Millis,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: Option<String>,
    pub members: Vec<StoredMember>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredState {
    Empty,
    /// The members know their generation, the assignment is not known yet.
    CompletingRebalance,
    Stable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub protocols: Vec<StoredProtocol>,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub assignment: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredProtocol {
    pub name: String,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub metadata: Bytes,
}

#[derive(Debug, Error)]
pub enum StoredError {
    #[error("stored group is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("stored group has version {0}, this gateway reads up to {VERSION}")]
    TooNew(u32),
}

impl StoredGroup {
    pub(crate) fn new(state: StoredState, state_since: Millis, generation: i32) -> StoredGroup {
        StoredGroup {
            version: VERSION,
            state,
            state_since,
            generation,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: Vec::new(),
        }
    }

    pub fn to_json(&self) -> Result<String, StoredError> {
        Ok(serde_json::to_string(self)?)
    }

    pub fn from_json(json: &str) -> Result<StoredGroup, StoredError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        // The version first: a newer form need not have the fields of this one.
        let head: Head = serde_json::from_str(json)?;
        if head.version > VERSION {
            return Err(StoredError::TooNew(head.version));
        }
        Ok(serde_json::from_str(json)?)
    }
}

fn to_base64<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}
