//! `lockstepd bench journal`: what a journal costs the location's thread.
//!
//! A location as the daemon runs it, with its clock, its journal and its clients, but without a network: wandering NPCs
//! of `bench tick` and players who each walk somewhere every two seconds, whose outboxes are emptied as fast as they
//! fill. Blocks with a journal and blocks with one that keeps nothing alternate; all begin with the same World, and every
//! command names its tick, so they run the same turns but for who joins in which of the first ones. Counted is the time of each turn on the location's thread: close, step,
//! digest, answers, and the hand-over to the journal's thread. What that thread does it does at the same time, on
//! another core, and the clock is real, so both have the caches and the disk that they have in the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::nav::{Fixed, Point};
use anyhow::{Context, anyhow};
use clap::Args;
use hdrhistogram::Histogram;
use protocol::Bundle;
use protocol::message::{Hello, Need, Role};
use serde::Serialize;
use sim::bounded::Text;
use sim::{Command, Definition, Pcg32, World};
use tokio::runtime::Runtime;
use tokio::time::MissedTickBehavior;

use super::tick;
use crate::cli::output::{self, Output};
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::policy::{AHEAD_MS, INTERVAL_MS, RETRY};
use crate::journal::rotation::SegmentLimits;
use crate::journal::{Durability, OpenOptions, Policy, open};
use crate::location::outbox::Outbox;
use crate::location::task::{self, Entrant, Envelope, Handle, Journal, Report};
use crate::location::{ConnectionId, Idle, Input, OnLeave, Rules, SessionNumbers, Start, Visitor};

/// Measure what the journal adds to the location's ticks
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JournalArguments {
    /// Number of characters, those of the clients included
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=sim::CHARACTERS_MAX as i64))]
    characters: u32,
    /// Number of clients, each with a character
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=2_000))]
    clients: u32,
    /// Length of a block
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=3_600))]
    seconds: u64,
    /// Pairs of blocks, each one without and one with a journal
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=100))]
    pairs: u64,
    /// What the journal does
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Durability::Interval)]
    durability: Durability,
    /// Map (.json, .txt or .map); without it the map of the built-in demo, side by side with itself
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Where the journals are made for the time being; it should be the disk that the daemon will use
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bench journal
  lockstepd bench journal --seconds 15 --durability tick
  lockstepd bench journal --characters 200 --clients 50 --json

It takes 2 × PAIRS × SECONDS. The aim is less than 5 % with the default durability.";

/// Copies of the demo's map in each direction: room for the crowd.
const DEMO_COPIES: u32 = 4;
/// From one command of a client to its next.
const COMMAND_EVERY_TICKS: u64 = 20;
/// Before the first command: everybody has joined by then.
const JOINING_TICKS: u64 = 20;
/// How long before its tick a command is sent.
const SENT_AHEAD_TICKS: u64 = 10;
/// How far a client's character walks at most in each direction, metres.
const WALK: i32 = 8;
const SEED: u32 = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    characters: u32,
    clients: u32,
    durability: Durability,
    seconds: u64,
    blocks: Vec<Block>,
    /// Of all turns of all blocks without a journal, µs.
    without_p50_microseconds: u64,
    /// Of those with one, µs.
    with_p50_microseconds: u64,
    /// How much more that is.
    added_percent: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    journal: bool,
    turns: u64,
    p50_microseconds: u64,
    p99_microseconds: u64,
    accepted: u64,
    bytes: u64,
    syncs: u64,
    sync_p50_microseconds: u64,
}

