//! One line of the list of APIs, and what becomes of a request.

use kafka_protocol::messages::ResponseKind;
use wire::ErrorCode;

/// One API of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub key: i16,
    pub name: &'static str,
    /// Lowest version that ApiVersions names.
    pub min: i16,
    /// Highest version, advertised and served.
    pub max: i16,
    /// Lowest version that is answered; a request below it closes the connection.
    pub served_min: i16,
    pub kind: Kind,
    /// The answer while Postgres is away, or another gateway is in the way: the code on which clients of
    /// this API try again by themselves.
    pub unavailable: ErrorCode,
}

/// When the requests of an API start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// When all earlier requests of its connection have been answered.
    OnePhase,
    /// It is accepted as it arrives, and answered in its turn.
    TwoPhase,
    /// As `OnePhase`, and it may change the session: no later request is read before it is answered.
    Session,
}

/// What becomes of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once per request, nearly always a response")]
pub(crate) enum Reply {
    Respond(ResponseKind),
    /// Produce with acks=0: the client expects no answer, and one would shift all later ones.
    Silent,
    /// Closes the connection: how Apache Kafka tells a producer with acks=0 of an error.
    Disconnect(&'static str),
}

impl Api {
    pub fn serves(&self, version: i16) -> bool {
        (self.served_min..=self.max).contains(&version)
    }

    pub fn is_two_phase(&self) -> bool {
        self.kind == Kind::TwoPhase
    }
}
