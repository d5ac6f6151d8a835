//! A group and what is true of it.

use std::collections::{BTreeMap, BTreeSet};

use super::{member::Member, state::ClassicGroupState as State};
use crate::{error::GroupError, settings::Settings, time::Millis};

/// One group of the classic protocol.
#[derive(Debug, Clone)]
pub struct ClassicGroup {
    pub(super) id: String,
    pub(super) settings: Settings,
    pub(super) state: State,
    pub(super) state_since: Millis,
    /// `PreparingRebalance` was entered from `Empty`: the initial delay runs.
    pub(super) is_initial: bool,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol_name: Option<String>,
    pub(super) generation: i32,
    pub(super) leader: Option<String>,
    /// By member id.
    pub(super) members: BTreeMap<String, Member>,
    /// Instance id to member id.
    pub(super) static_members: BTreeMap<String, String>,
    /// Member ids given out with MEMBER_ID_REQUIRED that did not come back yet, and until when they may.
    pub(super) pending_members: BTreeMap<String, Millis>,
    /// Members of this generation that did not send SyncGroup yet.
    pub(super) pending_sync: BTreeSet<String>,
    /// `None`: not known, or another protocol type than `consumer`.
    pub(super) subscribed_topics: Option<BTreeSet<String>>,
    /// A member came during the initial delay, which is therefore extended.
    pub(super) new_member_added: bool,
    pub(super) join_deadline: Option<JoinDeadline>,
    /// Members that have not sent SyncGroup by then are removed.
    pub(super) sync_deadline: Option<Millis>,
    /// Not later than any deadline.
    pub(super) wake_at: Option<Millis>,
}

/// When the joining ends, with the members that have joined by then.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinDeadline {
    pub(super) at: Millis,
    /// Of the initial rebalance: the delay that ends at `at`, and by how much it may be extended.
    pub(super) initial: Option<(Millis, Millis)>,
}

impl ClassicGroup {
    pub(crate) fn new(id: &str, settings: &Settings, now: Millis) -> ClassicGroup {
        ClassicGroup {
            id: id.to_owned(),
            settings: *settings,
            state: State::Empty,
            state_since: now,
            is_initial: false,
            protocol_type: None,
            protocol_name: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_members: BTreeMap::new(),
            pending_sync: BTreeSet::new(),
            subscribed_topics: None,
            new_member_added: false,
            join_deadline: None,
            sync_deadline: None,
            wake_at: None,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn generation(&self) -> i32 {
        self.generation
    }

    /// "" when no member ever joined (a simple group).
    pub(crate) fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.state, State::Empty | State::Dead)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty() && self.pending_members.is_empty()
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Of the slowest member, in milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> Millis {
        self.members.values().map(|member| Millis::from(member.rebalance_timeout_ms)).max().unwrap_or(0)
    }

    pub(super) fn has_all_members_joined(&self) -> bool {
        self.pending_members.is_empty() && self.members.values().all(Member::is_awaiting_join)
    }

    /// Kafka: `validateMember`.
    pub(super) fn validate_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), GroupError> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(GroupError::UnknownMemberId),
                Some(current) if current != member_id => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(GroupError::UnknownMemberId) }
    }

    pub(super) fn enter(&mut self, state: State, now: Millis) {
        self.state = state;
        self.state_since = now;
    }
}