/// Measures and prints.
///
/// # Errors
/// Bad input: the map; too little room for so many. IO.
pub(crate) fn run(arguments: &JournalArguments) -> anyhow::Result<ExitCode> {
    let Some(npcs) = arguments.characters.checked_sub(arguments.clients) else {
        return Err(bad_input(
            "each client has a character, so there are at least as many",
        ));
    };
    let copies = if arguments.map.is_some() { 1 } else { DEMO_COPIES };
    let (name, baked) = tick::map(arguments.map.as_deref(), copies)?;
    let (definition, bundle) = tick::crowd(
        &name,
        tick::CrowdMap::of_grid(&baked),
        &baked.grid(),
        npcs,
        arguments.clients,
    )?;
    let bench = Bench {
        arguments,
        definition,
        bundle,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("no thread for the clients")
        .with_status(Status::Io)?;
    let mut all = [histogram()?, histogram()?];
    let mut blocks = Vec::new();
    let mut progress = output::progress(2 * arguments.pairs, "blocks");
    for number in 0..2 * arguments.pairs {
        // Which comes first changes from pair to pair, so that a machine that gets slower favours nobody.
        let journal = number % 2 == (number / 2 + 1) % 2;
        let report = bench.block(&runtime, number, journal)?;
        progress.at(number + 1);
        all[usize::from(journal)]
            .add(&report.turn_us)
            .context("equal bounds")?;
        blocks.push(Block {
            journal,
            turns: report.turn_us.len(),
            p50_microseconds: report.turn_us.value_at_quantile(0.5),
            p99_microseconds: report.turn_us.value_at_quantile(0.99),
            accepted: report.counters.accepted,
            bytes: report.journal.bytes,
            syncs: report.journal.sync_us.len(),
            sync_p50_microseconds: report.journal.sync_us.value_at_quantile(0.5),
        });
    }
    drop(progress);
    let [without, with] = all.map(|histogram| histogram.value_at_quantile(0.5));
    let figures = Figures {
        characters: arguments.characters,
        clients: arguments.clients,
        durability: arguments.durability,
        seconds: arguments.seconds,
        blocks,
        without_p50_microseconds: without,
        with_p50_microseconds: with,
        added_percent: (with as f64 / without.max(1) as f64 - 1.0) * 100.0,
    };
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&figures)?;
    } else {
        print(&mut output, &figures)?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn histogram() -> anyhow::Result<Histogram<u64>> {
    // As the location's.
    Histogram::new_with_bounds(1, task::TICK_US_MAX, 3).context("constant bounds that are allowed")
}

struct Bench<'a> {
    arguments: &'a JournalArguments,
    definition: Definition,
    bundle: Bundle,
}

impl Bench<'_> {
    /// Runs a location for the length of a block.
    fn block(&self, runtime: &Runtime, number: u64, journal: bool) -> anyhow::Result<Report> {
        let folder = self.arguments.folder.join(format!(
            ".lockstepd-bench-journal-{}-{number}",
            std::process::id()
        ));
        let report = self.block_in(&folder, runtime, journal);
        if journal {
            // Whatever happened; what is left is the operator's to see.
            let _ = std::fs::remove_dir_all(&folder);
        }
        report
    }

    fn block_in(&self, folder: &Path, runtime: &Runtime, journal: bool) -> anyhow::Result<Report> {
        let journal = if journal {
            let opened = open(&OpenOptions {
                data_dir: folder,
                location: self.definition.name(),
                bundle: &self.bundle,
                definition: &self.definition,
                new_run: true,
                same_definition: false,
                recover: false,
            });
            let opened = opened.with_status(Status::Io)?;
            Journal::Kept(Box::new(opened.journal), self.policy())
        } else {
            Journal::Null
        };
        let start = Start {
            world: World::new(&self.definition),
            run: [0; 16],
            bundle: self.bundle.encode(),
            sessions: Vec::new(),
            answers: Vec::new(),
            last_session: 0,
            leave: Vec::new(),
            borrowed: Vec::new(),
            reports_max: 0,
            nonces: Vec::new(),
            bans: Arc::default(),
            rules: Rules {
                players_max: self.arguments.clients as usize,
                lockstep_roles: vec![Role::Player],
                player_view_radius: None,
                on_leave: OnLeave::Leave,
                idle: Idle::Run,
            },
            draining_until_us: None,
            numbers: SessionNumbers::default(),
        };
        let settings = task::Settings {
            epoch: Instant::now(),
            ticks_max: Some(self.arguments.seconds * u64::from(self.definition.tick_rate())),
            ahead_max: Duration::from_millis(AHEAD_MS),
            reports: None,
            shadow: false,
        };
        let (handle, thread) = task::spawn(start, journal, settings, || {})
            .context("no thread for the location")
            .with_status(Status::Io)?;
        let clients = join(&handle, self.definition.spawns(), runtime);
        let walking = runtime.spawn(walk(handle, clients));
        let report = thread.join().map_err(|_| anyhow!("the location failed"))?;
        walking.abort();
        report.context("journal").with_status(Status::Io)
    }

    fn policy(&self) -> Policy {
        Policy {
            durability: self.arguments.durability,
            interval: Duration::from_millis(INTERVAL_MS),
            retry: RETRY,
            segment: SegmentLimits::at(self.definition.tick_rate()),
        }
    }
}

