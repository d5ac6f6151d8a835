//! Consumer groups: decide, persist, answer.
//!
//! The decisions are the crate `groups`. This file is the one place that carries them out: an event
//! reaches a group under the group's own mutex, what must survive is saved, and only then the
//! replies go out. A request that waits has a token and a oneshot channel ([`waiting`]); a group that
//! waits has one timer task, which sleeps until the group's next deadline or until that comes nearer.
//!
//! Groups without members are kept in their stored form, and those that were never stored not at
//! all. Which groups are this gateway's is in [`tenure`].
//!
//! While Postgres is away members keep their places: heartbeats are answered from memory, commits
//! and new generations wait or fail with retriable errors. Everything that a coordinator writes is
//! fenced by its slot, so a gateway that lost a slot unknowingly cannot write for it; and where there
//! are other gateways, it stops to answer when its lease is over ([`tenure`]).

mod admin;
mod offsets;
mod stuck;
mod tenure;
mod upkeep;
mod waiting;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use groups::{
    Awaiting, Group, GroupError, HeartbeatRequest, JoinReply, JoinRequest, LeaveReply, LeaveRequest, Millis, Outcome,
    Settings, StoredGroup, SyncReply, SyncRequest, absent,
};
use store::{Registration, SlotLease, Store, StuckAhead};
use tokio::{
    sync::{Notify, OwnedMutexGuard, oneshot, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;
use wire::ErrorCode;

pub(crate) use self::upkeep::Kept;
use self::{tenure::Tenure, waiting::Waiting};
use crate::{
    config::{HostPort, ServerConfig},
    error::{ApiError, group_error_code},
    net::shutdown::Shutdown,
};

/// The groups of one gateway.
#[derive(Debug)]
pub(crate) struct Coordinator {
    store: Store,
    shutdown: Shutdown,
    settings: Settings,
    /// This gateway as the others see it.
    node: store::Node,
    /// How long the others wait for a sign of life.
    lease: Duration,
    offsets_retention: Duration,
    clock: MonotonicClock,
    tenure: RwLock<Tenure>,
    lease_changed: Notify,
    slots_changed: Notify,
    /// The lease is over: other gateways may have all that this one had.
    cut_off: watch::Sender<bool>,
    groups: Mutex<HashMap<String, Known>>,
    /// Groups that committed without members since the last upkeep.
    to_register: Mutex<BTreeSet<Registration>>,
    /// A generation has its assignment: its leases are due.
    assigned: Notify,
    /// As of the last look.
    stuck_ahead: Mutex<Vec<StuckAhead>>,
}

#[derive(Debug)]
enum Known {
    /// Without members.
    Idle(StoredGroup),
    Active(Arc<Cell>),
}

/// A group that somebody uses.
#[derive(Debug)]
struct Cell {
    id: String,
    active: Arc<tokio::sync::Mutex<Active>>,
    wake: watch::Sender<Wake>,
}

#[derive(Debug)]
struct Active {
    group: Group,
    /// What was saved last.
    saved: Option<StoredGroup>,
    waiting: Waiting,
    has_timer: bool,
    /// Not in the map any more: who waited for the mutex looks again.
    is_dropped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    At(Millis),
    Never,
    /// The cell is dropped.
    Ended,
}

/// A locked group.
struct Held {
    cell: Arc<Cell>,
    active: OwnedMutexGuard<Active>,
    slot: SlotLease,
    /// It was there before.
    is_known: bool,
}

/// Milliseconds since 1970 that never go backwards.
#[derive(Debug)]
struct MonotonicClock {
    start: Instant,
    start_ms: Millis,
}

impl MonotonicClock {
    fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: since.as_millis() as Millis }
    }

    fn now(&self) -> Millis {
        self.start_ms.saturating_add(self.start.elapsed().as_millis() as Millis)
    }

    fn instant(&self, at: Millis) -> Instant {
        self.start + Duration::from_millis(at.saturating_sub(self.start_ms).max(0).unsigned_abs())
    }
}

