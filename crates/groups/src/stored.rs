//! The form of a group that survives: JSON that names the type of the group and the version of that type's form.
//! `testdata/stored/` holds a file of every form that a gateway has ever written.

mod classic;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::classic::VERSION as CLASSIC_VERSION;
pub use self::classic::{StoredClassicGroup, StoredClassicMember, StoredClassicProtocol, StoredClassicState};
use crate::{group_type::GroupType, owned_partition::OwnedPartition, time::Millis};

/// A completed generation, or an empty group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum StoredGroup {
    #[serde(rename = "classic")]
    Classic(StoredClassicGroup),
}

#[derive(Debug, Error)]
pub enum StoredError {
    #[error("stored group is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("stored group is of type {0}, which this gateway does not know")]
    UnknownType(String),
    #[error("stored group has version {0}, which this gateway does not know")]
    TooNew(u32),
}

/// Read before the rest, which need not have the fields of any form that is known here.
#[derive(Deserialize)]
struct Head {
    /// Absent in what the first gateways wrote, which knew classic groups only.
    #[serde(rename = "type")]
    group_type: Option<String>,
    version: u32,
}

impl StoredGroup {
    /// # Errors
    /// As `serde_json`, to which these types give no reason.
    pub fn to_json(&self) -> Result<String, StoredError> {
        Ok(serde_json::to_string(self)?)
    }

    /// # Errors
    /// When this is no group, or one that only a newer gateway knows how to read.
    pub fn from_json(json: &str) -> Result<StoredGroup, StoredError> {
        let head: Head = serde_json::from_str(json)?;
        let group_type = head.group_type.unwrap_or_else(|| GroupType::Classic.name().to_owned());
        if group_type != GroupType::Classic.name() {
            return Err(StoredError::UnknownType(group_type));
        }
        if head.version > CLASSIC_VERSION {
            return Err(StoredError::TooNew(head.version));
        }
        Ok(StoredGroup::Classic(serde_json::from_str(json)?))
    }

    pub fn group_type(&self) -> GroupType {
        match self {
            StoredGroup::Classic(_) => GroupType::Classic,
        }
    }

    pub fn generation(&self) -> i32 {
        match self {
            StoredGroup::Classic(group) => group.generation,
        }
    }

    /// "" when no member ever joined.
    pub fn protocol_type(&self) -> &str {
        match self {
            StoredGroup::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
        }
    }

    pub fn has_members(&self) -> bool {
        match self {
            StoredGroup::Classic(group) => !group.members.is_empty(),
        }
    }

    /// When the state was entered; the retention of the offsets of an empty group counts from it.
    pub fn state_since(&self) -> Millis {
        match self {
            StoredGroup::Classic(group) => group.state_since,
        }
    }

    /// The members know which partitions they own.
    pub fn is_assigned(&self) -> bool {
        match self {
            StoredGroup::Classic(group) => group.state == StoredClassicState::Stable,
        }
    }

    /// Empty unless the members know their assignment.
    pub fn owned_partitions(&self) -> Vec<OwnedPartition> {
        match self {
            StoredGroup::Classic(group) => group.owned_partitions(),
        }
    }
}
