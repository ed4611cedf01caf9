//! What is to be seen of a location from outside: written by its thread, read by admin pages and metrics.

use hdrhistogram::Histogram;
use protocol::message::{ClockState, Role};

use super::roster::{Feed, Phase};
use super::shadow::ShadowCounters;
use super::{Counters, Location, Storage};

/// Upper bounds of the classes into which times are counted, µs.
pub(crate) const BOUNDS_US: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// What is counted only once in a while, too.
    pub(crate) times: Times,
    /// The turn that comes next.
    pub(crate) next_tick: u64,
    /// When that is due, µs of the daemon's clock.
    pub(crate) due_us: u64,
    /// When this was written, µs of the daemon's clock.
    pub(crate) written_us: u64,
    /// How the clock stands; `None`: the location does not run.
    pub(crate) clock: Option<ClockState>,
    /// How the journal stands.
    pub(crate) storage: Storage,
    /// Turns that have run and whose answers are not out.
    pub(crate) lag_ticks: u64,
    /// Of the World.
    pub(crate) characters: usize,
    /// Those connected, by role and feed (lockstep, state, answers).
    pub(crate) connected: [[usize; 3]; 4],
    /// Connections whose session has ended here and that are not told yet where it goes on.
    pub(crate) travelling: usize,
    /// Sessions without a connection that may come back.
    pub(crate) waiting: usize,
    /// Those of them that are in their grace, by role.
    pub(crate) in_grace: [usize; 4],
    /// Those of them whose character stays until they come, by role.
    pub(crate) away: [usize; 4],
    /// NPCs that wait for a moment to plan again.
    pub(crate) plans_deferred: u32,
    /// What has been counted.
    pub(crate) counters: Counters,
    /// Turns that took longer than their period.
    pub(crate) overruns: u64,
    /// Nobody new comes in.
    pub(crate) draining: bool,
    /// What the shadow has found, if there is one.
    pub(crate) shadow: Option<ShadowCounters>,
}

/// How long things take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// Step and broadcast of a turn.
    pub(crate) tick: Classes,
    /// From when a turn is due to its start.
    pub(crate) start_error: Classes,
    /// Writing to the journal.
    pub(crate) append: Classes,
    /// Syncing it.
    pub(crate) sync: Classes,
    /// The phases of a step in which paths are planned.
    pub(crate) planning: Classes,
    /// Bytes that wait to be sent.
    pub(crate) queue_bytes: u64,
    /// Bytes written to it.
    pub(crate) journal_bytes: u64,
    /// Writes that failed.
    pub(crate) failed_writes: u64,
}

/// Counts of times by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    /// By [`BOUNDS_US`], then those above.
    pub(crate) counts: [u64; BOUNDS_US.len() + 1],
    /// Of all, µs; from the classes of a histogram, so to three digits.
    pub(crate) sum_us: u64,
}

impl Classes {
    /// From a histogram of µs.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let mut classes = Self::default();
        for value in histogram.iter_recorded() {
            let us = value.value_iterated_to();
            let class = BOUNDS_US.partition_point(|bound| *bound < us);
            classes.counts[class] += value.count_at_value();
            classes.sum_us += us * value.count_at_value();
        }
        classes
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Location {
    /// What is to be seen; the shell adds what it knows.
    pub(crate) fn status(&self) -> Status {
        let mut status = Status {
            next_tick: self.next_tick(),
            due_us: self.due_us(),
            clock: Some(self.clock_state()),
            storage: self.storage(),
            characters: self.world.characters().len(),
            plans_deferred: self.world.counters().waiting_npcs,
            counters: self.counters(),
            travelling: self.travellers.len(),
            draining: self.draining_until_us.is_some(),
            ..Status::default()
        };
        for session in self.roster.iter() {
            let role = match session.role {
                Role::Player => 0,
                Role::Bot => 1,
                Role::Watcher => 2,
                Role::Admin => 3,
            };
            match (&session.phase, session.connection()) {
                (Phase::Grace { .. }, _) => status.in_grace[role] += 1,
                (Phase::Away, _) => status.away[role] += 1,
                (_, Some(connection)) => {
                    let feed = match connection.feed {
                        Feed::Lockstep => 0,
                        Feed::State(_) => 1,
                        Feed::Answers => 2,
                    };
                    status.connected[role][feed] += 1;
                }
                (_, None) => {}
            }
        }
        status.waiting = status.in_grace.iter().chain(&status.away).sum();
        status
    }
}

impl Status {
    /// Everybody who is connected.
    pub(crate) fn connections(&self) -> usize {
        self.connected.iter().flatten().sum::<usize>() + self.travelling
    }

    /// The location does not run any more, or not for now: what was counted stays, but nobody and nothing is there.
    pub(crate) fn end(&mut self) {
        *self = Self {
            times: Times {
                queue_bytes: 0,
                ..std::mem::take(&mut self.times)
            },
            next_tick: self.next_tick,
            written_us: self.written_us,
            counters: self.counters,
            overruns: self.overruns,
            shadow: self.shadow,
            ..Self::default()
        };
    }
}
