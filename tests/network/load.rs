//! As many as the issue asks for, server and bots on the same machine: 200 characters, 20 clients that step the World.

use super::is_exhaustive;
use super::measure::Load;

/// Turns start at most so late, 99 of 100, µs.
const START_ERROR_US_MAX: u64 = 5_000;
/// Answers take at most so many turns, 99 of 100.
const ANSWER_TICKS_MAX: u64 = 2;
/// Memory above the idle daemon for each client, KiB.
const RESIDENT_KIB_PER_CLIENT_MAX: u64 = 64;

#[test]
fn as_many_as_were_promised() {
    if !is_exhaustive() {
        return;
    }
    for (count, tick_rate) in [(200, "30"), (1_000, "10")] {
        let figures = Load::of(count, tick_rate, &["--simulate", "20", "--play", "200"]).run();
        println!("{count} clients at {tick_rate} Hz: {figures}");
        assert_eq!((figures.overruns, figures.desyncs), (0, 0));
        assert!(figures.answer_ticks_p99 <= ANSWER_TICKS_MAX);
        assert!(figures.resident_kib / u64::from(count) <= RESIDENT_KIB_PER_CLIENT_MAX);
        assert!(figures.start_error_us_p99 <= START_ERROR_US_MAX);
    }
}
