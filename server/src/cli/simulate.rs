//! `lockstepd simulate LOCATION.json`: a location without a network, as fast as it goes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use nav::Problems;
use protocol::Bundle;
use protocol::message::TURN_COMMANDS_MAX;
use serde::Serialize;
use sim::{Character, CharacterId, Command, Definition, Event, MapState, World};

use super::input;
use super::output::{self, Output};
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::offline::Recorder;
use crate::location_files::LocationFiles;

/// Run a location without a network, as fast as it goes
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArguments {
    /// Location file; its maps are read from its own folder. Without it: the built-in demo
    #[arg(value_name = "LOCATION.json")]
    location: Option<PathBuf>,
    /// Commands, one a line: {"tick": 3, "command": {"MoveTo": {"character": 100, "x": 1.5, "z": 2}}}; `-` is stdin
    #[arg(long, value_name = "FILE.jsonl")]
    commands: Option<PathBuf>,
    /// Number of ticks to run
    #[arg(long, value_name = "N")]
    ticks: u64,
    /// Print every K-th tick, from tick 0 on [default: 1 with --json, else only the last tick]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Print JSON, one object for each printed tick
    #[arg(long)]
    json: bool,
    /// Record the run for `replay`: a segment if it ends with .lsj, else a new run in this data directory
    #[arg(long, value_name = "OUT")]
    journal: Option<PathBuf>,
    /// Ticks per second instead of the location's
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u16).range(1..=128))]
    tick_rate: Option<u16>,
    /// Number of bots instead of the location's
    #[arg(long, value_name = "N")]
    bots: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd simulate --ticks 600
  lockstepd simulate courtyard.json --ticks 3000 --every 100
  lockstepd simulate courtyard.json --commands walk.jsonl --ticks 200 --json | jq .digest
  lockstepd simulate --ticks 6000 --journal run.lsj && lockstepd replay run.lsj --verify

The state printed for tick t is the one after step t; the first tick is 0.";

/// Commands of one file.
const COMMANDS_MAX: usize = 4_000_000;

/// A printed tick: the state after it has run.
#[derive(Serialize)]
pub(crate) struct PrintedTick<'a> {
    tick: u64,
    digest: String,
    events: &'a [Event],
    characters: Vec<&'a Character>,
    map: MapState,
}

impl<'a> PrintedTick<'a> {
    pub(crate) fn new(tick: u64, world: &'a World, events: &'a [Event]) -> Self {
        Self::of(tick, world, events, world.characters().iter().collect())
    }

    /// With some of the characters.
    pub(crate) fn of(
        tick: u64,
        world: &'a World,
        events: &'a [Event],
        characters: Vec<&'a Character>,
    ) -> Self {
        Self {
            tick,
            digest: format!("{:016x}", world.digest()),
            events,
            characters,
            map: world.map_state(),
        }
    }
}

