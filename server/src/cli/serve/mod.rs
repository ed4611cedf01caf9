//! `lockstepd serve`: the daemon.

mod log;
mod summary;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::log::Log;
use super::admission::{AdmissionArguments, name};
use super::output::{Output, complain};
use crate::config::{Config, Value};
use crate::daemon::{Daemon, Prepared, Settings};
use crate::exit::{Status, WithStatus};
use crate::journal::rotation::SEGMENT_BYTES_MAX;
use crate::journal::{Durability, policy};

/// Run the daemon: without arguments the built-in demo, for this machine alone
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// Configuration file; the flags win over it, and over the environment (LOCKSTEPD_SECTION__KEY)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the configuration, with where each value came from, and end
    #[arg(long)]
    print_config: bool,
    /// Location files, each with its maps in its own folder; once for all or once for each. Without: the built-in demo
    #[arg(long, value_name = "FILE", num_args = 1..)]
    location: Vec<PathBuf>,
    /// TCP address of the game; port 0 takes a free one, which is printed [default: 127.0.0.1:7777]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Address of admin, health and metrics, or `off` [default: 127.0.0.1:7780]
    #[arg(long, value_name = "ADDR|off", value_parser = address_or_off)]
    http: Option<String>,
    /// Folder of the journals [default: data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Ticks per second instead of the location's
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u16).range(1..=128))]
    tick_rate: Option<u16>,
    /// Number of bots instead of the location's
    #[arg(long, value_name = "N")]
    bots: Option<u32>,
    /// Players that may be in a location at once, those in their grace included; more are refused [default: 2048]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=16_384))]
    max_players: Option<u64>,
    /// Clients of a run that are asked for their World when their digest differs; it is kept beside the server's
    /// [default: 16]
    #[arg(long, value_name = "N")]
    desync_reports: Option<u32>,
    /// Run each turn again in a World loaded from the snapshot before it, and tell where the two differ: proves that
    /// snapshots hold everything
    #[arg(long)]
    shadow: bool,
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
    /// Form of the log on stderr; RUST_LOG sets what is logged [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Print JSON objects: the address, and at the end the summary
    #[arg(long)]
    json: bool,
}

/// How the journal is kept
#[derive(Args)]
struct JournalArguments {
    /// What a turn and an answer wait for; `interval` loses no accepted command in a power cut, `tick` nothing that
    /// anybody saw, `os` what the system had not written [default: interval]
    #[arg(long, value_name = "WHEN", value_enum)]
    durability: Option<Durability>,
    /// With `--durability interval`: milliseconds from one sync to the next [default: 50]
    #[arg(long, value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..=policy::INTERVAL_MS_MAX))]
    journal_interval_ms: Option<u64>,
    /// Milliseconds that the location may be ahead of what may be sent; past that its clock holds [default: 2000]
    #[arg(long, value_name = "MS",
        value_parser = clap::value_parser!(u64).range(policy::AHEAD_MS_MIN..=policy::AHEAD_MS_MAX))]
    journal_ahead_ms_max: Option<u64>,
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

