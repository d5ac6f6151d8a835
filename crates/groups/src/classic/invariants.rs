//! What holds after every event; the tests ask.

use super::member::Parked;
use super::state::{Group, State};

impl Group {
    /// The first rule that is broken, if any. For tests: it looks at everything.
    #[doc(hidden)]
    pub fn broken_invariant(&self) -> Option<&'static str> {
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
        self.members.values().all(|member| match member.parked {
            None => member.deadline.is_some(),
            Some(Parked::Join(_)) => self.join_deadline.is_some() && member.is_new == member.deadline.is_some(),
            Some(Parked::Sync(_)) => self.sync_deadline.is_some() && member.deadline.is_none(),
        })
    }

    fn wakes_up_in_time(&self) -> bool {
        let mut exact = self.clone();
        exact.recompute_wake_at();
        exact.wake_at().is_none_or(|exact| self.wake_at().is_some_and(|wake_at| wake_at <= exact))
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
        let waits = |parked: fn(&Parked) -> bool| self.members.values().filter_map(|m| m.parked.as_ref()).any(parked);
        let joins = waits(|parked| matches!(parked, Parked::Join(_)));
        let syncs = waits(|parked| matches!(parked, Parked::Sync(_)));
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
