//! SyncGroup: the leader hands the assignments in, the other members wait for theirs.

use std::collections::HashMap;

use bytes::Bytes;

use super::{
    group::ClassicGroup,
    member::Member,
    outcome::{AfterUndo, ClassicOutcome, ClassicSave, ClassicUndo},
    state::ClassicGroupState as State,
};
use crate::{
    error::GroupError,
    reply::{Awaiting, SyncReply, SyncToken},
    request::SyncRequest,
    time::Millis,
};

impl ClassicGroup {
    pub(crate) fn sync(&mut self, now: Millis, token: SyncToken, request: SyncRequest) -> ClassicOutcome {
        let mut out = ClassicOutcome::default();
        match self.check_sync(&request) {
            Err(error) => out.reply_sync(token, SyncReply::error(error)),
            Ok(()) if self.state == State::Stable => {
                self.note_sync(&request.member_id);
                if let Some(Member { assignment, .. }) = self.members.get(&request.member_id) {
                    let reply = SyncReply::assigned(&self.protocol_type, &self.protocol_name, assignment);
                    out.reply_sync(token, reply);
                }
            }
            Ok(()) if self.is_leader(&request.member_id) => self.assign(now, token, request, &mut out),
            Ok(()) => self.await_sync(token, &request.member_id, &mut out),
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
    fn await_sync(&mut self, token: SyncToken, member_id: &str, out: &mut ClassicOutcome) {
        self.note_sync(member_id);
        if let Some(member) = self.members.get_mut(member_id) {
            out.refuse_awaiting(member, member_id, GroupError::RebalanceInProgress);
            member.awaiting = Some(Awaiting::Sync(token));
            member.deadline = None;
        }
    }

    /// Members that the leader left out get an empty assignment, ids that are no members are ignored.
    fn assign(&mut self, now: Millis, token: SyncToken, request: SyncRequest, out: &mut ClassicOutcome) {
        let before = Box::new(self.clone());
        let leader = request.member_id;
        self.note_sync(&leader);
        let mut assignments: HashMap<String, Bytes> = request.assignments.into_iter().collect();
        for (member_id, member) in &mut self.members {
            member.assignment = assignments.remove(member_id).unwrap_or_default();
        }
        self.enter(State::Stable, now);
        if let Some(member) = self.members.get_mut(&leader) {
            member.awaiting = Some(Awaiting::Sync(token));
        }
        self.answer_syncs(now, out);
        let undo = ClassicUndo { before, keep: 0, then: AfterUndo::RefuseSync(token) };
        out.save = Some(ClassicSave { group: self.stored(), undo });
    }

    fn answer_syncs(&mut self, now: Millis, out: &mut ClassicOutcome) {
        let (protocol_type, protocol_name) = (&self.protocol_type, &self.protocol_name);
        for member in self.members.values_mut() {
            let Some(Awaiting::Sync(token)) = member.awaiting else { continue };
            member.awaiting = None;
            member.start_session(now);
            out.reply_sync(token, SyncReply::assigned(protocol_type, protocol_name, &member.assignment));
        }
        self.recompute_wake_at();
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