const EXAMPLES: &str = "\
Examples:
  lockstepd serve                                          the demo on 127.0.0.1:7777
  lockstepd serve --location courtyard.json --data-dir runs
  lockstepd serve --location courtyard.json cellar.json    two locations; clients name the one they want
  lockstepd serve --config lockstepd.toml --print-config   what holds, and where it came from
  lockstepd serve --listen 127.0.0.1:0 --json              a free port, printed as {\"listening\": \"…\"}
  lockstepd serve --listen 0.0.0.0:7777 --ticket-key tickets.pem.pub --tls-cert chain.pem --tls-key key.pem
  lockstepd serve --listen 0.0.0.0:7777 --insecure         for everybody who can reach this machine

SIGINT and SIGTERM end it in order: everybody is told, the journal is closed, a summary is printed.
SIGHUP reads the configuration, ticket keys, certificate, token and bans.json (in the data folder) again; what cannot
change without a restart is named; nobody loses a connection but who is banned.
A second signal ends a drain at once; SIGKILL waits for nothing, and the next start repairs what it left.
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
/// Refused configuration or location files (78), damaged (65) or failing (74) journal. A location that stayed down is no
/// error, but ends with 1.
pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let config = Config::load(arguments.config.as_deref(), arguments.flags()).with_status(Status::Refused)?;
    if arguments.print_config {
        let mut output = Output::stdout();
        output.line(config.print().trim_end())?;
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let log = Log::start(&config)?;
    let mut checked = config.check().with_status(Status::Refused)?;
    arguments.complete(&mut checked.settings);
    let daemon = Daemon::prepare(checked)?;
    for location in daemon.locations() {
        let _inside = tracing::info_span!("location", name = location.definition().name()).entered();
        for note in &location.opened().notes {
            match config.text("log.format") {
                // Whoever reads a log as objects reads nothing else.
                Some("json") => tracing::warn!("{note}"),
                _ => complain(note),
            }
        }
    }
    greet(arguments, &config, &daemon)?;
    let mut config = config;
    let reports = daemon.run(|| reload(arguments, &log, &mut config))?;
    summary::print(&reports, arguments.json)?;
    for location in reports.iter().filter(|location| location.down.is_some()) {
        let reason = location.down.as_deref().unwrap_or_default();
        complain(format_args!("error: location {}: {reason}", location.name));
    }
    if reports.iter().any(|location| location.down.is_some()) {
        return Ok(Status::Failed.into());
    }
    Ok(ExitCode::SUCCESS)
}

impl ServeArguments {
    /// What the flags say of keys of the configuration.
    fn flags(&self) -> Vec<(&'static str, Value)> {
        let text = |value: &dyn ToString| Value::Text(value.to_string());
        let path = |path: &PathBuf| Value::Text(path.display().to_string());
        let files: Vec<String> = self
            .location
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let flags = [
            (
                "locations.files",
                (!files.is_empty()).then_some(Value::List(files)),
            ),
            ("server.listen", self.listen.as_ref().map(|address| text(address))),
            ("http.listen", self.http.as_ref().map(|address| text(address))),
            ("journal.dataDir", self.data_dir.as_ref().map(path)),
            (
                "journal.durability",
                self.journal
                    .durability
                    .as_ref()
                    .map(|when| Value::Text(name(when))),
            ),
            (
                "journal.intervalMs",
                self.journal.journal_interval_ms.map(Value::Number),
            ),
            (
                "journal.aheadMsMax",
                self.journal.journal_ahead_ms_max.map(Value::Number),
            ),
            (
                "locations.tickRate",
                self.tick_rate.map(|rate| Value::Number(rate.into())),
            ),
            ("locations.bots", self.bots.map(|bots| Value::Number(bots.into()))),
            ("locations.playersMax", self.max_players.map(Value::Number)),
            (
                "locations.desyncReportsMax",
                self.desync_reports.map(|reports| Value::Number(reports.into())),
            ),
            ("locations.shadow", self.shadow.then_some(Value::Boolean(true))),
            (
                "log.format",
                self.log_format.as_ref().map(|format| Value::Text(name(format))),
            ),
        ];
        let set = |(path, value): (&'static str, Option<Value>)| Some((path, value?));
        flags
            .into_iter()
            .filter_map(set)
            .chain(self.admission.flags())
            .collect()
    }

    /// What no key of the configuration says.
    fn complete(&self, settings: &mut Settings) {
        settings.ticks_max = self.ticks;
        let journal = &mut settings.journal;
        (journal.new_run, journal.recover) = (self.new_run, self.recover);
        journal.segment_bytes_max = self.journal.segment_bytes_max;
        journal.segment_ticks_max = self.journal.segment_ticks_max;
    }
}

/// Says where to look and what to do next. The line `listening on ADDR` is for programs too.
fn greet(arguments: &ServeArguments, config: &Config, daemon: &Daemon) -> anyhow::Result<()> {
    let address = daemon.address()?;
    let data_dir = config.text("journal.dataDir").unwrap_or_default();
    let durability = config.text("journal.durability").unwrap_or_default();
    let mut output = Output::stdout();
    if arguments.json {
        let locations: Vec<ListeningLocation<'_>> = daemon.locations().map(listening).collect();
        let first = locations.first().expect("a daemon has a location");
        output.json(&Listening {
            listening: address,
            http: daemon.http_address()?,
            location: first.location,
            run: first.run,
            next_tick: first.next_tick,
            durability,
            locations: &locations,
        })?;
        return output.finish();
    }
    output.line(format_args!("listening on {address}"))?;
    for location in daemon.locations() {
        let (definition, opened) = (location.definition(), location.opened());
        let beginning = if opened.fresh {
            "begins".to_owned()
        } else {
            format!("goes on at tick {}", opened.world.tick())
        };
        output.line(format_args!(
            "location {}: {} characters, {} Hz; run {} {beginning}",
            definition.name(),
            opened.world.characters().len(),
            definition.tick_rate(),
            opened.run_number,
        ))?;
        output.line(format_args!(
            "journal in {}, durability {durability}",
            Path::new(data_dir).join(definition.name()).display(),
        ))?;
    }
    if let Some(http) = daemon.http_address()? {
        let scheme = match config.text("admission.tlsCertificate") {
            Some(_) => "https",
            None => "http",
        };
        output.line(format_args!(
            "admin, health and metrics on {scheme}://{http} (/openapi.json)"
        ))?;
    }
    output.line("")?;
    output.line("In another terminal:")?;
    output.line(format_args!(
        "  lockstepd bot --connect {address} --count 50 --seconds 30    fifty clients that check every tick"
    ))?;
    output.line(format_args!(
        "  lockstepd replay {data_dir} --verify    the journal, digest by digest (after Ctrl-C)"
    ))?;
    output.finish()
}

#[derive(Serialize)]
struct Listening<'a> {
    listening: SocketAddr,
    /// Admin, health and metrics.
    http: Option<SocketAddr>,
    /// The first location.
    location: &'a str,
    run: u64,
    next_tick: u64,
    durability: &'a str,
    locations: &'a [ListeningLocation<'a>],
}

