//! SyncGroup: the leader hands the assignments in, the others wait for theirs.

use std::collections::HashMap;

use bytes::Bytes;

use super::member::{Member, Parked};
use super::state::{Group, State, answer_parked};
use crate::outcome::{AfterUndo, Undo};
use crate::{GroupError, Millis, Outcome, SyncReply, SyncRequest, Token};

impl Group {
    pub fn sync(&mut self, now: Millis, token: Token, request: SyncRequest) -> Outcome {
        let mut out = Outcome::default();
        match self.check_sync(&request) {
            Err(error) => out.reply_sync(token, SyncReply::error(error)),
            Ok(()) if self.state == State::Stable => {
                self.note_sync(&request.member_id);
                if let Some(member) = self.members.get(&request.member_id) {
                    out.reply_sync(token, self.assignment_of(member));
                }
            }
            Ok(()) if self.is_leader(&request.member_id) => self.assign(now, token, request, &mut out),
            Ok(()) => self.park_sync(token, &request.member_id, &mut out),
        }
        self.finish(out)
    }

    /// `Ok` only in CompletingRebalance and Stable, from a member of the generation.
    fn check_sync(&self, request: &SyncRequest) -> Result<(), GroupError> {
        if request.version >= 5 && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        match self.state {
            State::Dead => return Err(GroupError::CoordinatorNotAvailable),
            State::Empty => return Err(GroupError::UnknownMemberId),
            _ => self.validate_member(&request.member_id, request.instance_id.as_deref())?,
        }
        if request.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        if self.state == State::PreparingRebalance { Err(GroupError::RebalanceInProgress) } else { Ok(()) }
    }

    /// The waiting ends with the leader's SyncGroup or, by `sync_deadline`, without it.
    fn park_sync(&mut self, token: Token, member_id: &str, out: &mut Outcome) {
        self.note_sync(member_id);
        if let Some(member) = self.members.get_mut(member_id) {
            answer_parked(member, member_id, GroupError::RebalanceInProgress, out);
            member.parked = Some(Parked::Sync(token));
            member.deadline = None;
        }
    }

    /// Members that the leader left out get an empty assignment, ids that are no members are ignored.
    fn assign(&mut self, now: Millis, token: Token, request: SyncRequest, out: &mut Outcome) {
        let before = Box::new(self.clone());
        let leader = request.member_id;
        self.note_sync(&leader);
        let mut assignments: HashMap<String, Bytes> = request.assignments.into_iter().collect();
        for (member_id, member) in &mut self.members {
            member.assignment = assignments.remove(member_id).unwrap_or_default();
        }
        self.enter(State::Stable, now);
        if let Some(member) = self.members.get_mut(&leader) {
            member.parked = Some(Parked::Sync(token));
        }
        self.answer_syncs(now, out);
        out.save = Some(self.stored());
        out.undo = Some(Undo { before, keep: 0, then: AfterUndo::RefuseSync(token) });
    }

    fn answer_syncs(&mut self, now: Millis, out: &mut Outcome) {
        let (protocol_type, protocol_name) = (&self.protocol_type, &self.protocol_name);
        let mut first_deadline = None;
        for member in self.members.values_mut() {
            let Some(Parked::Sync(token)) = member.parked else { continue };
            member.parked = None;
            let deadline = member.refresh(now);
            first_deadline = Some(first_deadline.map_or(deadline, |first: Millis| first.min(deadline)));
            let reply = SyncReply {
                error: None,
                protocol_type: protocol_type.clone(),
                protocol_name: protocol_name.clone(),
                assignment: member.assignment.clone(),
            };
            out.reply_sync(token, reply);
        }
        if let Some(deadline) = first_deadline {
            self.wake_by(deadline);
        }
    }

    fn assignment_of(&self, member: &Member) -> SyncReply {
        SyncReply {
            error: None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member.assignment.clone(),
        }
    }

    /// The member's SyncGroup is not due any more.
    fn note_sync(&mut self, member_id: &str) {
        self.pending_sync.remove(member_id);
        if self.pending_sync.is_empty() {
            self.sync_deadline = None;
        }
    }
}

/// Only what both sides know can differ.
fn differs(given: &Option<String>, own: &Option<String>) -> bool {
    given.as_ref().zip(own.as_ref()).is_some_and(|(given, own)| given != own)
}
