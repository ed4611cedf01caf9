//! `lockstepd replay PATH`: runs a journal again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use protocol::Origin;
use serde::Serialize;
use serde_json::Value;
use sim::{Definition, Event, World};

use super::fields::{self, Difference};
use super::output::{self, Output};
use super::recorded::command_form;
use super::simulate::{self, PrintedTick};
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::offline::outcomes;
use crate::journal::playback::{self, Since};
use crate::journal::reader::{self, Journal, JournalReader, ReadError};
use crate::journal::record::{Keyframe, Record, Turn};

/// Run a journal again, and compare every digest
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArguments {
    /// Segment (.lsj), folder of a run or of a location, or data directory
    path: PathBuf,
    /// Compare every digest and outcome with what is computed now; done also if nothing is printed
    #[arg(long)]
    verify: bool,
    /// Last tick to replay [default: the journal's last]
    #[arg(long, value_name = "T")]
    until: Option<u64>,
    /// What to print: every turn's commands, every turn's digest, or the state after the last tick
    #[arg(long, value_name = "WHAT")]
    print: Option<Print>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Only this location of a data directory
    #[arg(long, value_name = "NAME")]
    location: Option<String>,
    /// This run instead of the last
    #[arg(long, value_name = "N")]
    run: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd replay data --verify
  lockstepd replay data --until 599 --print state
  lockstepd replay data/town/run-000001 --print commands --json | jq .origin

The journal carries its definition; the files it was recorded from are not needed.
A daemon may go on writing meanwhile. The end that a crash tore is left out and named.
Exit status 1: a digest differs; 65: the journal is damaged.";

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Print {
    Commands,
    Digests,
    State,
}

/// Replays and prints.
///
/// # Errors
/// Nothing there; damage; IO.
pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    let journals = find(&arguments.path, arguments.location.as_deref(), arguments.run)?;
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    for journal in journals {
        let mut replay = Replay::begin(&journal, arguments)?;
        let summary = replay.run(&mut output)?;
        if summary.difference.is_some() {
            code = Status::Failed.into();
        }
        // What is printed is for other programs; the summary then goes where people look.
        match (arguments.print, arguments.json) {
            (None, true) => output.json(&summary)?,
            (None, false) => output.line(summary.text())?,
            (Some(_), _) => output::complain(summary.text()),
        }
    }
    output.finish()?;
    Ok(code)
}

/// The journals that a path names; at least one.
///
/// # Errors
/// Bad input: none, or neither a file nor a folder, or a file of which a location or run is wanted; damage; IO.
pub(crate) fn find(path: &Path, location: Option<&str>, run: Option<u64>) -> anyhow::Result<Vec<Journal>> {
    let refused = |rule: &str| Err(bad_input(format_args!("{}: {rule}", path.display())));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refused(&format!("cannot be read: {error}"));
        }
        // Looked at before it is opened: opening a pipe would wait for its writer.
        Ok(found) if !found.is_file() && !found.is_dir() => return refused("not a regular file"),
        Ok(found) if found.is_file() && (location.is_some() || run.is_some()) => {
            return refused("a single segment: --location and --run choose in a folder");
        }
        _ => {}
    }
    let journals = reader::find(path, location, run).map_err(read_failed)?;
    if journals.is_empty() {
        return Err(bad_input(format_args!(
            "{}: no journal of that name here",
            path.display()
        )));
    }
    Ok(journals)
}

/// An error of reading with the status to end with.
pub(crate) fn read_failed(error: ReadError) -> anyhow::Error {
    let status = match error {
        ReadError::Io { .. } => Status::Io,
        ReadError::Bad(_) | ReadError::Damage(_) => Status::DamagedData,
    };
    match Err::<(), _>(error).with_status(status) {
        Err(error) => error,
        Ok(()) => unreachable!("an error stays one"),
    }
}

/// The definition that a journal carries.
///
/// # Errors
/// This release does not accept it.
pub(crate) fn definition(reader: &JournalReader) -> anyhow::Result<Definition> {
    playback::definition(reader.bundle()).with_status(Status::DamagedData)
}

