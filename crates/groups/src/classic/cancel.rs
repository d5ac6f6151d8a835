//! A connection that is lost while its request waits.

use super::{group::ClassicGroup, outcome::ClassicOutcome};
use crate::{reply::Awaiting, time::Millis};

impl ClassicGroup {
    /// Apache Kafka does not notice. Here the member is no longer taken for one that waits: it has its session timeout
    /// to come back. A new member that the client can never name again is removed at once.
    pub(crate) fn cancel(&mut self, now: Millis, request: Awaiting) -> ClassicOutcome {
        let mut out = ClassicOutcome::default();
        let found = self.members.iter_mut().find(|(_, member)| member.awaiting == Some(request));
        if let Some((member_id, member)) = found {
            member.awaiting = None;
            let (member_id, can_return) = (member_id.clone(), member.can_return);
            self.start_session(now, &member_id);
            if !can_return {
                self.expire_member(now, &member_id, &mut out);
            }
        }
        self.finish(out)
    }
}
