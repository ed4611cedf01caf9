//! Behaviours.
use bincode::{Decode, Encode};
use serde::Serialize;

use crate::command::Behaviour;
use crate::rng::Pcg32;

/// How far a behaviour has got (its "position", spec 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct Progress {
    /// Index of the next patrol point or script step.
    pub next: u32,
    /// Ticks to wait before the next target.
    pub wait: u32,
    /// Tick in which the behaviour was set.
    pub set_at: u64,
}

impl Progress {
    pub(crate) fn start(_behaviour: &Behaviour, tick: u64, _rng: &mut Pcg32) -> Self {
        Self {
            next: 0,
            wait: 0,
            set_at: tick,
        }
    }
}
