//! A group's state, its members, and the deadlines that move it on.

use std::collections::{BTreeMap, BTreeSet};

use super::member::{Member, Parked};
use crate::{GroupError, JoinReply, Millis, Outcome, Settings, SyncReply};

/// Kafka: `ClassicGroupState.java`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No members; offsets may be there.
    Empty,
    /// Members are joining.
    PreparingRebalance,
    /// The generation is known, the leader's assignment is awaited.
    CompletingRebalance,
    Stable,
    /// Closed here: deleted, or coordinated by another gateway.
    Dead,
}

impl State {
    /// Kafka's name, as in ListGroups and DescribeGroups.
    pub const fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
            State::Dead => "Dead",
        }
    }

    /// ListGroups 4 and later: an empty filter lets everything pass; case does not matter.
    pub fn passes(self, filter: &[String]) -> bool {
        filter.is_empty() || filter.iter().any(|name| name.eq_ignore_ascii_case(self.name()))
    }
}

/// One group of the classic protocol.
#[derive(Debug, Clone)]
pub struct Group {
    pub(crate) id: String,
    pub(crate) settings: Settings,
    pub(crate) state: State,
    pub(crate) state_since: Millis,
    /// `PreparingRebalance` was entered from `Empty`: the initial delay runs.
    pub(crate) is_initial: bool,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol_name: Option<String>,
    pub(crate) generation: i32,
    pub(crate) leader: Option<String>,
    /// By member id.
    pub(crate) members: BTreeMap<String, Member>,
    /// Instance id to member id.
    pub(crate) static_members: BTreeMap<String, String>,
    /// Member ids given out with MEMBER_ID_REQUIRED that did not come back yet, and until when they may.
    pub(crate) pending_members: BTreeMap<String, Millis>,
    /// Members of this generation that did not send SyncGroup yet.
    pub(crate) pending_sync: BTreeSet<String>,
    /// `None`: not known, or another protocol type than `consumer`.
    pub(crate) subscribed_topics: Option<BTreeSet<String>>,
    /// A member came during the initial delay, which is therefore extended.
    pub(crate) new_member_added: bool,
    pub(crate) join_deadline: Option<JoinDeadline>,
    /// Who has not sent SyncGroup by then is removed.
    pub(crate) sync_deadline: Option<Millis>,
    /// Not later than any deadline.
    wake_at: Option<Millis>,
}

/// When the joining ends, whoever is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinDeadline {
    pub(crate) at: Millis,
    /// Of the initial rebalance: the delay that ends at `at`, and by how much it may be extended.
    pub(crate) initial: Option<(Millis, Millis)>,
}

impl Group {
    /// A group that nobody has joined yet.
    pub fn new(id: impl Into<String>, settings: &Settings, now: Millis) -> Group {
        Group {
            id: id.into(),
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

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// When [`Group::tick`] is due; also in every [`Outcome`].
    pub fn wake_at(&self) -> Option<Millis> {
        self.wake_at
    }

    /// Nothing is lost when the group is dropped from memory: no members, and no member id given out.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Empty | State::Dead) && self.pending_members.is_empty()
    }

    /// Ends the group here: it was deleted (`CoordinatorNotAvailable`) or another gateway coordinates it
    /// (`NotCoordinator`). Whoever waits hears `error`; later requests hear COORDINATOR_NOT_AVAILABLE.
    pub fn close(&mut self, error: GroupError) -> Outcome {
        let mut out = Outcome::default();
        for (member_id, member) in &mut self.members {
            answer_parked(member, member_id, error, &mut out);
        }
        *self =
            Group { state: State::Dead, ..Group::new(std::mem::take(&mut self.id), &self.settings, self.state_since) };
        self.finish(out)
    }

    /// Every event ends here.
    pub(crate) fn finish(&self, mut out: Outcome) -> Outcome {
        out.wake_at = self.wake_at;
        out
    }

    /// Kafka: `validateMember`.
    pub(crate) fn validate_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), GroupError> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(GroupError::UnknownMemberId),
                Some(current) if current != member_id => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(GroupError::UnknownMemberId) }
    }

    /// Removes a member with everything that waits for it; its parked request hears `error`.
    pub(crate) fn remove_member(&mut self, member_id: &str, error: GroupError, out: &mut Outcome) {
        self.pending_members.remove(member_id);
        self.pending_sync.remove(member_id);
        let Some(mut member) = self.members.remove(member_id) else { return };
        answer_parked(&mut member, "", error, out);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    pub(crate) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Of the slowest member, in milliseconds.
    pub(crate) fn rebalance_timeout_ms(&self) -> Millis {
        self.members.values().map(|member| Millis::from(member.rebalance_timeout_ms)).max().unwrap_or(0)
    }

    /// `tick` is wanted at `at`, or before.
    pub(crate) fn wake_by(&mut self, at: Millis) {
        self.wake_at = Some(self.wake_at.map_or(at, |wake_at| wake_at.min(at)));
    }

    /// The exact time after deadlines went away. Elsewhere `wake_at` only comes nearer: refreshing a session, which
    /// is what happens most, then costs nothing, and the tick that comes too early sets it right.
    pub(crate) fn recompute_wake_at(&mut self) {
        let members = self.members.values().filter_map(|member| member.deadline);
        let pending = self.pending_members.values().copied();
        let join = self.join_deadline.map(|deadline| deadline.at);
        self.wake_at = members.chain(pending).chain(join).chain(self.sync_deadline).min();
    }
}

/// Answers what a member has parked, if anything, with an error.
pub(crate) fn answer_parked(member: &mut Member, member_id: &str, error: GroupError, out: &mut Outcome) {
    match member.parked.take() {
        Some(Parked::Join(token)) => out.reply_join(token, JoinReply::error(member_id, error)),
        Some(Parked::Sync(token)) => out.reply_sync(token, SyncReply::error(error)),
        None => {}
    }
}
