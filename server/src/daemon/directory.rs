//! The locations of a daemon by name: what connections and the admin pages look up. It never changes while the daemon runs;
//! a location that fails keeps its place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::travels::Travels;
use crate::location::task::Handle;

/// All locations, the first of them first.
#[derive(Clone)]
pub(crate) struct Directory {
    places: Arc<[Place]>,
    /// Who is on the way from one to another.
    pub(crate) travels: Arc<Travels>,
}

/// One location.
pub(crate) struct Place {
    /// Its name, which no other has.
    pub(crate) name: String,
    /// Its ticks per second.
    pub(crate) tick_rate: u16,
    /// The way to it.
    pub(crate) handle: Handle,
    condition: Mutex<Condition>,
}

/// How a location stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// How often it failed and was started again from its journal.
    pub(crate) restarts: u64,
    /// How often it went on from a journal: at the daemon's start, and after each failure.
    pub(crate) recoveries: u64,
    /// Why it does not run and will not any more.
    pub(crate) down: Option<String>,
}

impl Directory {
    /// Of locations whose names differ.
    pub(super) fn new(locations: impl Iterator<Item = (String, u16, Handle)>) -> Self {
        let place = |(name, tick_rate, handle)| Place {
            name,
            tick_rate,
            handle,
            condition: Mutex::default(),
        };
        Self {
            places: locations.map(place).collect(),
            travels: Arc::default(),
        }
    }

    /// The location of a name; without a name the first.
    pub(crate) fn find(&self, name: &str) -> Option<&Place> {
        let mut places = self.places.iter();
        if name.is_empty() {
            places.next()
        } else {
            places.find(|place| place.name == name)
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// A directory of one location, whatever it is called.
    #[cfg(test)]
    pub(crate) fn for_test(handle: Handle) -> Self {
        Self::new(std::iter::once((String::new(), 10, handle)))
    }
}

impl Place {
    /// How it stands.
    pub(crate) fn condition(&self) -> Condition {
        self.lock().clone()
    }

    /// It failed and is started again.
    pub(super) fn restarted(&self) {
        self.lock().restarts += 1;
    }

    /// It goes on from its journal.
    pub(super) fn recovered(&self) {
        self.lock().recoveries += 1;
    }

    /// It does not run any more.
    pub(super) fn goes_down(&self, reason: String) {
        self.lock().down = Some(reason);
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
