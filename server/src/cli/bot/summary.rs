//! What became of the bots of a run: one report each, one summary of all.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use client::Tally;
use hdrhistogram::Histogram;
use protocol::Code;
use serde::Serialize;

/// Latencies above are counted as this; microseconds, or ticks, of which it is far more than enough.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// Different reasons that a bot counts.
const ERRORS_MAX: usize = 64;

/// What one bot saw.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) index: u32,
    pub(super) joined: bool,
    pub(super) ended_early: bool,
    pub(super) ticks: u64,
    pub(super) last_tick: u64,
    pub(super) missing_turns: u64,
    pub(super) desyncs: u64,
    pub(super) sent: u64,
    pub(super) accepted: u64,
    pub(super) without_effect: u64,
    pub(super) refused: u64,
    pub(super) refusals: BTreeSet<Code>,
    pub(super) unanswered: u64,
    pub(super) answered_twice: u64,
    pub(super) held_back: u64,
    pub(super) reconnects: u64,
    pub(super) resumes: u64,
    pub(super) rejoins: u64,
    pub(super) sessions_lost: u64,
    pub(super) moves: u64,
    pub(super) left_behind: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) script_failed: bool,
    /// What a State feed told, and in how many bytes.
    pub(super) observed: Tally,
    pub(super) difference_bytes: u64,
    /// How often each code or other reason stood in its way.
    errors: BTreeMap<String, u64>,
    /// The last thing that went wrong, for people.
    pub(super) trouble: Option<String>,
    latency_us: Vec<u64>,
    latency_ticks: Vec<u64>,
}

impl Report {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            joined: false,
            ended_early: false,
            ticks: 0,
            last_tick: 0,
            missing_turns: 0,
            desyncs: 0,
            sent: 0,
            accepted: 0,
            without_effect: 0,
            refused: 0,
            refusals: BTreeSet::new(),
            unanswered: 0,
            answered_twice: 0,
            held_back: 0,
            reconnects: 0,
            resumes: 0,
            rejoins: 0,
            sessions_lost: 0,
            moves: 0,
            left_behind: 0,
            bytes_in: 0,
            bytes_out: 0,
            script_failed: false,
            observed: Tally::default(),
            difference_bytes: 0,
            errors: BTreeMap::new(),
            trouble: None,
            latency_us: Vec::new(),
            latency_ticks: Vec::new(),
        }
    }

    pub(super) fn saw_tick(&mut self, tick: u64) {
        self.ticks += 1;
        self.last_tick = tick;
    }

    /// Counts a code, or another reason in words.
    pub(super) fn count_error(&mut self, reason: &str) {
        if self.errors.len() < ERRORS_MAX || self.errors.contains_key(reason) {
            *self.errors.entry(reason.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn waited(&mut self, waited: Duration) {
        let us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.latency_us.push(us);
    }

    pub(super) fn waited_ticks(&mut self, ticks: u64) {
        self.latency_ticks.push(ticks);
    }
}

/// What all bots saw.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    bots: u64,
    joined: u64,
    ended_early: u64,
    /// Most turns (or states) that one bot has seen.
    ticks: u64,
    /// Turns (or states) that all bots have seen together.
    turns: u64,
    last_tick: u64,
    missing_turns: u64,
    desyncs: u64,
    commands: Commands,
    latency_ms: Option<Latency<f64>>,
    latency_ticks: Option<Latency<u64>>,
    reconnects: u64,
    /// Came back to their own characters.
    resumes: u64,
    /// Came back as somebody new.
    rejoins: u64,
    /// Went where a Redirect sent them.
    moves: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// Bots with a line of the script that failed.
    scripts_failed: u64,
    observed: Observed,
    /// How often each code, or another reason in words, stood in the way.
    errors: BTreeMap<String, u64>,
    misbehaving: Misbehaving,
    #[serde(skip)]
    troubles: BTreeMap<String, Vec<u32>>,
}

#[derive(Debug, Default, Serialize)]
struct Commands {
    sent: u64,
    accepted: u64,
    /// Accepted, and yet they changed nothing.
    without_effect: u64,
    refused: u64,
    /// Why they were refused, each reason once.
    refusals: Vec<String>,
    unanswered: u64,
    /// Waited where a Redirect sent their bot away: nobody answers them.
    left_behind: u64,
    answered_twice: u64,
    /// Not sent, since too many waited.
    held_back: u64,
}

/// What observers were told, all together.
#[derive(Debug, Default, Serialize)]
struct Observed {
    states: u64,
    whole_states: u64,
    /// Of States that were differences and of Events, frames included.
    difference_bytes: u64,
    /// Characters that got elsewhere, each times the ticks it took.
    moves: u64,
    bytes_per_move: Option<f64>,
}

/// What became of those that were to misbehave.
#[derive(Debug, Default, Serialize)]
struct Misbehaving {
    bots: u64,
    joined: u64,
    errors: BTreeMap<String, u64>,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Debug, Serialize)]
