//! What a location does while its journal is not kept: its clock holds, and everybody is told (spec 5.6, 5.8).

use protocol::message::ClockState;

use super::clock::TickClock;
use super::{Location, Output};

/// While no tick runs, everybody is told so this often, µs.
const TELL_EVERY_US: u64 = 1_000_000;

/// How the journal stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Storage {
    /// It is kept.
    #[default]
    Kept,
    /// The disk is too slow: no further turn for now. Commands and joiners wait like the turns.
    Behind,
    /// It cannot be written: new commands and joiners are refused.
    Failing,
}

/// How it has stood.
#[derive(Debug, Default)]
pub(super) struct StorageWatch {
    now: Storage,
    /// Since when the clock holds, µs.
    held_us: u64,
    /// When everybody was told last, µs.
    told_us: u64,
}

impl StorageWatch {
    pub(super) fn is_failing(&self) -> bool {
        self.now == Storage::Failing
    }

    pub(super) fn clock_state(&self) -> ClockState {
        match self.now {
            Storage::Kept => ClockState::Running,
            Storage::Behind | Storage::Failing => ClockState::Storage,
        }
    }
}

impl Location {
    /// How the journal stands.
    pub(crate) fn storage(&self) -> Storage {
        self.storage.now
    }

    /// Takes how the journal stands at `now_us`. While it is not [`Storage::Kept`] no turn may be closed; afterwards the
    /// next one is due at once, and nothing of what waited is lost.
    pub(crate) fn watch_storage(&mut self, storage: Storage, now_us: u64, out: &mut Vec<Output>) {
        let before = std::mem::replace(&mut self.storage.now, storage);
        match (before, storage) {
            (Storage::Kept, Storage::Kept) => return,
            (Storage::Kept, Storage::Behind | Storage::Failing) => {
                self.storage.held_us = now_us;
                self.counters.holds += 1;
                tracing::warn!(tick = self.next_tick(), ?storage, "the clock holds");
            }
            (Storage::Behind | Storage::Failing, Storage::Kept) => {
                self.clock = TickClock::starting(self.world.tick(), now_us, self.definition.tick_rate());
                let held_us = now_us - self.storage.held_us;
                self.roster.extend_graces(held_us);
                self.downloads.extend(held_us);
                tracing::info!(tick = self.next_tick(), "the clock runs again");
            }
            (Storage::Behind | Storage::Failing, Storage::Behind | Storage::Failing) => {
                if now_us - self.storage.told_us < TELL_EVERY_US {
                    return;
                }
            }
        }
        self.storage.told_us = now_us;
        out.push(Output::Clock(self.clock_frame()));
    }
}