/// Whether this release can step the Worlds of a journal as they were stepped when it was recorded.
///
/// # Errors
/// It was recorded by another ruleset.
pub(crate) fn check_ruleset(reader: &JournalReader, definition: &Definition) -> anyhow::Result<()> {
    let header = reader.header();
    let known = (sim::RULESET, sim::ruleset_hash(definition.planner()));
    if (header.ruleset, header.ruleset_hash) == known {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "{}: made by ruleset {} ({:016x}), this release plays {} ({:016x})",
        reader.segment().path().display(),
        header.ruleset,
        header.ruleset_hash,
        known.0,
        known.1
    ))
    .with_status(Status::DamagedData)
}

impl ReplayArguments {
    fn verifies(&self) -> bool {
        self.verify || self.print.is_none()
    }

    /// Whether Worlds are stepped at all: what was recorded can be printed without.
    fn steps(&self) -> bool {
        self.verifies() || self.print == Some(Print::State)
    }
}

/// One journal being replayed.
struct Replay<'a> {
    arguments: &'a ReplayArguments,
    journal: &'a Journal,
    reader: JournalReader,
    definition: Definition,
    until: u64,
}

/// What has been replayed.
#[derive(Serialize)]
struct Summary {
    journal: String,
    location: String,
    run: String,
    first_tick: u64,
    /// The step that comes next.
    next_tick: u64,
    ticks: u64,
    /// Recorded of the last tick.
    digest: String,
    verified: bool,
    seconds: f64,
    ticks_per_second: f64,
    times_real_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Found>,
}

/// The first tick at which the recording and the rules disagree.
#[derive(Clone, Serialize)]
struct Found {
    tick: u64,
    #[serde(flatten)]
    field: Difference,
    /// The fields that differ, at the first keyframe from there on.
    #[serde(skip_serializing_if = "Option::is_none")]
    keyframe: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Difference>,
}

/// A printed command: a line of `simulate --commands` and where it came from.
#[derive(Serialize)]
struct PrintedCommand<'a> {
    tick: u64,
    command: Value,
    origin: PrintedOrigin<'a>,
    outcome: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum PrintedOrigin<'a> {
    Session { session: u64, sequence: u64 },
    Roster { session: u64 },
    Admin { actor: &'a str },
}

impl<'a> Replay<'a> {
    fn begin(journal: &'a Journal, arguments: &'a ReplayArguments) -> anyhow::Result<Self> {
        let reader = journal.read().map_err(read_failed)?;
        let definition = definition(&reader)?;
        if arguments.steps() {
            check_ruleset(&reader, &definition)?;
        }
        Ok(Self {
            arguments,
            journal,
            definition,
            reader,
            until: arguments.until.unwrap_or(u64::MAX),
        })
    }

    fn run(&mut self, output: &mut Output) -> anyhow::Result<Summary> {
        let Some(Record::Keyframe(first)) = self.reader.next().map_err(read_failed)? else {
            unreachable!("a segment's second record is a keyframe, or it is refused");
        };
        let started = Instant::now();
        let first_tick = first.tick;
        let mut last = (first.tick, first.digest);
        let mut verifier = match self.arguments.verifies() {
            true => Some(Verifier::begin(&self.definition, &first)?),
            false => None,
        };
        let mut since = (self.arguments.print == Some(Print::State)).then(|| Since::new(first));
        while let Some(record) = self.reader.next().map_err(read_failed)? {
            let is_past = match &record {
                Record::Turn(turn) => turn.tick > self.until,
                Record::Keyframe(keyframe) => keyframe.tick > self.until,
                _ => false,
            };
            if is_past {
                break;
            }
            if let Some(verifier) = &mut verifier {
                match &record {
                    Record::Turn(turn) => verifier.turn(turn),
                    Record::Keyframe(keyframe) => verifier.keyframe(&self.definition, keyframe)?,
                    _ => {}
                }
                if verifier.is_done() {
                    break;
                }
            }
            if let Record::Turn(turn) = &record {
                last = (turn.tick + 1, turn.digest);
                match self.arguments.print {
                    Some(Print::Commands) => self.print_commands(output, turn)?,
                    Some(Print::Digests) => self.print_digest(output, turn)?,
                    Some(Print::State) | None => {}
                }
            }
            if let Some(since) = &mut since {
                since.follow(record);
            }
        }
        if let Some(since) = since {
            self.print_state(output, &since)?;
        }
        Ok(self.summary(first_tick, last, started.elapsed(), verifier))
    }

