//! What a gateway does that has not reached Postgres for the lease time: nothing (storage.md section 4).

use store::StoreError;
use tokio::time::timeout_at;
use tracing::warn;

use super::handle::Membership;

impl Membership {
    /// Gives all slots up whenever the lease is over and other gateways may have taken them. Ends never.
    pub(crate) async fn fence_in_time(&self) {
        let mut tenure = self.subscribe();
        loop {
            let end = tenure.borrow_and_update().lease_end;
            match end {
                Some(end) if !self.fence_if_due() => {
                    // The time-out is what is waited for.
                    let _ = timeout_at(end, tenure.changed()).await;
                }
                // The sender is this membership's own, so the channel is never closed.
                _ => drop(tenure.changed().await),
            }
        }
    }

    /// Whether the lease is over; then no slot is this gateway's any more.
    pub(super) fn fence_if_due(&self) -> bool {
        let mut is_over = false;
        self.tenure.send_if_modified(|tenure| {
            is_over = tenure.is_lease_over();
            let lost = if is_over { std::mem::take(&mut tenure.owned) } else { Default::default() };
            if is_over && self.cut_off.send_if_modified(|cut_off| !std::mem::replace(cut_off, true)) {
                warn!(
                    slots = lost.len(),
                    "cut off from Postgres: the lease on the coordinator slots is over and other gateways may have \
                     them; no Kafka connections until it is renewed"
                );
            }
            !lost.is_empty()
        });
        is_over
    }

    /// Resolves while this gateway is cut off from Postgres and other gateways may do its work.
    pub(crate) async fn cut_off(&self) {
        // The sender is this membership's own, so the channel is never closed.
        let _ = self.cut_off.subscribe().wait_for(|cut_off| *cut_off).await;
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        *self.cut_off.borrow()
    }

    /// Does what must not outlast the lease, such as a write under a group's mutex: the requests that wait
    /// for the group are to learn that it is another gateway's. If Postgres does it after all, then before
    /// another gateway has the slot, or it is fenced ([`Membership::renew`]).
    pub(crate) async fn within_lease<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::select! {
            done = work => done,
            () = self.cut_off() => Err(StoreError::Unavailable("the lease on the coordinator slots is over".to_owned())),
        }
    }
}