/// Runs and prints.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &SimulateArguments) -> anyhow::Result<ExitCode> {
    let files = match &arguments.location {
        Some(path) => LocationFiles::read(path)?,
        None => LocationFiles::demo(),
    };
    let definition = files.definition(arguments.tick_rate, arguments.bots)?;
    let commands = match &arguments.commands {
        Some(path) => read_commands(path, definition.tick_rate())?,
        None => Vec::new(),
    };
    let late = commands
        .iter()
        .filter(|(tick, _)| *tick >= arguments.ticks)
        .count();
    if late > 0 {
        output::complain(format_args!(
            "note: {late} commands are for ticks after the last one ({} ticks are run)",
            arguments.ticks
        ));
    }

    if let (Some(path), Some(_)) = (&arguments.commands, &arguments.journal) {
        check_turns(path, &commands)?;
    }

    let (mut recorder, mut world) = match &arguments.journal {
        None => (None, World::new(&definition)),
        Some(out) => {
            let (recorder, world) = record(out, files, arguments, &definition)?;
            (Some(recorder), world)
        }
    };
    let mut output = Output::stdout();
    let mut not_printed = None;
    let mut progress = output::progress(arguments.ticks, "ticks");
    let mut commands = commands.into_iter().peekable();
    let (mut turn, mut events) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for tick in 0..arguments.ticks {
        turn.clear();
        while let Some((_, command)) = commands.next_if(|(at, _)| *at == tick) {
            turn.push(command);
        }
        events.clear();
        match &mut recorder {
            None => world.step_into(&turn, &mut events),
            Some(recorder) => recorder
                .step(&mut world, std::mem::take(&mut turn), &mut events)
                .with_status(Status::Io)?,
        }
        let is_printed = match arguments.every {
            Some(every) => tick.is_multiple_of(every),
            None => arguments.json || tick + 1 == arguments.ticks,
        };
        if is_printed && not_printed.is_none() {
            let printed = if arguments.json {
                output.json(&PrintedTick::new(tick, &world, &events))
            } else {
                print_tick(&mut output, tick, &world, &events)
            };
            not_printed = printed.err();
            // A recording is kept to its end, even if nobody reads what is printed.
            if not_printed.is_some() && recorder.is_none() {
                break;
            }
        }
        progress.at(tick);
    }
    drop(progress);
    if let Some(recorder) = recorder {
        recorder.close(&world).with_status(Status::Io)?;
    }
    if let Some(error) = not_printed {
        return Err(error);
    }
    if !arguments.json {
        let seconds = started.elapsed().as_secs_f64();
        output.line(format_args!(
            "{}: {} ticks at {} Hz in {seconds:.3} s ({:.0} ticks per second), digest {:016x}",
            definition.name(),
            arguments.ticks,
            definition.tick_rate(),
            arguments.ticks as f64 / seconds.max(1e-9),
            world.digest()
        ))?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the commands of every tick fit into a turn of a journal.
pub(crate) fn check_turns(path: &Path, commands: &[(u64, Command)]) -> anyhow::Result<()> {
    let turns = commands.chunk_by(|(tick, _), (next, _)| tick == next);
    match turns.into_iter().find(|turn| turn.len() > TURN_COMMANDS_MAX) {
        None => Ok(()),
        Some(turn) => Err(bad_input(format_args!(
            "{}: tick {}: {} commands; a journal takes at most {TURN_COMMANDS_MAX} a tick",
            path.display(),
            turn[0].0,
            turn.len()
        ))),
    }
}

/// Begins a recording.
fn record(
    out: &Path,
    files: LocationFiles,
    arguments: &SimulateArguments,
    definition: &Definition,
) -> anyhow::Result<(Recorder, World)> {
    let bundle = Bundle::new(files.location, arguments.tick_rate, arguments.bots, files.maps)
        .with_status(Status::BadInput)?;
    if Recorder::is_segment(out) && out.exists() {
        return Err(bad_input(format_args!("{}: is there already", out.display())));
    }
    Recorder::create(out, &bundle, definition, "simulate").or_else(|error| {
        let status = error.status();
        Err(error).with_status(status)
    })
}

/// The commands of a file by tick; those of one tick in file order.
///
/// # Errors
/// Bad input: every broken line.
pub(crate) fn read_commands(path: &Path, tick_rate: u16) -> anyhow::Result<Vec<(u64, Command)>> {
    let name = input::name(path);
    let mut commands = Vec::new();
    let mut problems = Problems::new();
    input::for_each_line(path, |line, text| {
        match sim::parse_command_line(&name, line, text, tick_rate) {
            _ if commands.len() == COMMANDS_MAX => {
                let rule = format!("more than {COMMANDS_MAX} commands");
                return Err(Problems::one(&name, format!("line {line}"), rule).into());
            }
            Ok(command) => commands.push(command),
            Err(found) => problems.append(found),
        }
        Ok(())
    })?;
    commands.sort_by_key(|(tick, _)| *tick);
    Ok(problems.or_else(|| commands)?)
}

/// A tick for people: who is where, doing what.
pub(crate) fn print_tick(
    output: &mut Output,
    tick: u64,
    world: &World,
    events: &[Event],
) -> anyhow::Result<()> {
    let characters: Vec<&Character> = world.characters().iter().collect();
    print_characters(output, tick, world, events, &characters)
}

/// The same, with some of the characters.
pub(crate) fn print_characters(
    output: &mut Output,
    tick: u64,
    world: &World,
    events: &[Event],
    characters: &[&Character],
) -> anyhow::Result<()> {
    output.line(format_args!("tick {tick}  digest {:016x}", world.digest()))?;
    output.line(format_args!(
        "  {:>6} {:6} {:20} {:>10} {:>10}  {:5} {:>9} {:>7} {:>5}  target",
        "id", "kind", "name", "x", "z", "", "waypoint", "blocked", "by"
    ))?;
    for character in characters {
        let kind = format!("{:?}", character.kind).to_lowercase();
        let animation = format!("{:?}", character.animation).to_lowercase();
        let waypoint = if character.has_path() {
            let waypoints = character.path_waypoints.len();
            format!("{}/{waypoints}", character.current_waypoint_index + 1)
        } else {
            String::new()
        };
        let blocked = match character.movement_blocked_ticks {
            0 => String::new(),
            ticks => ticks.to_string(),
        };
        let by = character
            .blocked_by
            .map_or(String::new(), |CharacterId(id)| id.to_string());
        let target = if character.walk_target == character.position {
            String::new()
        } else {
            format!("{}, {}", character.walk_target.x, character.walk_target.z)
        };
        let line = format!(
            "  {:>6} {kind:6} {:20} {:>10} {:>10}  {animation:5} {waypoint:>9} {blocked:>7} {by:>5}  {target}",
            character.id.0,
            character.name.as_str(),
            character.position.x.to_string(),
            character.position.z.to_string(),
        );
        output.line(line.trim_end())?;
    }
    for event in events {
        output.line(format_args!("  {}", event_text(event)))?;
    }
    Ok(())
}

/// An event in words.
pub(crate) fn event_text(event: &Event) -> String {
    match event {
        Event::Arrived { character } => format!("{} arrived", character.0),
        Event::TalkStarted { character, npc } => format!("{} talks to {}", character.0, npc.0),
        Event::CommandRejected { index, code } => {
            format!("command {index} of this tick rejected, code {code}")
        }
        Event::Joined { character } => format!("{} joined", character.0),
        Event::Left { character } => format!("{} left", character.0),
        Event::Application { character, payload } => {
            format!("{} sent {} bytes to the game", character.0, payload.len())
        }
    }
}
