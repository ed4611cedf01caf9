//! What the journal's threads have done and how long it took, for summaries and metrics.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest time that is told from longer ones, µs.
const US_MAX: u64 = 600_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    /// Bytes written, all segments together.
    pub(crate) bytes: u64,
    /// Segments gone over to.
    pub(crate) rotations: u64,
    /// Writes that failed, tries again included.
    pub(crate) failed_writes: u64,
    /// Encoding and writing what had come, one or more ticks, µs.
    pub(crate) append_us: Histogram<u64>,
    /// Syncs, µs.
    pub(crate) sync_us: Histogram<u64>,
}

impl Statistics {
    /// # Errors
    /// Never, since the bounds are constants that are allowed.
    pub(crate) fn new() -> io::Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, US_MAX, 3).map_err(io::Error::other);
        Ok(Self {
            bytes: 0,
            rotations: 0,
            failed_writes: 0,
            append_us: histogram()?,
            sync_us: histogram()?,
        })
    }

    /// Adds another journal's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.rotations += other.rotations;
        self.failed_writes += other.failed_writes;
        self.append_us += &other.append_us;
        self.sync_us += &other.sync_us;
    }
}

/// Counts a time in a histogram of microseconds.
pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1));
}
