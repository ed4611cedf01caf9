//! Figures of a daemon between two moments, as its metrics have them.

use std::fmt;
use std::net::SocketAddr;

use serde_json::Value;
use tempfile::tempdir;

use super::process::Process;
use crate::harness::{Bots, Daemon};
use crate::pages::metrics;
use crate::serve::ANY_PORT;

/// Counts of a histogram by class: the upper bound as it is printed, and how many are at most that.
type Classes = Vec<(String, u64)>;

/// The times of turns up to a moment.
pub(super) struct Moment {
    step: Classes,
    start_error: Classes,
}

/// What 99 of 100 turns between two moments stayed within.
#[derive(Clone, Copy)]
pub(super) struct Figures {
    /// Step and broadcast.
    step: Bound,
    /// From when a turn was due to its start.
    start_error: Bound,
}

/// The upper end of a class of a histogram.
#[derive(Clone, Copy)]
struct Bound {
    /// Of all classes.
    place: usize,
    ms: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "steps within {} ms, start errors within {} ms",
            self.step.ms, self.start_error.ms
        )
    }
}

impl Moment {
    /// Now; the daemon has written its figures within the last second.
    pub(super) fn now(http: SocketAddr) -> Self {
        let text = metrics(http);
        let classes = |name: &str| {
            let prefix = format!("{name}_bucket");
            let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
            lines.map(class).collect()
        };
        Self {
            step: classes("lockstepd_tick_duration_seconds"),
            start_error: classes("lockstepd_tick_start_error_seconds"),
        }
    }

    /// From this moment to a later one.
    pub(super) fn until(&self, later: &Self) -> Figures {
        Figures {
            step: p99(&self.step, &later.step),
            start_error: p99(&self.start_error, &later.start_error),
        }
    }
}

/// Sessions without a connection that may come back, now.
pub(super) fn sessions_waiting(http: SocketAddr) -> i64 {
    let text = metrics(http);
    let waiting = text
        .lines()
        .filter(|line| line.starts_with("lockstepd_sessions{") && line.contains("feed=\"none\""));
    let counts = waiting.map(|line| {
        line.rsplit(' ')
            .next()
            .and_then(|count| count.parse::<i64>().ok())
    });
    counts.map(|count| count.expect("a count")).sum()
}

/// A line of a histogram behind its name.
fn class(line: &str) -> (String, u64) {
    let (labels, count) = line.rsplit_once(' ').expect("labels and a count");
    let bound = labels
        .split("le=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let count = count.parse().ok();
    let class = bound.map(str::to_owned).zip(count);
    class.unwrap_or_else(|| panic!("no class of a histogram: {line:?}"))
}

/// The class within which 99 of 100 are that came in between.
fn p99(before: &Classes, after: &Classes) -> Bound {
    let came: Vec<(&str, u64)> = before
        .iter()
        .zip(after)
        .map(|((bound, before), (_, after))| (bound.as_str(), after - before))
        .collect();
    let all = came.last().map_or(0, |(_, all)| *all);
    assert!(all > 0, "turns have run in between");
    let place = came.iter().position(|(_, within)| 100 * within >= 99 * all);
    let place = place.expect("all are within the last");
    let seconds = came[place].0.parse::<f64>();
    Bound {
        place,
        ms: seconds.map_or(f64::INFINITY, |seconds| 1_000.0 * seconds),
    }
}

/// The turns take as long as they did while nobody else was there: within the same class or the next.
pub(super) fn compare_turns(what: &str, quiet: &Figures, loud: &Figures) {
    println!("{what}; without: {quiet}; with: {loud}");
    assert!(loud.step.place <= quiet.step.place + 1, "{what}");
}

/// How long bots play, seconds.
const SECONDS: u32 = 60;

/// A daemon of its own with so many bots.
pub(super) struct Load<'a> {
    count: u32,
    tick_rate: &'a str,
    more: &'a [&'a str],
}

/// What became of it.
pub(super) struct Loaded {
    pub(super) answer_ms_p99: f64,
    pub(super) answer_ticks_p99: u64,
    tick_us_p99: u64,
    pub(super) start_error_us_p99: u64,
    pub(super) overruns: u64,
    pub(super) desyncs: u64,
    /// Above the idle daemon, KiB.
    pub(super) resident_kib: u64,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "answers p99 {} ms, {} ticks; turns p99 {} µs, start error p99 {} µs, {} overruns; {} desyncs; {} KiB above the \
             idle daemon",
            self.answer_ms_p99,
            self.answer_ticks_p99,
            self.tick_us_p99,
            self.start_error_us_p99,
            self.overruns,
            self.desyncs,
            self.resident_kib
        )
    }
}

impl<'a> Load<'a> {
    pub(super) fn of(count: u32, tick_rate: &'a str, more: &'a [&'a str]) -> Self {
        Self {
            count,
            tick_rate,
            more,
        }
    }

    /// Plays; how it was.
    pub(super) fn run(&self) -> Loaded {
        let data = tempdir().expect("a folder");
        let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", self.tick_rate]);
        let process = Process::new(daemon.process());
        let idle = process.resident_kib();
        let bots = Bots::start(daemon.address, self.count, SECONDS, self.more);
        let (status, played) = bots.finish();
        // What was allocated for them stays, so this is its highest.
        let resident_kib = process.resident_kib_highest() - idle;
        assert_eq!(status, Some(0), "{played:#}");
        let summary = daemon.terminate();
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{played:#} {summary:#}"));
        Loaded {
            answer_ms_p99: played["latency_ms"]["p99"].as_f64().expect("answers"),
            answer_ticks_p99: number(&played["latency_ticks"]["p99"]),
            tick_us_p99: number(&summary["tick_us"]["p99"]),
            start_error_us_p99: number(&summary["start_error_us"]["p99"]),
            overruns: number(&summary["overruns"]),
            desyncs: number(&summary["desyncs"]) + number(&played["desyncs"]),
            resident_kib,
        }
    }
}

/// Those who behave wait as long for their answers as without the others, but for a tenth.
pub(super) fn compare(what: &str, quiet: &Loaded, loud: &Loaded) {
    let ratio = loud.answer_ms_p99 / quiet.answer_ms_p99;
    println!("{what}: {ratio:.3} of the time for an answer; without: {quiet}; with: {loud}");
    assert!(ratio <= 1.1, "{ratio}");
    assert_eq!((loud.overruns, loud.desyncs), (0, 0));
}
