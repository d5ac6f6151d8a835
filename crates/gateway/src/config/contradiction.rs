/// Two options that cannot both be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(String);

impl Contradiction {
    pub(super) fn new(reason: String) -> Self {
        Self(reason)
    }

    pub(super) fn unless(agree: bool, reason: impl FnOnce() -> String) -> Result<(), Self> {
        if agree { Ok(()) } else { Err(Self(reason())) }
    }
}
