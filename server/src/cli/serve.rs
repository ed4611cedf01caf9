//! `lockstepd serve`: the daemon.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use super::admission::AdmissionArguments;
use super::output::{Output, complain};
use crate::daemon::{Daemon, JournalSettings, LocationSettings, Settings};
use crate::journal::retention::Retention;
use crate::journal::rotation::SEGMENT_BYTES_MAX;
use crate::journal::{Durability, policy};
use crate::location::Rules;
use crate::location::task::Report;

/// Run the daemon: without arguments the built-in demo, for this machine alone
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// Location file; its maps are read from its own folder. Without it: the built-in demo
    #[arg(long, value_name = "FILE")]
    location: Option<PathBuf>,
    /// TCP address of the game; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// Address of web page and admin; taken already, but nothing listens there yet
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7780")]
    http: SocketAddr,
    /// Folder of the journals
    #[arg(long, value_name = "DIR", default_value = "data")]
    data_dir: PathBuf,
    /// Ticks per second instead of the location's
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u16).range(1..=128))]
    tick_rate: Option<u16>,
    /// Number of bots instead of the location's
    #[arg(long, value_name = "N")]
    bots: Option<u32>,
    /// Players that may be there at once, those in their grace included; more are refused
    #[arg(long, value_name = "N", default_value_t = PLAYERS_MAX)]
    max_players: usize,
    /// Clients of a run that are asked for their World when their digest differs; it is kept beside the server's
    #[arg(long, value_name = "N", default_value_t = DESYNC_REPORTS_MAX)]
    desync_reports: u32,
    /// Stop after so many ticks
    #[arg(long, value_name = "N")]
    ticks: Option<u64>,
    /// Begin a new run even if the last one could go on
    #[arg(long)]
    new_run: bool,
    /// If the journal is damaged: go on from the last state that can be proved; what is given up is saved beside it and
    /// reported
    #[arg(long, conflicts_with = "new_run")]
    recover: bool,
    #[command(flatten)]
    journal: JournalArguments,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// Form of the log on stderr; RUST_LOG sets what is logged
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Print JSON objects: the address, and at the end the summary
    #[arg(long)]
    json: bool,
}

/// How the journal is kept
#[derive(Args)]
struct JournalArguments {
    /// What a turn and an answer wait for; `interval` loses no accepted command in a power cut, `tick` nothing that
    /// anybody saw, `os` what the system had not written
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Durability::Interval)]
    durability: Durability,
    /// With `--durability interval`: milliseconds from one sync to the next
    #[arg(long, value_name = "MS", default_value_t = policy::INTERVAL_MS,
        value_parser = clap::value_parser!(u64).range(1..=policy::INTERVAL_MS_MAX))]
    journal_interval_ms: u64,
    /// Milliseconds that the location may be ahead of what may be sent; past that its clock holds
    #[arg(long, value_name = "MS", default_value_t = policy::AHEAD_MS,
        value_parser = clap::value_parser!(u64).range(policy::AHEAD_MS_MIN..=policy::AHEAD_MS_MAX))]
    journal_ahead_ms_max: u64,
    /// Remove the oldest closed segments once they are so many hours old; without it none is too old
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u64).range(1..))]
    keep_hours: Option<u64>,
    /// Remove the oldest closed segments while the location's journal is larger; without it nothing is too much
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    keep_mib: Option<u64>,
    /// Bytes after which the next keyframe begins another segment
    #[arg(long, value_name = "BYTES", hide = true,
        value_parser = clap::value_parser!(u64).range(1..=SEGMENT_BYTES_MAX))]
    segment_bytes_max: Option<u64>,
    /// Ticks after which the next keyframe begins another segment
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    segment_ticks_max: Option<u64>,
}

/// Players that may be there at once unless a flag says otherwise.
const PLAYERS_MAX: usize = 2_048;
/// Clients of a run that are asked for their World unless a flag says otherwise.
const DESYNC_REPORTS_MAX: u32 = 16;

