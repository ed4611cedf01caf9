//! The locations of a daemon by name: what connections and the admin pages look up. It never changes while the daemon runs;
//! a location that fails keeps its place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::travels::Travels;
use crate::location::task::Handle;
#[cfg(test)]
use crate::location::{Idle, OnLeave};
use crate::location::{Input, Rules};

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
    orders: Mutex<Orders>,
}

/// What holds for a location however often it begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    /// What its operator decided last.
    pub(super) rules: Rules,
    /// When the daemon will end, µs of its clock, if that is near.
    pub(super) draining_until_us: Option<u64>,
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
    pub(super) fn new(places: impl Iterator<Item = Place>) -> Self {
        Self {
            places: places.collect(),
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
        let rules = Rules {
            players_max: 1,
            lockstep_roles: Vec::new(),
            player_view_radius: None,
            on_leave: OnLeave::Leave,
            idle: Idle::Run,
        };
        Self::new(std::iter::once(Place::new(String::new(), 10, handle, rules)))
    }
}

impl Place {
    /// A location that these rules hold for at first.
    pub(super) fn new(name: String, tick_rate: u16, handle: Handle, rules: Rules) -> Self {
        Self {
            name,
            tick_rate,
            handle,
            condition: Mutex::default(),
            orders: Mutex::new(Orders {
                rules,
                draining_until_us: None,
            }),
        }
    }

    /// From now on these rules hold.
    pub(super) fn rule(&self, rules: Rules) {
        self.lock_orders().rules = rules.clone();
        self.handle.send(Input::Rules(Box::new(rules)));
    }

    /// The daemon will end then, µs of its clock.
    pub(super) fn drain(&self, until_us: u64) {
        self.lock_orders().draining_until_us = Some(until_us);
        self.handle.send(Input::Drain { until_us });
    }

    /// What holds for it now.
    pub(super) fn orders(&self) -> Orders {
        self.lock_orders().clone()
    }

    /// Nobody new comes in any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock_orders().draining_until_us.is_some()
    }

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

    fn lock_orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
