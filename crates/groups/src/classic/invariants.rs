//! What holds after every event.

use super::{group::ClassicGroup, state::ClassicGroupState as State};
use crate::reply::Awaiting;

impl ClassicGroup {
    /// The first rule that is broken, if any. Looks at every member: for assertions of debug builds.
    pub(super) fn broken_invariant(&self) -> Option<&'static str> {
        let mut rules = [
            (self.every_member_has_a_timer(), "a member neither has a deadline nor waits for one of the group"),
            (self.wakes_up_in_time(), "wake_at is later than a deadline"),
            (self.static_members_agree(), "static members and instance ids differ"),
            (self.leader_is_a_member(), "the leader is not a member"),
            (self.pending_are_apart(), "a pending id is a member, or a pending SyncGroup is of none"),
            (self.state_fits(), "members or deadlines do not fit the state"),
        ]
        .into_iter();
        rules.find(|(holds, _)| !holds).map(|(_, rule)| rule)
    }

    fn every_member_has_a_timer(&self) -> bool {
        self.members.values().all(|member| match member.awaiting {
            None => member.deadline.is_some(),
            Some(Awaiting::Join(_)) => self.join_deadline.is_some() && member.is_new == member.deadline.is_some(),
            Some(Awaiting::Sync(_)) => self.sync_deadline.is_some() && member.deadline.is_none(),
        })
    }

    fn wakes_up_in_time(&self) -> bool {
        self.first_deadline().is_none_or(|first| self.wake_at().is_some_and(|wake_at| wake_at <= first))
    }

    fn static_members_agree(&self) -> bool {
        let instances = self.members.iter().filter_map(|(id, member)| Some((member.instance_id.as_ref()?, id)));
        instances.clone().all(|(instance, id)| self.static_members.get(instance) == Some(id))
            && instances.count() == self.static_members.len()
    }

    fn leader_is_a_member(&self) -> bool {
        match &self.leader {
            Some(leader) => self.members.contains_key(leader),
            None => self.members.is_empty(),
        }
    }

    fn pending_are_apart(&self) -> bool {
        self.pending_members.keys().all(|id| !self.members.contains_key(id))
            && self.pending_sync.iter().all(|id| self.members.contains_key(id))
    }

    fn state_fits(&self) -> bool {
        let waits =
            |parked: fn(&Awaiting) -> bool| self.members.values().filter_map(|m| m.awaiting.as_ref()).any(parked);
        let joins = waits(|awaiting| matches!(awaiting, Awaiting::Join(_)));
        let syncs = waits(|awaiting| matches!(awaiting, Awaiting::Sync(_)));
        let (join, sync) = (self.join_deadline.is_some(), self.sync_deadline.is_some());
        match self.state {
            State::Empty | State::Dead => self.members.is_empty() && !join && !sync,
            State::PreparingRebalance => join && !sync && !syncs && self.pending_sync.is_empty(),
            State::CompletingRebalance => !self.members.is_empty() && !join && sync && !joins,
            State::Stable => {
                !self.members.is_empty() && !join && !joins && !syncs && sync != self.pending_sync.is_empty()
            }
        }
    }
}
