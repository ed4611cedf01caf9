//! `lockstepd check FILES…`: every problem with its place. What a file is, its content and its name's ending say.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use nav::{Document, Planner, Problem, Problems};
use serde::Serialize;

use super::bench::scen;
use super::input;
use super::map::{MapInput, MapPlanner};
use super::output::{self, Output};
use super::question;
use super::recorded;
use super::simulate::read_commands;
use crate::config::Config;
use crate::daemon::Loaded;
use crate::exit::{Failure, Status};
use crate::journal::record::Record;
use crate::journal::run;
use crate::location_files::LocationFiles;

/// Check configuration, location, map, command, scenario and journal files: every problem with its place
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    /// Files; a location is checked together with the maps that it names
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object for each file
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd check courtyard.json
  lockstepd check maps/*.json maps/*.txt walk.jsonl

Recognised: configuration (.toml), location (.json), polygon map (.json), baked grid (.txt), MovingAI octile map (.map)
and scenarios (.scen), command file and query file (.jsonl), obstacles (.json, an array), journal (.lsj, .lsj.zst or a
folder). A configuration is checked as `serve --config` takes it, with its environment (LOCKSTEPD_SECTION__KEY) and
every file that it names.
Exit status 2 if a file has a problem, 65 if a journal is damaged.";

/// Keys that only a location file has.
const LOCATION_KEYS: [&str; 6] = ["tickRate", "maps", "startMap", "spawns", "npcs", "bots"];
/// A command file alone says no tick rate: its speeds are read with the default one.
const COMMANDS_TICK_RATE: u16 = 10;

#[derive(Serialize)]
struct Verdict {
    file: String,
    ok: bool,
    /// What it is, with sizes.
    what: Option<String>,
    problems: Vec<ProblemLine>,
    /// The problems as people read them.
    #[serde(skip)]
    lines: Vec<String>,
    #[serde(skip)]
    status: Option<Status>,
}

#[derive(Serialize)]
struct ProblemLine {
    file: String,
    place: String,
    rule: String,
}

/// Checks every file, whatever is wrong with those before it.
///
/// # Errors
/// IO on stdout.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    let mut status = None;
    for path in &arguments.files {
        let verdict = verdict(path);
        status = status.or(verdict.status);
        if arguments.json {
            output.json(&verdict)?;
        } else if let Some(what) = &verdict.what {
            output.line(format_args!("ok: {} ({what})", verdict.file))?;
        }
        for line in &verdict.lines {
            output::complain(format_args!("error: {line}"));
        }
    }
    output.finish()?;
    Ok(status.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn verdict(path: &Path) -> Verdict {
    let file = input::name(path);
    let error = match check(path) {
        Ok(what) => {
            return Verdict {
                file,
                ok: true,
                what: Some(what),
                problems: Vec::new(),
                lines: Vec::new(),
                status: None,
            };
        }
        Err(error) => error,
    };
    let failure = error.downcast_ref::<Failure>();
    let innermost = failure.map_or(&error, |failure| &failure.error);
    let (problems, text) = match innermost.downcast_ref::<Problems>() {
        Some(problems) => (
            problems.as_slice().iter().map(problem_line).collect(),
            problems.to_string(),
        ),
        None => {
            let text = format!("{error:#}");
            let rule = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
            // `line 3: RULE` is what the errors of lines that are no JSON begin with.
            let line = rule.split_once(": ").filter(|(place, _)| is_line(place));
            let (place, rule) = line.unwrap_or(("", rule));
            let problem = ProblemLine {
                file: file.clone(),
                place: place.to_owned(),
                rule: rule.to_owned(),
            };
            (vec![problem], text)
        }
    };
    Verdict {
        file,
        ok: false,
        what: None,
        problems,
        lines: text.lines().map(str::to_owned).collect(),
        status: Some(failure.map_or(Status::BadInput, |failure| failure.status)),
    }
}

fn is_line(place: &str) -> bool {
    place
        .strip_prefix("line ")
        .is_some_and(|number| number.parse::<u64>().is_ok())
}

fn problem_line(problem: &Problem) -> ProblemLine {
    ProblemLine {
        file: problem.file.clone(),
        place: problem.place.clone(),
        rule: problem.rule.clone(),
    }
}

/// What the file is, with sizes.
fn check(path: &Path) -> anyhow::Result<String> {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    if path.is_dir() {
        return check_journals(path);
    }
    if run::is_segment_name(path) {
        return check_journals(path);
    }
    match ending {
        "jsonl" => check_lines(path),
        "scen" => scen::check(path),
        "json" => check_json(path),
        "toml" => check_config(path),
        _ => Ok(describe(&MapInput::read(path, None)?)),
    }
}

/// A configuration as `serve` takes it in this environment without flags, and all files that it names.
fn check_config(path: &Path) -> anyhow::Result<String> {
    let checked = Config::load(Some(path), Vec::new())?.check()?;
    let names: Vec<&str> = checked.locations.iter().map(Loaded::name).collect();
    Ok(format!("configuration, locations {}", names.join(", ")))
}

/// A location, a polygon map or an array of obstacles.
fn check_json(path: &Path) -> anyhow::Result<String> {
    let bytes = input::read(path, input::MAP_BYTES_MAX)?;
    let name = input::name(path);
    let document = Document::parse(&name, &bytes, input::MAP_BYTES_MAX)?;
    let root = document.root();
    if root.is_array() {
        let obstacles = question::parse_obstacles(&name, &bytes)?;
        return Ok(format!("obstacles, {}", obstacles.len()));
    }
    let keys = root
        .object()
        .map(|mut object| object.entries())
        .unwrap_or_default();
    let is_location = keys.iter().any(|(key, _)| LOCATION_KEYS.contains(key));
    drop(document);
    if is_location {
        check_location(path)
    } else {
        Ok(describe(&MapInput::parse(&name, &bytes, None)?))
    }
}

fn check_location(path: &Path) -> anyhow::Result<String> {
    let files = LocationFiles::read(path)?;
    let definition = files.definition(None, None)?;
    let world = sim::World::new(&definition);
    Ok(format!(
        "location {}, {} Hz, {} maps, {} spawn points, {} characters",
        definition.name(),
        definition.tick_rate(),
        definition.map_names().count(),
        definition.spawns().len(),
        world.characters().len()
    ))
}

/// Reads journals from their first record to their last: frames, checksums, chain, order. `replay --verify` steps them too.
fn check_journals(path: &Path) -> anyhow::Result<String> {
    let mut found = Vec::new();
    for journal in recorded::find(path, None, None)? {
        let mut reader = journal.read().map_err(recorded::read_failed)?;
        recorded::definition(&reader)?;
        let mut turns = 0u64;
        while let Some(record) = reader.next().map_err(recorded::read_failed)? {
            turns += u64::from(matches!(record, Record::Turn(_)));
        }
        let torn = if reader.torn().is_some() {
            ", torn end: the next start cuts it"
        } else {
            ""
        };
        let next = reader.segment().tick();
        found.push(format!(
            "journal {}, {turns} turns, next tick {next}{torn}",
            journal.path.display()
        ));
    }
    Ok(found.join("; "))
}

/// Commands or queries: its first line says which.
fn check_lines(path: &Path) -> anyhow::Result<String> {
    let name = input::name(path);
    let mut is_queries = None;
    input::for_each_line(path, |line, text| {
        if is_queries.is_none() {
            let document = Document::parse_line(&name, line, text, input::LINE_BYTES_MAX);
            let document = document.map_err(anyhow::Error::from)?;
            let keys = document
                .root()
                .object()
                .map(|mut object| object.entries())
                .unwrap_or_default();
            is_queries = Some(keys.iter().any(|(key, _)| ["from", "to", "exact"].contains(key)));
        }
        Ok(())
    })?;
    Ok(match is_queries {
        None => "no lines".to_owned(),
        Some(true) => format!("queries, {}", question::read_all(path)?.len()),
        Some(false) => format!("commands, {}", read_commands(path, COMMANDS_TICK_RATE)?.len()),
    })
}

fn describe(map: &MapInput) -> String {
    let planner = match &map.planner {
        MapPlanner::Grid(planner) => planner,
        MapPlanner::Polygon(planner) => {
            let (corners, links) = planner.size();
            return format!(
                "{} for the polygon planner, {} areas, {} obstacles, {corners} corners, {links} links",
                map.kind,
                planner.areas().len(),
                planner.obstacle_count()
            );
        }
    };
    let (grid, source) = (planner.grid(), planner.map());
    let outlines = if source.is_baked() {
        String::new()
    } else {
        format!(
            ", {} areas, {} obstacles",
            source.areas().count(),
            source.obstacles().count()
        )
    };
    format!(
        "{}, {} × {} cells of {} m{outlines}, {} components",
        map.kind,
        grid.width(),
        grid.depth(),
        grid.parameters().cell_size,
        grid.components()
    )
}
