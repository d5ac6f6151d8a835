//! One member of a group.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{
    reply::Awaiting,
    request::{JoinRequest, Protocol},
    time::Millis,
};

/// Kafka: `ClassicGroupMember.java`.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    /// In order of preference.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// The request that waits.
    pub(super) awaiting: Option<Awaiting>,
    /// Has not been in a generation yet.
    pub(super) is_new: bool,
    /// The client can name the member after losing its connection: by the member id or by the instance id.
    pub(super) can_return: bool,
    /// The member is removed then. `None` only while a request of it waits: such a member is alive, and the
    /// group's own deadlines end the waiting.
    pub(super) deadline: Option<Millis>,
}

impl Member {
    pub(super) fn new(request: JoinRequest, can_return: bool) -> Member {
        Member {
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms(),
            instance_id: request.instance_id,
            client_id: request.client_id,
            client_host: request.client_host,
            protocols: request.protocols,
            assignment: Bytes::new(),
            awaiting: None,
            is_new: true,
            can_return,
            deadline: None,
        }
    }

    pub(super) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    pub(super) fn is_awaiting_join(&self) -> bool {
        matches!(self.awaiting, Some(Awaiting::Join(_)))
    }

    pub(super) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|own| own.name == protocol)
    }

    /// Empty when the member does not know the protocol, which no member of a generation does.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|own| own.name == protocol).map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// The first of the member's protocols that is a candidate.
    pub(super) fn vote<'a>(&'a self, candidates: &BTreeSet<&str>) -> Option<&'a str> {
        self.protocols.iter().map(|own| own.name.as_str()).find(|name| candidates.contains(name))
    }

    /// What a rejoining member may change.
    pub(super) fn update(&mut self, request: &JoinRequest) {
        self.protocols.clone_from(&request.protocols);
        self.session_timeout_ms = request.session_timeout_ms;
        self.rebalance_timeout_ms = request.rebalance_timeout_ms();
    }

    /// From now on the member has its session timeout to be heard of.
    pub(super) fn start_session(&mut self, now: Millis) -> Millis {
        let deadline = now.saturating_add(self.session_timeout_ms.into());
        self.deadline = Some(deadline);
        deadline
    }
}
