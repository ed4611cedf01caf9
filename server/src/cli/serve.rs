//! `lockstepd serve`: the daemon.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use protocol::Bundle;
use serde::Serialize;
use sim::Definition;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::EnvFilter;

use super::output::{Output, complain};
use crate::exit::{Failure, Status, WithStatus};
use crate::journal::{self, OpenOptions, Opened};
use crate::listener;
use crate::location::task::{self, Handle, Report, Settings};
use crate::location::{Input, Start};
use crate::location_files::LocationFiles;

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
    /// Stop after so many ticks
    #[arg(long, value_name = "N")]
    ticks: Option<u64>,
    /// Begin a new run even if the last one could go on
    #[arg(long)]
    new_run: bool,
    /// Listen beyond this machine without tickets and without encryption
    #[arg(long)]
    insecure: bool,
    /// Form of the log on stderr; RUST_LOG sets what is logged
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Print JSON objects: the address, and at the end the summary
    #[arg(long)]
    json: bool,
}

/// Players that may be there at once unless a flag says otherwise.
const PLAYERS_MAX: usize = 2_048;
/// How long connections may take to end once they have been told.
const FAREWELL: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
Examples:
  lockstepd serve                                          the demo on 127.0.0.1:7777
  lockstepd serve --location courtyard.json --data-dir runs
  lockstepd serve --listen 127.0.0.1:0 --json              a free port, printed as {\"listening\": \"…\"}
  lockstepd serve --listen 0.0.0.0:7777 --insecure         for everybody who can reach this machine

SIGINT and SIGTERM end it in order: everybody is told, the journal is closed, a summary is printed.
A second one changes nothing; SIGKILL waits for nothing, and the next start repairs what it left.
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
    check_addresses(arguments)?;
    let (definition, bundle) = load(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads for the network")
        .with_status(Status::Io)?;
    let listener = runtime
        .block_on(TcpListener::bind(arguments.listen))
        .with_context(|| format!("{}: cannot listen", arguments.listen))
        .with_status(Status::Refused)?;
    let opened = open(arguments, &definition, &bundle)?;
    let address = listener
        .local_addr()
        .context("the address listened on")
        .with_status(Status::Io)?;
    // Before anybody is told that it runs: from then on a signal ends it in order.
    let signals = runtime.block_on(async { Signals::install() })?;
    greet(arguments, &definition, &opened, address)?;
    let report = runtime.block_on(serve(arguments, listener, signals, opened, &bundle))?;
    runtime.shutdown_timeout(Duration::from_millis(100));
    summarise(arguments, &report)?;
    Ok(ExitCode::SUCCESS)
}

fn check_addresses(arguments: &ServeArguments) -> anyhow::Result<()> {
    for (flag, address) in [("--listen", arguments.listen), ("--http", arguments.http)] {
        if !listener::is_loopback(address) && !arguments.insecure {
            return Err(anyhow!(
                "{flag} {address}: others could reach it, and there are no tickets yet; --insecure lets everybody in, unencrypted"
            ))
            .with_status(Status::Refused);
        }
    }
    Ok(())
}

/// Location and maps, checked, and as the bundle that the journal keeps and clients may ask for.
fn load(arguments: &ServeArguments) -> anyhow::Result<(Definition, Bundle)> {
    let files = match &arguments.location {
        Some(path) => LocationFiles::read(path).with_status(Status::Refused)?,
        None => LocationFiles::demo(),
    };
    let definition = files
        .definition(arguments.tick_rate, arguments.bots)
        .with_status(Status::Refused)?;
    let bundle = Bundle::new(files.location, arguments.tick_rate, arguments.bots, files.maps)
        .with_context(|| files.file)
        .with_status(Status::Refused)?;
    Ok((definition, bundle))
}

fn open(arguments: &ServeArguments, definition: &Definition, bundle: &Bundle) -> anyhow::Result<Opened> {
    let opened = journal::open(&OpenOptions {
        data_dir: &arguments.data_dir,
        location: definition.name(),
        bundle,
        definition,
        new_run: arguments.new_run,
    });
    let opened = opened.map_err(|error| Failure {
        status: error.status(),
        error: error.into(),
    })?;
    for note in &opened.notes {
        complain(note);
    }
    Ok(opened)
}

/// Says where to look and what to do next. The line `listening on ADDR` is for programs too.
fn greet(
    arguments: &ServeArguments,
    definition: &Definition,
    opened: &Opened,
    address: SocketAddr,
) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&Listening {
            listening: address,
            location: definition.name(),
            run: opened.run_number,
            next_tick: opened.world.tick(),
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
        "journal in {}",
        arguments.data_dir.join(definition.name()).display()
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
}

async fn serve(
    arguments: &ServeArguments,
    listener: TcpListener,
    signals: Signals,
    opened: Opened,
    bundle: &Bundle,
) -> anyhow::Result<Report> {
    let (ended, end) = oneshot::channel();
    let start = Start {
        world: opened.world,
        run: opened.run,
        bundle: bundle.encode(),
        sessions: opened.sessions,
        answers: opened.answers,
        last_session: opened.last_session,
        leave: opened.leave,
        players_max: arguments.max_players,
    };
    let settings = Settings {
        epoch: Instant::now(),
        ticks_max: arguments.ticks,
    };
    let (location, thread) = task::spawn(start, opened.journal, settings, move || {
        // Nobody waits for it any more once a signal has come.
        let _ = ended.send(());
    })
    .context("no thread for the location")
    .with_status(Status::Io)?;
    let (alive, mut all_gone) = mpsc::channel(1);
    let accepting = tokio::spawn(listener::accept(listener, location.clone(), alive));
    wait_for_end(&location, signals, end).await?;
    accepting.abort();
    let report = tokio::task::spawn_blocking(move || thread.join())
        .await
        .context("waiting for the location")?
        .map_err(|_| anyhow!("the location failed: a defect, please report it"))?
        .context("journal")
        .with_status(Status::Io)?;
    // Connections end by themselves; a peer that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, all_gone.recv()).await;
    Ok(report)
}

/// The signals that end the daemon in order.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they come here; within a runtime.
    fn install() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())
                .context("SIGTERM")
                .with_status(Status::Io)?,
            interrupt: signal(SignalKind::interrupt())
                .context("SIGINT")
                .with_status(Status::Io)?,
        })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Returns when the location has ended, by itself or because a signal came.
