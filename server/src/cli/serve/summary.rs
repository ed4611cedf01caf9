//! What the daemon has done, at its end (spec 6).

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cli::output::Output;
use crate::daemon::LocationReport;
use crate::location::shadow::ShadowCounters;
use crate::location::task::Report;

/// Prints what has been done (spec 6).
pub(super) fn print(reports: &[LocationReport], json: bool) -> anyhow::Result<()> {
    let report = total(reports);
    let counters = report.counters;
    let summary = Summary {
        ticks: counters.ticks,
        overruns: report.overruns,
        slips: counters.slips,
        tick_us: times(&report.tick_us),
        start_error_us: times(&report.start_error_us),
        sessions: counters.sessions,
        resumes: counters.resumes,
        commands: Commands {
            accepted: counters.accepted,
            refused: counters.refused,
        },
        digests: counters.digests,
        desyncs: counters.desyncs,
        resyncs: counters.resyncs,
        dropped_queues: counters.drops,
        journal: JournalSummary {
            bytes: report.journal.bytes,
            rotations: report.journal.rotations,
            holds: counters.holds,
            failed_writes: report.journal.failed_writes,
            appends: report.journal.append_us.len(),
            append_us: times(&report.journal.append_us),
            syncs: report.journal.sync_us.len(),
            sync_us: times(&report.journal.sync_us),
        },
        shadow: report.shadow.map(shadow),
        last_tick: report.last_tick,
        digest: format!("{:016x}", report.digest),
        locations: reports.iter().map(line).collect(),
    };
    let mut output = Output::stdout();
    if json {
        output.json(&summary)?;
        return output.finish();
    }
    let last = summary
        .last_tick
        .map_or("none".to_owned(), |tick| tick.to_string());
    output.line(format_args!(
        "ticks {}  overruns {}  slips {}  tick µs p50 {} p99 {} max {}",
        summary.ticks,
        summary.overruns,
        summary.slips,
        summary.tick_us.p50,
        summary.tick_us.p99,
        summary.tick_us.max
    ))?;
    let Times { p50, p99, max } = summary.start_error_us;
    output.line(format_args!("start error µs p50 {p50} p99 {p99} max {max}"))?;
    output.line(format_args!(
        "sessions {}  resumes {}  commands accepted {} refused {}  digests {}  desyncs {}",
        summary.sessions,
        summary.resumes,
        summary.commands.accepted,
        summary.commands.refused,
        summary.digests,
        summary.desyncs
    ))?;
    let journal = &summary.journal;
    output.line(format_args!(
        "journal {} bytes  appends {} µs p50 {} p99 {}  syncs {} µs p50 {} p99 {} max {}  holds {}",
        journal.bytes,
        journal.appends,
        journal.append_us.p50,
        journal.append_us.p99,
        journal.syncs,
        journal.sync_us.p50,
        journal.sync_us.p99,
        journal.sync_us.max,
        journal.holds
    ))?;
    if let Some(shadow) = &summary.shadow {
        output.line(format_args!(
            "shadow ticks {} (loaded for {})  skipped {}  differences {}",
            shadow.ticks, shadow.loaded, shadow.skipped, shadow.differences
        ))?;
    }
    if reports.len() == 1 {
        output.line(format_args!("last tick {last}  digest {}", summary.digest))?;
    }
    for location in summary.locations.iter().filter(|_| reports.len() > 1) {
        let last = location
            .last_tick
            .map_or("none".to_owned(), |tick| tick.to_string());
        output.line(format_args!(
            "location {}  last tick {last}  digest {}  restarts {}",
            location.name, location.digest, location.restarts
        ))?;
    }
    output.finish()
}

#[derive(Serialize)]
struct Summary<'a> {
    ticks: u64,
    overruns: u64,
    slips: u64,
    /// Step and broadcast of a turn.
    tick_us: Times,
    /// From when a turn is due to its start.
    start_error_us: Times,
    sessions: u64,
    resumes: u64,
    commands: Commands,
    digests: u64,
    desyncs: u64,
    resyncs: u64,
    dropped_queues: u64,
    journal: JournalSummary,
    /// With `--shadow`.
    shadow: Option<ShadowSummary>,
    /// The first location's.
    last_tick: Option<u64>,
    digest: String,
    locations: Vec<LocationLine<'a>>,
}

#[derive(Serialize)]
struct LocationLine<'a> {
    name: &'a str,
    ticks: u64,
    last_tick: Option<u64>,
    digest: String,
    /// How often it failed and was started again from its journal.
    restarts: u64,
}

fn line(location: &LocationReport) -> LocationLine<'_> {
    LocationLine {
        name: &location.name,
        ticks: location.report.counters.ticks,
        last_tick: location.report.last_tick,
        digest: format!("{:016x}", location.report.digest),
        restarts: location.restarts,
    }
}

/// All locations together; last tick and digest are the first one's.
fn total(reports: &[LocationReport]) -> Report {
    let (first, others) = reports.split_first().expect("a daemon has a location");
    let mut total = first.report.clone();
    for other in others {
        total.add(&other.report);
    }
    total
}

#[derive(Serialize)]
struct JournalSummary {
    bytes: u64,
    rotations: u64,
    /// How often the clock held because of it.
    holds: u64,
    failed_writes: u64,
    appends: u64,
    append_us: Times,
    syncs: u64,
    sync_us: Times,
}

#[derive(Serialize)]
struct ShadowSummary {
    /// After which its digest was compared.
    ticks: u64,
    /// Those of them for which it was loaded from the snapshot before.
    loaded: u64,
    /// Left out, since it did not keep up.
    skipped: u64,
    differences: u64,
}

fn shadow(counters: ShadowCounters) -> ShadowSummary {
    ShadowSummary {
        ticks: counters.compared,
        loaded: counters.loaded,
        skipped: counters.skipped,
        differences: counters.differences,
    }
}

#[derive(Serialize)]
struct Times {
    p50: u64,
    p99: u64,
    max: u64,
}

fn times(histogram: &Histogram<u64>) -> Times {
    Times {
        p50: histogram.value_at_quantile(0.5),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
    }
}

#[derive(Serialize)]
struct Commands {
    accepted: u64,
    refused: u64,
}