struct Latency<T> {
    min: T,
    median: T,
    p99: T,
    max: T,
}

/// Complaints that are printed; the rest is counted.
const COMPLAINTS_MAX: usize = 5;

impl Summary {
    /// Of those that behave, and apart of those that do not.
    pub(super) fn of(reports: &[&Report], misbehaving: &[&Report]) -> Self {
        let sum = |field: fn(&Report) -> u64| reports.iter().map(|report| field(report)).sum::<u64>();
        let largest =
            |field: fn(&Report) -> u64| reports.iter().map(|report| field(report)).max().unwrap_or(0);
        let refusals: BTreeSet<Code> = reports
            .iter()
            .flat_map(|report| report.refusals.iter().copied())
            .collect();
        let mut troubles: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for report in reports {
            if let Some(trouble) = &report.trouble {
                troubles
                    .entry(trouble.clone())
                    .or_default()
                    .push(report.index + 1);
            }
        }
        let latencies =
            |of: fn(&Report) -> &[u64]| histogram(reports.iter().flat_map(|report| of(report)).copied());
        Self {
            bots: reports.len() as u64,
            joined: sum(|report| report.joined.into()),
            ended_early: sum(|report| report.ended_early.into()),
            ticks: largest(|report| report.ticks),
            turns: sum(|report| report.ticks),
            last_tick: largest(|report| report.last_tick),
            missing_turns: sum(|report| report.missing_turns),
            desyncs: sum(|report| report.desyncs),
            commands: Commands {
                sent: sum(|report| report.sent),
                accepted: sum(|report| report.accepted),
                without_effect: sum(|report| report.without_effect),
                refused: sum(|report| report.refused),
                refusals: refusals.iter().map(Code::to_string).collect(),
                unanswered: sum(|report| report.unanswered),
                left_behind: sum(|report| report.left_behind),
                answered_twice: sum(|report| report.answered_twice),
                held_back: sum(|report| report.held_back),
            },
            latency_ms: latencies(|report| &report.latency_us)
                .map(|histogram| Latency::of(&histogram, |us| (us as f64 / 10.0).round() / 100.0)),
            latency_ticks: latencies(|report| &report.latency_ticks)
                .map(|histogram| Latency::of(&histogram, |ticks| ticks)),
            reconnects: sum(|report| report.reconnects),
            resumes: sum(|report| report.resumes),
            rejoins: sum(|report| report.rejoins),
            moves: sum(|report| report.moves),
            bytes_in: sum(|report| report.bytes_in),
            bytes_out: sum(|report| report.bytes_out),
            scripts_failed: sum(|report| report.script_failed.into()),
            observed: Observed::of(reports),
            errors: errors(reports),
            misbehaving: Misbehaving::of(misbehaving),
            troubles,
        }
    }

    /// Nothing went wrong.
    pub(super) fn is_good(&self) -> bool {
        let answers = self.commands.accepted + self.commands.refused + self.commands.left_behind;
        self.joined == self.bots
            && self.ended_early == 0
            && self.scripts_failed == 0
            && self.missing_turns == 0
            && self.desyncs == 0
            && self.commands.unanswered == 0
            && self.commands.answered_twice == 0
            && answers == self.commands.sent
    }

