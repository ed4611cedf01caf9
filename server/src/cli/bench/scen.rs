//! `lockstepd bench scen FILE.scen…`: MovingAI scenarios, solved and compared with the published optimal lengths.
//!
//! A scenario file names its map by a path of its own; the map is looked for beside the scenario file by its file name.
//! The published lengths count √2 for a diagonal step, the planner 14 for every 10: routes that are least under the
//! planner's costs are compared by their counts of steps, with a tolerance for the digits that were published.

use std::f64::consts::SQRT_2;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::nav::{Cell, Fixed, Goal, Grid, Problems, Route};
use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::cli::input;
use crate::cli::map::MapInput;
use crate::cli::output::{self, Output};
use crate::cli::question::Question;
use crate::exit::{Status, bad_input};

/// Solve MovingAI scenarios and compare each route's length with the published optimum
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScenArguments {
    /// Scenario files; `MAP.scen` is read with the map that it names, from its own folder
    #[arg(required = true, value_name = "FILE.scen")]
    files: Vec<PathBuf>,
    /// Use this map for every scenario file
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Print one JSON object for each scenario file
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bench scen Berlin_1_256.map.scen
  lockstepd bench scen maps/*.scen --json
  lockstepd bench scen arena.map.scen --map elsewhere/arena.map

Exit status 1 if a length differs by more than 0.01, a route is missing or a corner is cut.";

/// Allowed difference from a published length, cells.
const TOLERANCE: f64 = 0.01;
/// Scenarios of one file.
const SCENARIOS_MAX: usize = 1_000_000;
/// Differing scenarios that are told one by one; the others are counted.
const TOLD_MAX: usize = 10;

/// One line of a scenario file.
struct Scenario {
    line: u64,
    start: Cell,
    goal: Cell,
    optimum: f64,
}

/// A scenario file: the map it names and its lines.
struct Scenarios {
    map: String,
    width: u32,
    height: u32,
    scenarios: Vec<Scenario>,
}

/// What one scenario file gave.
#[derive(Serialize)]
struct Outcome {
    file: String,
    map: String,
    scenarios: usize,
    solved: usize,
    #[serde(rename = "wrongLengths")]
    wrong_lengths: usize,
    #[serde(rename = "cornersCut")]
    corners_cut: usize,
    #[serde(rename = "microsecondsPerQuery")]
    microseconds_per_query: f64,
    #[serde(rename = "expandedPerQuery")]
    expanded_per_query: f64,
}

/// Solves every scenario of every file.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &ScenArguments) -> anyhow::Result<ExitCode> {
    let mut outcomes = Vec::new();
    for file in &arguments.files {
        outcomes.push(solve_file(file, arguments.map.as_deref())?);
    }
    let mut output = Output::stdout();
    if arguments.json {
        for outcome in &outcomes {
            output.json(outcome)?;
        }
    } else {
        output.line(table(&outcomes))?;
    }
    output.finish()?;
    let wrong = outcomes
        .iter()
        .any(|outcome| outcome.solved != outcome.scenarios || outcome.corners_cut > 0);
    Ok(if wrong {
        Status::Failed.into()
    } else {
        ExitCode::SUCCESS
    })
}

fn table(outcomes: &[Outcome]) -> comfy_table::Table {
    let header = [
        "map",
        "scenarios",
        "as published",
        "corners cut",
        "µs per query",
        "expanded per query",
    ];
    let mut table = super::table(&header, 1);
    for outcome in outcomes {
        table.add_row([
            outcome.map.clone(),
            outcome.scenarios.to_string(),
            outcome.solved.to_string(),
            outcome.corners_cut.to_string(),
            format!("{:.2}", outcome.microseconds_per_query),
            format!("{:.1}", outcome.expanded_per_query),
        ]);
    }
    table
}

fn solve_file(file: &Path, map: Option<&Path>) -> anyhow::Result<Outcome> {
    let Scenarios {
        map: named,
        width,
        height,
        scenarios,
    } = read_scenarios(file)?;
    let map_path = map.map_or_else(|| file.with_file_name(&named), Path::to_path_buf);
    let mut map = MapInput::read(&map_path)?;
    let grid = map.planner.grid().clone();
    if (grid.width(), grid.depth()) != (width, height) {
        return Err(bad_input(format_args!(
            "{}: the scenarios are for a map of {width} × {height}, {} has {} × {}",
            file.display(),
            map_path.display(),
            grid.width(),
            grid.depth()
        )));
    }

    let mut outcome = Outcome {
        file: input::name(file),
        map: named,
        scenarios: scenarios.len(),
        solved: 0,
        wrong_lengths: 0,
        corners_cut: 0,
        microseconds_per_query: 0.0,
        expanded_per_query: 0.0,
    };
    let (mut elapsed, mut expanded) = (Duration::ZERO, 0u64);
    let mut route = Route::default();
    let mut progress = output::progress(scenarios.len() as u64, "scenarios");
    for (done, scenario) in scenarios.iter().enumerate() {
        let question = Question {
            from: grid.centre_of(scenario.start),
            to: grid.centre_of(scenario.goal),
            goal: Goal::Exact,
            agent_radius: Fixed::ZERO,
            obstacles: Vec::new(),
        };
        let started = Instant::now();
        question.ask(&mut map.planner, true, &mut route);
        elapsed += started.elapsed();
        expanded += u64::from(route.stats.expanded);
        judge(&grid, scenario, &route, &mut outcome);
        progress.at(done as u64);
    }
    let count = scenarios.len().max(1) as f64;
    outcome.microseconds_per_query = elapsed.as_secs_f64() * 1e6 / count;
    outcome.expanded_per_query = expanded as f64 / count;
    Ok(outcome)
}

/// Counts the scenario as solved, or says on stderr what is wrong with the route.
fn judge(grid: &Grid, scenario: &Scenario, route: &Route, outcome: &mut Outcome) {
    let (length, corner_cut) = octile_length(grid, &route.cells);
    let ends = [scenario.start, scenario.goal].map(|cell| (cell.x, cell.z));
    let arrives =
        route.found && route.cells.first() == Some(&ends[0]) && route.cells.last() == Some(&ends[1]);
    outcome.corners_cut += usize::from(corner_cut);
    if arrives && (length - scenario.optimum).abs() <= TOLERANCE {
        outcome.solved += 1;
        return;
    }
    outcome.wrong_lengths += 1;
    if outcome.wrong_lengths <= TOLD_MAX {
        let found = if arrives {
            format!("length {length:.5}")
        } else {
            "no route".to_owned()
        };
        output::complain(format_args!(
            "{}: line {}: {found}, published {}",
            outcome.file, scenario.line, scenario.optimum
        ));
    }
}

/// Length of a chain of cells with √2 for diagonal steps; and whether it cuts a corner, enters a blocked cell or jumps.
fn octile_length(grid: &Grid, cells: &[(u32, u32)]) -> (f64, bool) {
    let walkable = |x: u32, z: u32| grid.is_walkable(Cell { x, z });
    let (mut cardinal, mut diagonal, mut wrong) = (0u32, 0u32, false);
    for pair in cells.windows(2) {
        let [(ax, az), (bx, bz)] = [pair[0], pair[1]];
        match (ax.abs_diff(bx), az.abs_diff(bz)) {
            (1, 1) => {
                diagonal += 1;
                wrong |= !walkable(ax, bz) || !walkable(bx, az);
            }
            (0, 1) | (1, 0) => cardinal += 1,
            _ => wrong = true,
        }
        wrong |= !walkable(bx, bz);
    }
    (f64::from(cardinal) + f64::from(diagonal) * SQRT_2, wrong)
}

fn read_scenarios(file: &Path) -> anyhow::Result<Scenarios> {
    let name = input::name(file);
    let mut problems = Problems::new();
    let mut first: Option<(String, u32, u32)> = None;
    let mut scenarios = Vec::new();
    let mut versioned = false;
    input::for_each_line(file, |line, text| {
        let place = format!("line {line}");
        let text = String::from_utf8_lossy(text);
        if line == 1 && text.split_whitespace().next() == Some("version") {
            versioned = true;
            return Ok(());
        }
        if scenarios.len() == SCENARIOS_MAX {
            return Err(bad_input(format_args!(
                "{name}: {place}: more than {SCENARIOS_MAX} scenarios"
            )));
        }
        match parse_scenario(line, &text) {
            Err(rule) => problems.push(&name, place, rule),
            Ok((map, width, height, scenario)) => {
                let same = first.get_or_insert_with(|| (map.clone(), width, height));
                if *same == (map, width, height) {
                    scenarios.push(scenario);
                } else {
                    problems.push(&name, place, "another map or size than in the lines before");
                }
            }
        }
        Ok(())
    })?;
    if !versioned {
        problems.push(&name, "line 1", "not `version 1`: no scenario file");
    } else if first.is_none() && problems.is_empty() {
        problems.push(&name, "", "no scenario");
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let (map, width, height) = first.context("a file without problems has a scenario")?;
    Ok(Scenarios {
        map,
        width,
        height,
        scenarios,
    })
}

/// Bucket, map, width, height, start x y, goal x y, optimal length.
fn parse_scenario(line: u64, text: &str) -> Result<(String, u32, u32, Scenario), &'static str> {
    // Tab separated as published; some copies have spaces, and then no space in the map's name.
    let fields: Vec<&str> = if text.contains('\t') {
        text.split('\t').collect()
    } else {
        text.split_whitespace().collect()
    };
    let [_, map, numbers @ .., optimum] = &fields[..] else {
        return Err("not the nine fields of a scenario");
    };
    let whole = |text: &&str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| "a size or coordinate is no whole number")
    };
    let numbers: Vec<u32> = numbers.iter().map(whole).collect::<Result<_, _>>()?;
    let [width, height, start_x, start_z, goal_x, goal_z] = numbers[..] else {
        return Err("not the nine fields of a scenario");
    };
    if start_x.max(goal_x) >= width || start_z.max(goal_z) >= height {
        return Err("start or goal outside the map");
    }
    let optimum: f64 = optimum
        .trim()
        .parse()
        .map_err(|_| "the optimal length is no number")?;
    if !optimum.is_finite() || optimum < 0.0 {
        return Err("the optimal length is no length");
    }
    // By its file name alone: whatever folders the line names, no other file than one beside it is opened.
    let map = map.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    if map.is_empty() || map == "." || map == ".." || map.contains('\0') {
        return Err("no file name of a map");
    }
    let scenario = Scenario {
        line,
        start: Cell {
            x: start_x,
            z: start_z,
        },
        goal: Cell { x: goal_x, z: goal_z },
        optimum,
    };
    Ok((map.to_owned(), width, height, scenario))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_lines() {
        let line = "4\tmaps/dao/arena.map\t49\t50\t1\t11\t2\t12\t1.41421";
        let (map, width, height, scenario) = parse_scenario(2, line).expect("a scenario");
        assert_eq!((map.as_str(), width, height), ("arena.map", 49, 50));
        assert_eq!((scenario.start.x, scenario.start.z), (1, 11));
        assert_eq!((scenario.goal.x, scenario.goal.z), (2, 12));
        for wrong in [
            "",
            "4\tarena.map\t49\t50\t1\t11\t2\t12",
            "4\tarena.map\t49\t50\t1\t11\t2\t12\t1\t1",
            "4\tarena.map\t49\t50\t49\t11\t2\t12\t1",
            "4\tarena.map\t49\t50\t-1\t11\t2\t12\t1",
            "4\tarena.map\t49\t50\t1\t11\t2\t12\tNaN",
            "4\tmaps/\t49\t50\t1\t11\t2\t12\t1",
            "4\t..\t49\t50\t1\t11\t2\t12\t1",
        ] {
            assert!(parse_scenario(2, wrong).is_err(), "{wrong:?}");
        }
    }
}