impl Coordinator {
    pub(crate) fn new(config: &ServerConfig, store: Store, shutdown: Shutdown, advertised: &HostPort) -> Arc<Self> {
        let node = store::Node {
            node_id: config.node_id,
            host: advertised.host.clone(),
            port: i32::from(advertised.port),
            rack: None,
            instance: Uuid::new_v4(),
        };
        Arc::new(Self {
            store,
            shutdown,
            settings: config.groups.settings(),
            node,
            lease: Duration::from_millis(config.groups.coordinator_lease_ms),
            offsets_retention: Duration::from_secs(u64::from(config.groups.offsets_retention_minutes) * 60),
            clock: MonotonicClock::new(),
            tenure: RwLock::default(),
            lease_changed: Notify::new(),
            slots_changed: Notify::new(),
            cut_off: watch::Sender::new(false),
            groups: Mutex::default(),
            to_register: Mutex::default(),
            assigned: Notify::new(),
            stuck_ahead: Mutex::default(),
        })
    }

    /// JoinGroup; waits until the generation is there.
    pub(crate) async fn join(
        self: &Arc<Self>,
        disconnected: &CancellationToken,
        group_id: &str,
        request: JoinRequest,
    ) -> Result<JoinReply, ApiError> {
        request.validate(group_id, &self.settings).map_err(code)?;
        let absent = absent::join(&request);
        let Some(mut held) = self.lock(group_id, absent.is_none()).await? else {
            return absent.ok_or(ApiError::Code(ErrorCode::UnknownMemberId));
        };
        let (token, reply) = held.active.waiting.join();
        let outcome = held.active.group.join(self.clock.now(), token, request);
        self.carry_out(&mut held, outcome).await;
        self.wait(disconnected, held, Awaiting::Join(token), reply).await
    }

    /// SyncGroup; waits until the leader has handed the assignment in.
    ///
    /// While the group is loaded the member is sent back to JoinGroup: clients take
    /// COORDINATOR_LOAD_IN_PROGRESS for fatal here (Java: `SyncGroupResponseHandler`).
    pub(crate) async fn sync(
        self: &Arc<Self>,
        disconnected: &CancellationToken,
        group_id: &str,
        request: SyncRequest,
    ) -> Result<SyncReply, ApiError> {
        let mut held = match self.lock(group_id, false).await {
            Ok(Some(held)) => held,
            Ok(None) => return Ok(absent::sync()),
            Err(ErrorCode::CoordinatorLoadInProgress) => return Err(ErrorCode::RebalanceInProgress.into()),
            Err(code) => return Err(code.into()),
        };
        let (token, reply) = held.active.waiting.sync();
        let outcome = held.active.group.sync(self.clock.now(), token, request);
        self.carry_out(&mut held, outcome).await;
        self.wait(disconnected, held, Awaiting::Sync(token), reply).await
    }

    pub(crate) async fn leave(self: &Arc<Self>, group_id: &str, request: LeaveRequest) -> Result<LeaveReply, ApiError> {
        let Some(mut held) = self.lock(group_id, false).await? else { return Ok(absent::leave(&request)) };
        let (reply, outcome) = held.active.group.leave(self.clock.now(), request);
        self.carry_out(&mut held, outcome).await;
        self.release(held);
        Ok(reply)
    }

    /// Heartbeat. While the group is loaded every member is taken to be one, as its session begins
    /// anew with the loaded group (Kafka: `GroupCoordinatorService.heartbeat`).
    pub(crate) async fn heartbeat(
        self: &Arc<Self>,
        group_id: &str,
        request: &HeartbeatRequest,
    ) -> Result<(), ApiError> {
        let mut held = match self.lock(group_id, false).await {
            Ok(Some(held)) => held,
            Ok(None) => return Err(code(absent::heartbeat())),
            Err(ErrorCode::CoordinatorLoadInProgress) => return Ok(()),
            Err(code) => return Err(code.into()),
        };
        let result = held.active.group.heartbeat(self.clock.now(), request);
        self.release(held);
        result.map_err(code)
    }

