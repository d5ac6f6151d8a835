//! One member of a group.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{JoinRequest, Millis, Protocol, Token};

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    /// In order of preference.
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// The request that waits.
    pub(crate) parked: Option<Parked>,
    /// Has not been in a generation yet.
    pub(crate) is_new: bool,
    /// The client can name the member after losing its connection: by the member id or by the instance id.
    pub(crate) can_return: bool,
    /// The member is removed then. `None` only while a request of it is parked: such a member is alive, and the
    /// group's own deadlines end the waiting.
    pub(crate) deadline: Option<Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    Join(Token),
    Sync(Token),
}

impl Member {
    pub(crate) fn new(request: JoinRequest, can_return: bool) -> Member {
        Member {
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms(),
            instance_id: request.instance_id,
            client_id: request.client_id,
            client_host: request.client_host,
            protocols: request.protocols,
            assignment: Bytes::new(),
            parked: None,
            is_new: true,
            can_return,
            deadline: None,
        }
    }

    pub(crate) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    pub(crate) fn awaits_join(&self) -> bool {
        matches!(self.parked, Some(Parked::Join(_)))
    }

    pub(crate) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|own| own.name == protocol)
    }

    /// Empty when the member does not know the protocol, which no member of a generation does.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|own| own.name == protocol).map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// The first of the member's protocols that is a candidate.
    pub(crate) fn vote<'a>(&'a self, candidates: &BTreeSet<&str>) -> Option<&'a str> {
        self.protocols.iter().map(|own| own.name.as_str()).find(|name| candidates.contains(name))
    }

    /// What a rejoining member may change.
    pub(crate) fn update(&mut self, request: &JoinRequest) {
        self.protocols.clone_from(&request.protocols);
        self.session_timeout_ms = request.session_timeout_ms;
        self.rebalance_timeout_ms = request.rebalance_timeout_ms();
    }

    /// The member was heard of, or got an answer: it has its session timeout until the next sign of life.
    pub(crate) fn refresh(&mut self, now: Millis) -> Millis {
        let deadline = now.saturating_add(self.session_timeout_ms.into());
        self.deadline = Some(deadline);
        deadline
    }
}
