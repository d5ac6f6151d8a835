//! Again after a lost race.

/// How often a statement is run that loses against others: deadlocks with pgQueue's workers, who
/// lock in an order of their own, and topics or messages that are deleted in the same moment.
pub(crate) const ATTEMPTS: u32 = 4;

/// Evaluates the expression until it is no longer contended, at most [`ATTEMPTS`] times.
macro_rules! while_contended {
    ($attempt:expr) => {{
        let mut attempt = 1;
        loop {
            match $attempt {
                Err(error) if error.is_contended() && attempt < $crate::database::retry::ATTEMPTS => attempt += 1,
                result => break result,
            }
        }
    }};
}

pub(crate) use while_contended;
