//! What the operator chooses: when a turn and an answer may leave, how far the location may be ahead of the disk, how
//! large a segment becomes (spec 5.1, 5.6).

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::rotation::SegmentLimits;

/// Time between two syncs unless a flag says otherwise, ms.
pub(crate) const INTERVAL_MS: u64 = 50;
/// The longest that it may be.
pub(crate) const INTERVAL_MS_MAX: u64 = 1_000;
/// How far the location may be ahead of what it may send unless a flag says otherwise, ms.
pub(crate) const AHEAD_MS: u64 = 2_000;
/// The shortest that it may be: room for a few syncs.
pub(crate) const AHEAD_MS_MIN: u64 = 100;
/// The longest: turns that wait take memory.
pub(crate) const AHEAD_MS_MAX: u64 = 10_000;
/// Time between two syncs that nobody waits for.
pub(crate) const OS_SYNC: Duration = Duration::from_secs(5);
/// After a write that failed, the time until it is tried again.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

const _: () = assert!(INTERVAL_MS <= INTERVAL_MS_MAX);
const _: () = assert!(AHEAD_MS_MIN <= AHEAD_MS && AHEAD_MS <= AHEAD_MS_MAX);

/// What a turn and an answer wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// Both for the sync: a power cut loses nothing that anybody saw.
    Tick,
    /// A turn for its write, an answer for the next sync: a power cut loses no accepted command.
    Interval,
    /// Both for the write: a power cut loses what the system had not written by itself.
    Os,
}

impl std::fmt::Display for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tick => "tick",
            Self::Interval => "interval",
            Self::Os => "os",
        })
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// What a turn and an answer wait for.
    pub(crate) durability: Durability,
    /// With [`Durability::Interval`], from one sync to the next.
    pub(crate) interval: Duration,
    /// After a write that failed, the time until it is tried again.
    pub(crate) retry: Duration,
    /// When the next keyframe begins another segment.
    pub(crate) segment: SegmentLimits,
}

impl Policy {
    /// From one sync to the next, if there is anything to be synced.
    pub(crate) fn sync_every(&self) -> Duration {
        match self.durability {
            Durability::Tick => Duration::ZERO,
            Durability::Interval => self.interval,
            Durability::Os => OS_SYNC,
        }
    }
}
