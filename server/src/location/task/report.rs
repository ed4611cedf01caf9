//! What a location has done.

use hdrhistogram::Histogram;

use crate::journal::statistics::Statistics;
use crate::location::Counters;
use crate::location::shadow::ShadowCounters;

/// Longest time of a turn that the summary tells from longer ones, µs.
pub(crate) const TICK_US_MAX: u64 = 600_000_000;

/// What a location has done, for the summary.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// What was counted.
    pub(crate) counters: Counters,
    /// Turns whose step and broadcast took longer than the period.
    pub(crate) overruns: u64,
    /// Step and broadcast of each turn, µs.
    pub(crate) tick_us: Histogram<u64>,
    /// Of that, what the location's own thread did: everything up to the hand-over to the journal, µs.
    pub(crate) turn_us: Histogram<u64>,
    /// From when each turn was due to its start, µs.
    pub(crate) start_error_us: Histogram<u64>,
    /// What the journal did.
    pub(crate) journal: Statistics,
    /// What the shadow found, if there was one.
    pub(crate) shadow: Option<ShadowCounters>,
    /// The last turn that ran, and the digest after it; `None`: none ever did.
    pub(crate) last_tick: Option<u64>,
    /// Digest of the World.
    pub(crate) digest: u64,
    /// It ended because an operator wants the next run.
    pub(crate) run_ended: bool,
}

impl Report {
    /// Of a location that does not run: step `tick` would come next.
    pub(crate) fn nothing(tick: u64, digest: u64) -> Self {
        let histogram =
            || Histogram::new_with_bounds(1, TICK_US_MAX, 3).expect("constant bounds that are allowed");
        Self {
            counters: Counters::default(),
            overruns: 0,
            tick_us: histogram(),
            turn_us: histogram(),
            start_error_us: histogram(),
            journal: Statistics::new().expect("constant bounds that are allowed"),
            shadow: None,
            last_tick: tick.checked_sub(1),
            digest,
            run_ended: false,
        }
    }

    /// Adds what another location has done.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.overruns += other.overruns;
        self.tick_us += &other.tick_us;
        self.turn_us += &other.turn_us;
        self.start_error_us += &other.start_error_us;
        self.journal.add(&other.journal);
        if let Some(shadow) = &other.shadow {
            self.shadow.get_or_insert_default().add(shadow);
        }
    }
}