#[derive(Serialize)]
struct ListeningLocation<'a> {
    location: &'a str,
    run: u64,
    next_tick: u64,
}

fn listening(location: &Prepared) -> ListeningLocation<'_> {
    ListeningLocation {
        location: location.definition().name(),
        run: location.opened().run_number,
        next_tick: location.opened().world.tick(),
    }
}

fn address_or_off(text: &str) -> Result<String, String> {
    if text == "off" || text.parse::<SocketAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    Err("an IP address and a port are expected, or `off`".to_owned())
}

/// Reads the configuration again and says what of it holds from now on and what does not; `None`: nothing of it does.
fn reload(arguments: &ServeArguments, log: &Log, config: &mut Config) -> Option<Settings> {
    let again = Config::load(arguments.config.as_deref(), arguments.flags());
    let again = again.and_then(|again| again.settings().map(|settings| (again, settings)));
    let (again, settings) = match again {
        Ok(again) => again,
        Err(problems) => {
            tracing::error!("SIGHUP: the configuration stays as it was: {problems}");
            return None;
        }
    };
    let differences = config.differences(&again);
    let (taken, kept): (Vec<_>, Vec<_>) = differences.into_iter().partition(|(_, reload)| *reload);
    for (key, _) in &kept {
        tracing::warn!(key, "SIGHUP: has changed, but only a restart takes it");
    }
    if kept
        .iter()
        .any(|(key, _)| key == "location" || key == "locations.files")
    {
        // Which rules are whose is not known any more.
        tracing::warn!("SIGHUP: as long as the locations are others, nothing of the configuration is taken");
        return None;
    }
    for (key, _) in &taken {
        tracing::info!(key, "SIGHUP: has changed");
    }
    log.reload(&again);
    *config = again;
    Some(settings)
}