    /// The group, if it is known or to be made.
    ///
    /// # Errors
    /// When the group is not coordinated here, or not yet.
    async fn lock(self: &Arc<Self>, group_id: &str, is_made: bool) -> Result<Option<Held>, ErrorCode> {
        loop {
            let slot = self.slot_of(group_id)?;
            let Some((cell, is_known)) = self.cell(group_id, is_made) else { return Ok(None) };
            let active = cell.active.clone().lock_owned().await;
            if active.is_dropped {
                continue;
            }
            let held = Held { cell, active, slot, is_known };
            // Had the slot been lost before the group was put into the map, nobody would close it.
            if self.slot_of(group_id) == Ok(slot) {
                return Ok(Some(held));
            }
            self.release(held);
        }
    }

    /// The group in the map, put there if need be, and whether it was known.
    fn cell(&self, group_id: &str, is_made: bool) -> Option<(Arc<Cell>, bool)> {
        let now = self.clock.now();
        let mut groups = self.groups();
        let (group, saved) = match groups.get(group_id) {
            Some(Known::Active(cell)) => return Some((cell.clone(), true)),
            Some(Known::Idle(stored)) => {
                (Group::restore(group_id, &self.settings, stored.clone(), now), Some(stored.clone()))
            }
            None if is_made => (Group::classic(group_id, &self.settings, now), None),
            None => return None,
        };
        let is_known = saved.is_some();
        let cell = Arc::new(Cell::new(group_id, group, saved));
        groups.insert(group_id.to_owned(), Known::Active(cell.clone()));
        Some((cell, is_known))
    }

    /// Waits for the reply to a request that has reached the group.
    async fn wait<R>(
        self: &Arc<Self>,
        disconnected: &CancellationToken,
        held: Held,
        request: Awaiting,
        mut reply: oneshot::Receiver<R>,
    ) -> Result<R, ApiError> {
        let (cell, slot) = (held.cell.clone(), held.slot);
        self.release(held);
        tokio::select! {
            biased;
            reply = &mut reply => return reply.map_err(|_| ApiError::Code(ErrorCode::CoordinatorNotAvailable)),
            () = disconnected.cancelled() => {}
        }
        // A gateway that goes leaves the group as it is: the members go on with the next one.
        if !self.shutdown.is_draining() {
            self.cancel(cell, slot, request).await;
        }
        reply.try_recv().map_err(|_| ApiError::Code(ErrorCode::CoordinatorNotAvailable))
    }

    async fn cancel(self: &Arc<Self>, cell: Arc<Cell>, slot: SlotLease, request: Awaiting) {
        let active = cell.active.clone().lock_owned().await;
        let mut held = Held { cell, active, slot, is_known: true };
        if held.active.waiting.forget(request) && !held.active.is_dropped {
            let outcome = held.active.group.cancel(self.clock.now(), request);
            self.carry_out(&mut held, outcome).await;
        }
        self.release(held);
    }

    /// Saves, then answers.
    async fn carry_out(self: &Arc<Self>, held: &mut Held, mut outcome: Outcome) {
        let Some(save) = outcome.save.take() else { return held.active.waiting.answer(outcome.replies) };
        match self.save(held, &save).await {
            Ok(()) => {
                self.note_saved(held, save).await;
                held.active.waiting.answer(outcome.replies);
            }
            Err(error) => {
                let undone = held.active.group.undo(self.clock.now(), outcome, error);
                held.active.waiting.answer(undone);
                if error == GroupError::NotCoordinator {
                    self.lost_slot(held.slot);
                    let closed = held.active.group.close(error);
                    held.active.waiting.answer(closed);
                }
            }
        }
    }

