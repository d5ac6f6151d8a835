//! What a group does by itself.

use std::sync::Arc;

use tokio::time::sleep_until;

use super::{
    active_group::{ActiveGroup, Wake},
    handle::Coordinator,
    lock::LockedGroup,
    slot::SlotGroups,
};

impl Coordinator {
    /// Once for every group that comes into memory; ends when it leaves it.
    pub(super) fn start_timer(self: &Arc<Self>, slot: Arc<SlotGroups>, group: Arc<ActiveGroup>) {
        let this = self.clone();
        self.shutdown.spawn(async move {
            tokio::select! {
                () = this.run_timer(slot, group) => {}
                () = this.shutdown.draining() => {}
            }
        });
    }

    async fn run_timer(self: &Arc<Self>, slot: Arc<SlotGroups>, group: Arc<ActiveGroup>) {
        let mut wakes = group.wakes();
        loop {
            let wake = *wakes.borrow_and_update();
            match wake {
                Wake::Ended => return,
                Wake::Never => drop(wakes.changed().await),
                Wake::At(at) => tokio::select! {
                    biased;
                    _ = wakes.changed() => {}
                    () = sleep_until(self.clock.instant(at)) => self.tick(slot.clone(), group.clone()).await,
                },
            }
        }
    }

    async fn tick(&self, slot: Arc<SlotGroups>, group: Arc<ActiveGroup>) {
        let mut locked = LockedGroup::again(slot, group).await;
        if !locked.state.is_dropped {
            let outcome = locked.state.group.tick(self.clock.now());
            self.carry_out(&mut locked, outcome).await;
        }
    }
}
