//! A group in memory.

use std::sync::Arc;

use groups::{Group, GroupError, Millis, StoredGroup};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::waiting::Waiting;

/// A group with members, or one that a request is about to use.
#[derive(Debug)]
pub(super) struct ActiveGroup {
    pub(super) id: String,
    state: Arc<Mutex<ActiveState>>,
    wake: watch::Sender<Wake>,
}

/// What the group's mutex guards.
#[derive(Debug)]
pub(super) struct ActiveState {
    pub(super) group: Group,
    /// What was saved last.
    pub(super) saved: Option<StoredGroup>,
    pub(super) waiting: Waiting,
    /// Not in the map of its slot any more: a request that waited for the mutex looks again.
    pub(super) is_dropped: bool,
}

/// When the timer of a group is to fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    At(Millis),
    Never,
    /// The group is dropped.
    Ended,
}

impl ActiveGroup {
    pub(super) fn new(id: &str, group: Group, saved: Option<StoredGroup>) -> Arc<Self> {
        let (wake, _) = watch::channel(group.wake_at().map_or(Wake::Never, Wake::At));
        let state = ActiveState { group, saved, waiting: Waiting::default(), is_dropped: false };
        Arc::new(Self { id: id.to_owned(), state: Arc::new(Mutex::new(state)), wake })
    }

    pub(super) async fn lock(&self) -> OwnedMutexGuard<ActiveState> {
        self.state.clone().lock_owned().await
    }

    /// For the group's timer.
    pub(super) fn wakes(&self) -> watch::Receiver<Wake> {
        self.wake.subscribe()
    }

    pub(super) fn set_wake(&self, wake: Wake) {
        self.wake.send_if_modified(|current| std::mem::replace(current, wake) != wake);
    }

    /// Another gateway coordinates the group from now on.
    pub(super) async fn close(&self) {
        let mut state = self.lock().await;
        let replies = state.group.close(GroupError::NotCoordinator);
        state.waiting.answer(replies);
        state.is_dropped = true;
        self.set_wake(Wake::Ended);
    }
}