/// Somebody with a character.
struct Client {
    id: ConnectionId,
    outbox: Arc<Outbox>,
    /// Around here it walks.
    home: Point,
    sequence: u64,
}

/// One client for each place to appear at; what each is sent is taken as soon as it is there.
fn join(location: &Handle, homes: &[Point], runtime: &Runtime) -> Vec<Client> {
    let join = |(number, home): (u64, &Point)| {
        let id = ConnectionId(number);
        let outbox = Arc::new(Outbox::new());
        let name = format!("Client {number}");
        location.send_envelope(Envelope {
            input: Input::Enter {
                connection: id,
                hello: Box::new(Hello {
                    definition: Need::No,
                    ..Hello::new(Text::cut("bench"), Text::cut(&name))
                }),
                visitor: Visitor::default(),
                token: [0; 16],
            },
            entrant: Some(Entrant::new(Arc::clone(&outbox))),
            permit: None,
        });
        runtime.spawn(listen(id, Arc::clone(&outbox), location.clone()));
        Client {
            id,
            outbox,
            home: *home,
            sequence: 0,
        }
    };
    (1..).zip(homes).map(join).collect()
}

/// A peer that reads everything at once.
async fn listen(connection: ConnectionId, outbox: Arc<Outbox>, location: Handle) {
    loop {
        let batch = outbox.batch().await;
        if batch.dropped {
            location.send(Input::Dropped(connection));
        }
        if let Some(tick) = batch.downloaded {
            location.send(Input::Downloaded { connection, tick });
        }
        if batch.end.is_some() {
            return;
        }
    }
}

/// Everybody walks somewhere every two seconds, one after the other.
async fn walk(location: Handle, mut clients: Vec<Client>) {
    let mut random = Pcg32::of_character(SEED);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::from(tick::TICK_RATE));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for tick in JOINING_TICKS.. {
        while location.now_us() * u64::from(tick::TICK_RATE) / 1_000_000 + SENT_AHEAD_TICKS < tick {
            ticks.tick().await;
        }
        for (index, client) in (0..).zip(&mut clients) {
            if index % COMMAND_EVERY_TICKS != tick % COMMAND_EVERY_TICKS {
                continue;
            }
            let Some(&character) = client.outbox.characters().and_then(<[_]>::first) else {
                continue;
            };
            let reach = Fixed::from_int(WALK).raw();
            let mut aside = |home: Fixed| {
                let aside = random.below(2 * reach as u32 + 1) as i32 - reach;
                Fixed::from_raw(home.raw() + aside)
            };
            client.sequence += 1;
            location.send(Input::Command {
                connection: client.id,
                sequence: client.sequence,
                at_tick: Some(tick),
                command: Ok(Command::MoveTo {
                    character,
                    x: aside(client.home.x),
                    z: aside(client.home.z),
                }),
            });
        }
    }
}

fn print(output: &mut Output, figures: &Figures) -> anyhow::Result<()> {
    output.line(format_args!(
        "{} characters, {} of them clients', blocks of {} s at {} Hz, durability {}",
        figures.characters,
        figures.clients,
        figures.seconds,
        tick::TICK_RATE,
        figures.durability
    ))?;
    let columns = [
        "block",
        "turns",
        "p50 µs",
        "p99 µs",
        "commands",
        "bytes",
        "syncs",
        "sync p50 µs",
    ];
    let mut table = super::table(&columns, 1);
    for block in &figures.blocks {
        let kind = if block.journal { "journal" } else { "none" };
        let numbers = [
            block.turns,
            block.p50_microseconds,
            block.p99_microseconds,
            block.accepted,
            block.bytes,
            block.syncs,
            block.sync_p50_microseconds,
        ];
        let numbers = numbers.iter().map(u64::to_string);
        table.add_row(std::iter::once(kind.to_owned()).chain(numbers));
    }
    output.line(table)?;
    output.line(format_args!(
        "median turn on the location's thread: {} µs without, {} µs with a journal: {:+.1} %",
        figures.without_p50_microseconds, figures.with_p50_microseconds, figures.added_percent
    ))
}
