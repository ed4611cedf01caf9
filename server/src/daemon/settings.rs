//! What the daemon is to do: plain values, wherever they came from.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::admission::AdmissionSettings;
use crate::http::HttpSettings;
use crate::journal::policy::RETRY;
use crate::journal::retention::Retention;
use crate::journal::rotation::SegmentLimits;
use crate::journal::{Durability, Policy};
use crate::location::Rules;

/// Everything that the daemon has to be told.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// TCP address of the game; port 0 takes a free one.
    pub(crate) listen: SocketAddr,
    /// Admin, health and metrics; `None`: there are none.
    pub(crate) http: Option<HttpSettings>,
    /// Who may come in.
    pub(crate) admission: AdmissionSettings,
    /// Where and how the turns are kept.
    pub(crate) journal: JournalSettings,
    /// The locations; the first is the one that clients get who name none.
    pub(crate) locations: Vec<LocationSettings>,
    /// Stop after so many ticks.
    pub(crate) ticks_max: Option<u64>,
    /// From the announcement of the end to the end.
    pub(crate) drain: Duration,
}

/// Where and how the turns are kept (spec 5).
#[derive(Clone, Debug)]
pub(crate) struct JournalSettings {
    /// Folder of the journals.
    pub(crate) data_dir: PathBuf,
    /// Begin a new run even if the last one could go on.
    pub(crate) new_run: bool,
    /// Do not start on a journal of another definition.
    pub(crate) same_definition: bool,
    /// Go on after damage, giving up what cannot be proved.
    pub(crate) recover: bool,
    /// What a turn and an answer wait for.
    pub(crate) durability: Durability,
    /// With `interval`, from one sync to the next, ms.
    pub(crate) interval_ms: u64,
    /// How far the location may be ahead of what may leave, ms.
    pub(crate) ahead_ms_max: u64,
    /// Bytes after which the next keyframe begins another segment; `None`: as in spec 5.1.
    pub(crate) segment_bytes_max: Option<u64>,
    /// Ticks after which the next keyframe begins another segment; `None`: as in spec 5.1.
    pub(crate) segment_ticks_max: Option<u64>,
    /// What of closed segments stays.
    pub(crate) retention: Retention,
}

impl JournalSettings {
    /// What the journal's thread is told, in a location of this tick rate.
    pub(crate) fn policy(&self, tick_rate: u16) -> Policy {
        let usual = SegmentLimits::at(tick_rate);
        Policy {
            durability: self.durability,
            interval: Duration::from_millis(self.interval_ms),
            retry: RETRY,
            segment: SegmentLimits {
                bytes_max: self.segment_bytes_max.unwrap_or(usual.bytes_max),
                ticks_max: self.segment_ticks_max.unwrap_or(usual.ticks_max),
            },
        }
    }
}

/// One location.
#[derive(Clone, Debug)]
pub(crate) struct LocationSettings {
    /// Its file; `None`: the demo that is built in.
    pub(crate) file: Option<PathBuf>,
    /// Ticks per second instead of the file's.
    pub(crate) tick_rate: Option<u16>,
    /// Number of bots instead of the file's.
    pub(crate) bots: Option<u32>,
    /// Clients of a run that are asked for their World when their digest differs.
    pub(crate) desync_reports_max: u32,
    /// Every turn runs in a World that was loaded from a snapshot, too.
    pub(crate) shadow: bool,
    /// Who may be there.
    pub(crate) rules: Rules,
}