async fn wait_for_end(
    location: &Handle,
    mut signals: Signals,
    end: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut end = std::pin::pin!(end);
    tokio::select! {
        _ = &mut end => return Ok(()),
        signal = signals.next() => tracing::info!("{signal}: stopping"),
    }
    location.send(Input::Stop);
    // It goes on to its end: a second signal must not leave a journal that was not closed.
    loop {
        tokio::select! {
            _ = &mut end => return Ok(()),
            signal = signals.next() => tracing::warn!("{signal}: stopping already, the journal is being closed"),
        }
    }
}

/// Prints what has been done (spec 6).
fn summarise(arguments: &ServeArguments, report: &Report) -> anyhow::Result<()> {
    let counters = report.counters;
    let summary = Summary {
        ticks: counters.ticks,
        overruns: report.overruns,
        slips: counters.slips,
        tick_us: TickTimes {
            p50: report.tick_us.value_at_quantile(0.5),
            p99: report.tick_us.value_at_quantile(0.99),
            max: report.tick_us.max(),
        },
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
    output.line(format_args!("last tick {last}  digest {}", summary.digest))?;
    output.finish()
}

#[derive(Serialize)]
struct Summary {
    ticks: u64,
    overruns: u64,
    slips: u64,
    tick_us: TickTimes,
    sessions: u64,
    resumes: u64,
    commands: Commands,
    digests: u64,
    desyncs: u64,
    resyncs: u64,
    dropped_queues: u64,
    last_tick: Option<u64>,
    digest: String,
}

#[derive(Serialize)]
struct TickTimes {
    p50: u64,
    p99: u64,
    max: u64,
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
