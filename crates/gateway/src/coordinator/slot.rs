//! The groups of one coordinator slot, as long as it is served here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use groups::{Group, Millis, Settings, StoredGroup};
use store::SlotLease;

use super::active_group::ActiveGroup;

#[derive(Debug)]
pub(super) struct SlotGroups {
    pub(super) lease: SlotLease,
    /// `None`: another gateway may have the slot. No group comes back here then.
    groups: Mutex<Option<HashMap<String, Entry>>>,
}

#[derive(Debug)]
pub(super) enum Entry {
    /// Without members.
    Idle(StoredGroup),
    Active(Arc<ActiveGroup>),
}

/// The slot is not served any more.
#[derive(Debug)]
pub(super) struct SlotClosed;

/// A group that is in memory now.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) group: Arc<ActiveGroup>,
    /// It was not in memory before, and has no timer.
    pub(super) is_new: bool,
    /// It was not made just now.
    pub(super) existed: bool,
}

impl SlotGroups {
    pub(super) fn new(lease: SlotLease, groups: HashMap<String, Entry>) -> Arc<Self> {
        Arc::new(Self { lease, groups: Mutex::new(Some(groups)) })
    }

    /// `None`: there is no such group.
    pub(super) fn find(&self, id: &str, settings: &Settings, now: Millis) -> Result<Option<Found>, SlotClosed> {
        let mut groups = self.groups();
        let groups = groups.as_mut().ok_or(SlotClosed)?;
        Ok(find(groups, id, settings, now))
    }

    pub(super) fn find_or_make(&self, id: &str, settings: &Settings, now: Millis) -> Result<Found, SlotClosed> {
        let mut groups = self.groups();
        let groups = groups.as_mut().ok_or(SlotClosed)?;
        Ok(find(groups, id, settings, now).unwrap_or_else(|| {
            let group = ActiveGroup::new(id, Group::classic(id, settings, now), None);
            groups.insert(id.to_owned(), Entry::Active(group.clone()));
            Found { group, is_new: true, existed: false }
        }))
    }

    /// The group leaves the memory: what is left of it is its stored form, if it has one.
    pub(super) fn let_go(&self, id: &str, stored: Option<StoredGroup>) {
        let mut groups = self.groups();
        let Some(groups) = groups.as_mut() else { return };
        match stored {
            Some(stored) => groups.insert(id.to_owned(), Entry::Idle(stored)),
            None => groups.remove(id),
        };
    }

    /// The slot is not served any more; the groups returned are to be closed.
    pub(super) fn close(&self) -> Vec<Arc<ActiveGroup>> {
        let groups = self.groups().take().unwrap_or_default();
        groups.values().filter_map(Entry::active).collect()
    }

    pub(super) fn active(&self) -> Vec<Arc<ActiveGroup>> {
        let mut active = Vec::new();
        self.for_each(|_, entry| active.extend(entry.active()));
        active
    }

    pub(super) fn for_each(&self, mut each: impl FnMut(&str, &Entry)) {
        self.groups().iter().flatten().for_each(|(id, entry)| each(id, entry));
    }

    fn groups(&self) -> MutexGuard<'_, Option<HashMap<String, Entry>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn active(&self) -> Option<Arc<ActiveGroup>> {
        match self {
            Self::Idle(_) => None,
            Self::Active(group) => Some(group.clone()),
        }
    }
}

fn find(groups: &mut HashMap<String, Entry>, id: &str, settings: &Settings, now: Millis) -> Option<Found> {
    let entry = groups.get_mut(id)?;
    let stored = match entry {
        Entry::Active(group) => return Some(Found { group: group.clone(), is_new: false, existed: true }),
        Entry::Idle(stored) => stored.clone(),
    };
    let group = ActiveGroup::new(id, Group::restore(id, settings, stored.clone(), now), Some(stored));
    *entry = Entry::Active(group.clone());
    Some(Found { group, is_new: true, existed: true })
}
