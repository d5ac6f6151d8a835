//! What an event leads to.

use crate::{
    classic::{ClassicOutcome, ClassicUndo},
    reply::Reply,
    stored::StoredGroup,
};

/// What to do after an event: save, then answer, then wake up. See the head of this crate.
#[derive(Debug)]
#[must_use = "replies are to be sent, and what survives is to be saved"]
pub struct Outcome {
    /// Each token of the group's requests appears once, in this or in a later outcome, unless the request was
    /// cancelled.
    pub replies: Vec<Reply>,
    /// To be persisted before any reply is sent.
    pub save: Option<StoredGroup>,
    pub(crate) undo: Option<Undo>,
}

/// How to go back to before what had to be saved.
#[derive(Debug)]
pub(crate) enum Undo {
    Classic(ClassicUndo),
}

impl From<ClassicOutcome> for Outcome {
    fn from(ClassicOutcome { replies, save }: ClassicOutcome) -> Outcome {
        let (save, undo) = save.map(|save| (StoredGroup::Classic(save.group), Undo::Classic(save.undo))).unzip();
        Outcome { replies, save, undo }
    }
}