    async fn save(&self, held: &Held, save: &StoredGroup) -> Result<(), GroupError> {
        let group_id = &held.cell.id;
        let failed = |error: &dyn std::fmt::Display| {
            warn!(group = group_id, generation = save.generation(), %error, "a group's generation was not stored");
            GroupError::CoordinatorNotAvailable
        };
        let state = save.to_json().map_err(|error| failed(&error))?.into_bytes();
        let row = store::StoredGroup {
            group_id: group_id.clone(),
            generation: save.generation(),
            protocol_type: save.protocol_type().to_owned(),
            has_members: save.has_members(),
            state,
        };
        match self.within_lease(self.store.groups.save_group(&row, held.slot)).await {
            // Before the members hear of their partitions, so that no worker takes a record after that.
            Ok(true) => self.within_lease(self.hold_assigned(group_id, save)).await.map_err(|error| failed(&error)),
            Ok(false) => Err(GroupError::NotCoordinator),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn note_saved(&self, held: &mut Held, save: StoredGroup) {
        if save.is_assigned() {
            self.assigned.notify_one();
        }
        let has_members = save.has_members();
        let before = held.active.saved.replace(save);
        if !has_members && before.is_some_and(|before| before.has_members()) {
            self.release_assigned(&held.cell.id, held.slot).await;
        }
    }

    /// Sets the timer, and lets go of the group if nobody needs it in memory.
    fn release(self: &Arc<Self>, mut held: Held) {
        let active = &mut *held.active;
        if active.is_dropped {
            return;
        }
        if active.group.is_idle() && active.waiting.is_empty() {
            active.is_dropped = true;
            held.cell.wake.send_replace(Wake::Ended);
            let mut groups = self.groups();
            groups.remove(&held.cell.id);
            if let Some(saved) = active.saved.take().filter(|_| !active.group.is_dead()) {
                groups.insert(held.cell.id.clone(), Known::Idle(saved));
            }
            return;
        }
        let wake = active.group.wake_at().map_or(Wake::Never, Wake::At);
        held.cell.wake.send_if_modified(|current| std::mem::replace(current, wake) != wake);
        if wake != Wake::Never && !active.has_timer {
            active.has_timer = true;
            self.start_timer(held.cell.clone(), held.slot);
        }
    }

    fn start_timer(self: &Arc<Self>, cell: Arc<Cell>, slot: SlotLease) {
        let this = self.clone();
        let shutdown = self.shutdown.clone();
        shutdown.clone().spawn(async move {
            tokio::select! {
                () = this.run_timer(cell, slot) => {}
                () = shutdown.draining() => {}
            }
        });
    }

    async fn run_timer(self: &Arc<Self>, cell: Arc<Cell>, slot: SlotLease) {
        let mut changes = cell.wake.subscribe();
        loop {
            let wake = *changes.borrow_and_update();
            match wake {
                Wake::Ended => return,
                Wake::Never => drop(changes.changed().await),
                Wake::At(at) => tokio::select! {
                    biased;
                    _ = changes.changed() => {}
                    () = sleep_until(self.clock.instant(at)) => self.tick(&cell, slot).await,
                },
            }
        }
    }

    async fn tick(self: &Arc<Self>, cell: &Arc<Cell>, slot: SlotLease) {
        let active = cell.active.clone().lock_owned().await;
        let mut held = Held { cell: cell.clone(), active, slot, is_known: true };
        if !held.active.is_dropped {
            let outcome = held.active.group.tick(self.clock.now());
            self.carry_out(&mut held, outcome).await;
        }
        self.release(held);
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cell {
    fn new(id: &str, group: Group, saved: Option<StoredGroup>) -> Self {
        let active = Active { group, saved, waiting: Waiting::default(), has_timer: false, is_dropped: false };
        let (wake, _) = watch::channel(Wake::Never);
        Self { id: id.to_owned(), active: Arc::new(tokio::sync::Mutex::new(active)), wake }
    }
}

fn code(error: GroupError) -> ApiError {
    ApiError::Code(group_error_code(error))
}