    /// What went wrong, each thing once, for people.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut complaints: Vec<String> = Vec::new();
        for (trouble, bots) in self.troubles.iter().take(COMPLAINTS_MAX) {
            let others = match bots.len() {
                1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            complaints.push(format!("bot {}{others}: {trouble}", bots[0]));
        }
        if let Some(more) = self
            .troubles
            .len()
            .checked_sub(COMPLAINTS_MAX)
            .filter(|more| *more > 0)
        {
            complaints.push(format!("and {more} other complaints"));
        }
        complaints
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands = &self.commands;
        writeln!(
            f,
            "bots        {} of {} joined, {} ended early",
            self.joined, self.bots, self.ended_early
        )?;
        writeln!(
            f,
            "ticks       {} ({} turns in all, last tick {}), {} missing, {} desyncs",
            self.ticks, self.turns, self.last_tick, self.missing_turns, self.desyncs
        )?;
        write!(
            f,
            "commands    {} sent, {} accepted ({} without effect), {} refused",
            commands.sent, commands.accepted, commands.without_effect, commands.refused
        )?;
        if !commands.refusals.is_empty() {
            write!(f, " ({})", commands.refusals.join(", "))?;
        }
        writeln!(
            f,
            ", {} unanswered, {} answered twice",
            commands.unanswered, commands.answered_twice
        )?;
        if commands.held_back > 0 {
            writeln!(
                f,
                "            {} not sent, since too many waited",
                commands.held_back
            )?;
        }
        if let Some(Latency {
            min,
            median,
            p99,
            max,
        }) = &self.latency_ms
        {
            writeln!(
                f,
                "latency     min {min} ms, median {median} ms, p99 {p99} ms, max {max} ms"
            )?;
        }
        if let Some(Latency {
            min,
            median,
            p99,
            max,
        }) = &self.latency_ticks
        {
            writeln!(
                f,
                "            min {min}, median {median}, p99 {p99}, max {max} ticks"
            )?;
        }
        writeln!(
            f,
            "reconnects  {}: {} to their own characters, {} as somebody new",
            self.reconnects, self.resumes, self.rejoins
        )?;
        if self.moves > 0 {
            writeln!(
                f,
                "moves       {} to other locations, {} commands left behind",
                self.moves, commands.left_behind
            )?;
        }
        write!(f, "bytes       {} in, {} out", self.bytes_in, self.bytes_out)?;
        if let Observed {
            states,
            moves,
            bytes_per_move: Some(bytes),
            ..
        } = self.observed
        {
            write!(
                f,
                "\nobserved    {states} states, {moves} moves, {bytes} bytes a moving character and tick"
            )?;
        }
        if self.scripts_failed > 0 {
            write!(f, "\nscript      failed for {} bots", self.scripts_failed)?;
        }
        let ill = &self.misbehaving;
        if ill.bots > 0 {
            write!(f, "\nmisbehaving {} bots, {} were let in", ill.bots, ill.joined)?;
        }
        for (what, errors) in [("errors", &self.errors), ("of these", &ill.errors)] {
            if !errors.is_empty() {
                let list: Vec<String> = errors
                    .iter()
                    .map(|(reason, count)| format!("{count} × {reason}"))
                    .collect();
                write!(f, "\n{what:<12}{}", list.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Observed {
    fn of(reports: &[&Report]) -> Self {
        let tally = reports
            .iter()
            .fold(Tally::default(), |sum, report| sum + report.observed);
        let bytes: u64 = reports.iter().map(|report| report.difference_bytes).sum();
        Self {
            states: tally.differences + tally.wholes,
            whole_states: tally.wholes,
            difference_bytes: bytes,
            moves: tally.moves,
            bytes_per_move: (tally.moves > 0)
                .then(|| (100.0 * bytes as f64 / tally.moves as f64).round() / 100.0),
        }
    }
}

impl Misbehaving {
    fn of(reports: &[&Report]) -> Self {
        Self {
            bots: reports.len() as u64,
            joined: reports.iter().map(|report| u64::from(report.joined)).sum(),
            errors: errors(reports),
            bytes_in: reports.iter().map(|report| report.bytes_in).sum(),
            bytes_out: reports.iter().map(|report| report.bytes_out).sum(),
        }
    }
}

fn errors(reports: &[&Report]) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for (reason, count) in reports.iter().flat_map(|report| &report.errors) {
        *errors.entry(reason.clone()).or_default() += count;
    }
    errors
}

impl<T> Latency<T> {
    fn of(histogram: &Histogram<u64>, convert: impl Fn(u64) -> T) -> Self {
        Self {
            min: convert(histogram.min()),
            median: convert(histogram.value_at_quantile(0.5)),
            p99: convert(histogram.value_at_quantile(0.99)),
            max: convert(histogram.max()),
        }
    }
}

/// `None` if there are no values.
fn histogram(values: impl Iterator<Item = u64>) -> Option<Histogram<u64>> {
    let mut histogram =
        Histogram::new_with_max(LATENCY_US_MAX, 3).expect("bounds and digits that are allowed");
    for value in values {
        histogram.saturating_record(value);
    }
    (!histogram.is_empty()).then_some(histogram)
}