    fn print_commands(&self, output: &mut Output, turn: &Turn) -> anyhow::Result<()> {
        for (command, origin) in turn.commands.iter().zip(turn.origins.iter()) {
            let printed = PrintedCommand {
                tick: turn.tick,
                command: command_form(command, self.definition.tick_rate()),
                origin: match origin {
                    Origin::Session {
                        session, sequence, ..
                    } => PrintedOrigin::Session {
                        session: *session,
                        sequence: *sequence,
                    },
                    Origin::Roster { session, .. } => PrintedOrigin::Roster { session: *session },
                    Origin::Admin { actor, .. } => PrintedOrigin::Admin { actor },
                },
                outcome: origin.outcome().0,
            };
            if self.arguments.json {
                output.json(&printed)?;
            } else {
                let origin = match printed.origin {
                    PrintedOrigin::Session { session, sequence } => format!("session {session} #{sequence}"),
                    PrintedOrigin::Roster { session } => format!("roster for session {session}"),
                    PrintedOrigin::Admin { actor } => format!("admin {actor:?}"),
                };
                let command = printed.command;
                let outcome = origin_outcome(printed.outcome);
                output.line(format_args!("{:>8}  {origin}: {command}{outcome}", turn.tick))?;
            }
        }
        Ok(())
    }

    fn print_digest(&self, output: &mut Output, turn: &Turn) -> anyhow::Result<()> {
        let digest = format!("{:016x}", turn.digest);
        if self.arguments.json {
            output.json(&serde_json::json!({"tick": turn.tick, "digest": digest}))
        } else {
            output.line(format_args!("{:>8}  {digest}", turn.tick))
        }
    }

    fn print_state(&self, output: &mut Output, since: &Since) -> anyhow::Result<()> {
        let (world, events) = since.world(&self.definition).with_status(Status::DamagedData)?;
        let Some(turn) = world.tick().checked_sub(1) else {
            output::complain("note: no tick has run, so there is no state to print");
            return Ok(());
        };
        if !self.arguments.json {
            return simulate::print_tick(output, turn, &world, &events);
        }
        output.json(&PrintedTick::new(turn, &world, &events))
    }

    fn summary(
        &self,
        first_tick: u64,
        last: (u64, u64),
        elapsed: Duration,
        verifier: Option<Verifier>,
    ) -> Summary {
        let header = self.reader.header();
        let ticks = last.0 - first_tick;
        let seconds = elapsed.as_secs_f64();
        let ticks_per_second = ticks as f64 / seconds.max(1e-9);
        Summary {
            journal: self.journal.path.display().to_string(),
            location: self.definition.name().to_owned(),
            run: header.run.iter().map(|byte| format!("{byte:02x}")).collect(),
            first_tick,
            next_tick: last.0,
            ticks,
            digest: format!("{:016x}", last.1),
            verified: verifier.is_some(),
            seconds,
            ticks_per_second,
            times_real_time: ticks_per_second / f64::from(header.tick_rate),
            torn: self.reader.torn().map(|torn| {
                format!(
                    "{} bytes from offset {} on ({}); a start of the daemon cuts them off",
                    torn.bytes, torn.at.offset, torn.at.what
                )
            }),
            difference: verifier.and_then(|verifier| verifier.found),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!("{}: location {}, run {}: ", self.journal, self.location, self.run);
        match self.ticks {
            0 => text += "no ticks",
            _ => text += &format!("ticks {} to {}", self.first_tick, self.next_tick - 1),
        }
        text += &format!(", digest {}", self.digest);
        if self.verified {
            text += &format!(
                "\n{} ticks in {:.3} s: {:.0} ticks per second, {:.0} times real time",
                self.ticks, self.seconds, self.ticks_per_second, self.times_real_time
            );
        }
        if let Some(torn) = &self.torn {
            text += &format!("\ntorn end: {torn}");
        }
        match &self.difference {
            None if self.verified => text += "\nevery digest and outcome is the recorded one",
            None => {}
            Some(found) => text += &format!("\n{}", found.text()),
        }
        text
    }
}

impl Found {
    fn text(&self) -> String {
        let mut text = format!("tick {}: {} (recorded → computed)", self.tick, self.field);
        if let Some(tick) = self.keyframe {
            text += &format!("\nin the first keyframe from there on, tick {tick}:");
            for field in &self.fields {
                text += &format!("\n  {field}");
            }
        }
        text
    }
}

/// Steps a World along with the recorded turns and compares.
struct Verifier {
    world: World,
    events: Vec<Event>,
    snapshot: Vec<u8>,
    found: Option<Found>,
}

impl Verifier {
    fn begin(definition: &Definition, first: &Keyframe) -> anyhow::Result<Self> {
        let world = load(definition, first)?;
        let difference = digest_difference(first.digest, world.digest());
        Ok(Self {
            found: difference.map(|field| Found::at(first.tick, field)),
            world,
            events: Vec::new(),
            snapshot: Vec::new(),
        })
    }