const EXAMPLES: &str = "\
Examples:
  lockstepd serve                                          the demo on 127.0.0.1:7777
  lockstepd serve --location courtyard.json --data-dir runs
  lockstepd serve --listen 127.0.0.1:0 --json              a free port, printed as {\"listening\": \"…\"}
  lockstepd serve --listen 0.0.0.0:7777 --ticket-key tickets.pem.pub --tls-cert chain.pem --tls-key key.pem
  lockstepd serve --listen 0.0.0.0:7777 --insecure         for everybody who can reach this machine

SIGINT and SIGTERM end it in order: everybody is told, the journal is closed, a summary is printed.
SIGHUP reads ticket keys, certificate and bans.json (in the data folder) again; nobody loses a connection but who is banned.
A second signal to end changes nothing; SIGKILL waits for nothing, and the next start repairs what it left.
The next start with the same location, maps and tick rate goes on where this one ended.";

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// Serves until a signal comes, the ticks are over or the journal cannot be kept.
///
/// # Errors
/// Refused configuration or location files (78), damaged (65) or failing (74) journal.
pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    start_log(arguments.log_format);
    let daemon = Daemon::prepare(arguments.settings())?;
    for note in &daemon.opened().notes {
        complain(note);
    }
    greet(arguments, &daemon)?;
    let report = daemon.run()?;
    summarise(arguments, &report)?;
    Ok(ExitCode::SUCCESS)
}

impl ServeArguments {
    fn settings(&self) -> Settings {
        Settings {
            listen: self.listen,
            http: self.http,
            admission: self.admission.settings(),
            journal: JournalSettings {
                data_dir: self.data_dir.clone(),
                new_run: self.new_run,
                recover: self.recover,
                durability: self.journal.durability,
                interval_ms: self.journal.journal_interval_ms,
                ahead_ms_max: self.journal.journal_ahead_ms_max,
                segment_bytes_max: self.journal.segment_bytes_max,
                segment_ticks_max: self.journal.segment_ticks_max,
                retention: Retention::of_flags(self.journal.keep_hours, self.journal.keep_mib),
            },
            location: LocationSettings {
                file: self.location.clone(),
                tick_rate: self.tick_rate,
                bots: self.bots,
                desync_reports_max: self.desync_reports,
                rules: Rules {
                    players_max: self.max_players,
                    lockstep_roles: self.admission.lockstep_roles(),
                    on_leave: self.admission.on_leave(),
                },
            },
            ticks_max: self.ticks,
        }
    }
}

/// Says where to look and what to do next. The line `listening on ADDR` is for programs too.
fn greet(arguments: &ServeArguments, daemon: &Daemon) -> anyhow::Result<()> {
    let (definition, opened) = (daemon.definition(), daemon.opened());
    let address = daemon.address()?;
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&Listening {
            listening: address,
            location: definition.name(),
            run: opened.run_number,
            next_tick: opened.world.tick(),
            durability: arguments.journal.durability,
        })?;
        return output.finish();
    }
    let beginning = if opened.fresh {
        "begins".to_owned()
    } else {
        format!("goes on at tick {}", opened.world.tick())
    };
    output.line(format_args!("listening on {address}"))?;
    output.line(format_args!(
        "location {}: {} characters, {} Hz; run {} {beginning}",
        definition.name(),
        opened.world.characters().len(),
        definition.tick_rate(),
        opened.run_number,
    ))?;
    output.line(format_args!(
        "journal in {}, durability {}",
        arguments.data_dir.join(definition.name()).display(),
        arguments.journal.durability
    ))?;
    output.line("")?;
    output.line("In another terminal:")?;
    output.line(format_args!(
        "  lockstepd bot --connect {address} --count 50 --seconds 30    fifty clients that check every tick"
    ))?;
    output.line(format_args!(
        "  lockstepd replay {} --verify    the journal, digest by digest (after Ctrl-C)",
        arguments.data_dir.display()
    ))?;
    output.finish()
}

#[derive(Serialize)]
struct Listening<'a> {
    listening: SocketAddr,
    location: &'a str,
    run: u64,
    next_tick: u64,
    durability: Durability,
}

/// Prints what has been done (spec 6).
fn summarise(arguments: &ServeArguments, report: &Report) -> anyhow::Result<()> {
    let counters = report.counters;
    let summary = Summary {
        ticks: counters.ticks,
        overruns: report.overruns,
        slips: counters.slips,
        tick_us: times(&report.tick_us),
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
        last_tick: report.last_tick,
        digest: format!("{:016x}", report.digest),
    };
    let mut output = Output::stdout();
    if arguments.json {
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
    output.line(format_args!("last tick {last}  digest {}", summary.digest))?;
    output.finish()
}

#[derive(Serialize)]
struct Summary {
    ticks: u64,
    overruns: u64,
    slips: u64,
    tick_us: Times,
    sessions: u64,
    resumes: u64,
    commands: Commands,
    digests: u64,
    desyncs: u64,
    resyncs: u64,
    dropped_queues: u64,
    journal: JournalSummary,
    last_tick: Option<u64>,
    digest: String,
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

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Started once; a second time changes nothing.
    let _ = match format {
        LogFormat::Text => log.with_target(false).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
}