    /// After a difference, reading goes on to the next keyframe, which tells the fields.
    fn is_done(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.keyframe.is_some())
    }

    fn turn(&mut self, turn: &Turn) {
        self.events.clear();
        self.world.step_into(&turn.commands, &mut self.events);
        if self.found.is_some() {
            return;
        }
        let difference = digest_difference(turn.digest, self.world.digest());
        let difference = difference.or_else(|| outcome_difference(turn, &self.events));
        self.found = difference.map(|field| Found::at(turn.tick, field));
    }

    fn keyframe(&mut self, definition: &Definition, keyframe: &Keyframe) -> anyhow::Result<()> {
        self.snapshot.clear();
        self.world.snapshot_into(&mut self.snapshot);
        if self.found.is_none() && *self.snapshot == *keyframe.snapshot {
            return Ok(());
        }
        let recorded = fields::of_world(&load(definition, keyframe)?)?;
        let fields = fields::differences(&recorded, &fields::of_world(&self.world)?);
        let found = self.found.get_or_insert_with(|| {
            let bytes = |bytes: &[u8]| serde_json::json!(format!("{} bytes", bytes.len()));
            let field = Difference {
                field: "snapshot".to_owned(),
                old: bytes(&keyframe.snapshot),
                new: bytes(&self.snapshot),
            };
            Found::at(keyframe.tick, field)
        });
        found.keyframe = Some(keyframe.tick);
        found.fields = fields;
        Ok(())
    }
}

impl Found {
    fn at(tick: u64, field: Difference) -> Self {
        Self {
            tick,
            field,
            keyframe: None,
            fields: Vec::new(),
        }
    }
}

fn load(definition: &Definition, keyframe: &Keyframe) -> anyhow::Result<World> {
    World::load(definition, &keyframe.snapshot)
        .with_context(|| format!("keyframe of tick {}", keyframe.tick))
        .with_status(Status::DamagedData)
}

fn digest_difference(recorded: u64, computed: u64) -> Option<Difference> {
    let hex = |digest| serde_json::json!(format!("{digest:016x}"));
    (recorded != computed).then(|| Difference {
        field: "digest".to_owned(),
        old: hex(recorded),
        new: hex(computed),
    })
}

fn outcome_difference(turn: &Turn, events: &[Event]) -> Option<Difference> {
    let computed = outcomes(turn.commands.len(), events);
    let recorded = turn.origins.iter().map(Origin::outcome);
    let index = recorded
        .zip(&computed)
        .position(|(recorded, computed)| recorded != *computed)?;
    Some(Difference {
        field: format!("commands[{index}].outcome"),
        old: turn.origins[index].outcome().0.into(),
        new: computed[index].0.into(),
    })
}

fn origin_outcome(outcome: u16) -> String {
    match protocol::Code(outcome) {
        protocol::Code::APPLIED => String::new(),
        code => format!(" → {code}"),
    }
}
