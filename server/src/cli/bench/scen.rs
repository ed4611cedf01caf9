//! `lockstepd bench scen FILE.scen…`: MovingAI scenarios, solved and compared with the published optimal lengths.
//!
//! A scenario file names its map by a path of its own; the map is looked for beside the scenario file by its file name.
//!
//! The published lengths count √2 for a diagonal step, the planner's contract 1.4. Nearly always a route that is least
//! for 1.4 is least for √2 too, but not always: 17 diagonal steps cost 0.2 less than 24 cardinal ones by 1.4 and are
//! 0.04 longer by √2, and 10 diagonal steps tie with 14 cardinal ones. So a length that differs is judged by an
//! independent search under both costs: it is right if the published length is the least under √2 and the route's the
//! least under 1.4 ("longer by 1.4"), and wrong otherwise.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::nav::movingai::{MOVINGAI_BYTES_MAX, Scenario, parse_scenarios};
use ::nav::{Cell, Fixed, Goal, Grid, GridPlanner, Route};
use clap::Args;
use serde::Serialize;

use super::exact::least_cost;
use crate::cli::input;
use crate::cli::map::read_grid;
use crate::cli::output::{self, Output};
use crate::cli::question::Question;
use crate::exit::{Status, bad_input};

/// Solve MovingAI scenarios and compare each route's length with the published optimum
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScenArguments {
    /// Scenario files; each is read with the map that it names, from its own folder
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

Lengths count √2 for a diagonal step, tolerance 0.01. The planner's diagonal costs 1.4: where its
least route is longer by √2 than the published one, both are proven by an independent search and
counted as `longer by 1.4`.
Exit status 1 if a length is wrong, a route is missing or a corner is cut.";

/// Allowed difference from a published length, millionths of a cell.
const TOLERANCE: u64 = 10_000;
/// √2 in billionths.
const ROOT_2: u64 = 1_414_213_562;
/// Differing lengths that are judged by the slow search; a file with more of them is wrong anyway.
const JUDGED_MAX: usize = 1_000;
/// Wrong scenarios that are told one by one; the others are counted.
const TOLD_MAX: usize = 10;

/// What one scenario file gave.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    file: String,
    map: String,
    scenarios: usize,
    as_published: usize,
    longer_by_cost_model: usize,
    wrong: usize,
    corners_cut: usize,
    microseconds_per_query: f64,
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
    let failed = outcomes
        .iter()
        .any(|outcome| outcome.wrong + outcome.corners_cut > 0);
    Ok(if failed {
        Status::Failed.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// Checks a scenario file and its map and says what it is.
///
/// # Errors
/// Every broken line; those of the map; a map of another size.
pub(crate) fn check(file: &Path) -> anyhow::Result<String> {
    let scenarios = read(file)?;
    read_map(file, &scenarios[0], None)?;
    let map = scenarios[0].map_file_name();
    Ok(format!("MovingAI scenarios, {} on {map}", scenarios.len()))
}

fn read(file: &Path) -> anyhow::Result<Vec<Scenario>> {
    let name = input::name(file);
    let scenarios = parse_scenarios(&name, &input::read(file, MOVINGAI_BYTES_MAX)?)?;
    let Some(first) = scenarios.first() else {
        return Err(bad_input(format_args!("{name}: no scenario")));
    };
    let map_of = |scenario: &Scenario| (scenario.map.clone(), scenario.width, scenario.depth);
    if scenarios.iter().any(|scenario| map_of(scenario) != map_of(first)) {
        return Err(bad_input(format_args!(
            "{name}: scenarios of several maps or sizes"
        )));
    }
    Ok(scenarios)
}

/// The map of a scenario file: the one beside it, if no other is wanted.
fn read_map(file: &Path, scenario: &Scenario, map: Option<&Path>) -> anyhow::Result<GridPlanner> {
    // By its file name alone: whatever folders the line names, no other file than one beside it is opened.
    let path = map.map_or_else(
        || file.with_file_name(scenario.map_file_name()),
        Path::to_path_buf,
    );
    let planner = read_grid(&path)?;
    let grid = planner.grid();
    let (width, depth) = (scenario.width, scenario.depth);
    if (grid.width(), grid.depth()) != (width, depth) {
        return Err(bad_input(format_args!(
            "{}: line 2: for a map of {width} × {depth}, {} has {} × {}",
            file.display(),
            path.display(),
            grid.width(),
            grid.depth()
        )));
    }
    Ok(planner)
}

fn table(outcomes: &[Outcome]) -> comfy_table::Table {
    let header = [
        "map",
        "scenarios",
        "as published",
        "longer by 1.4",
        "wrong",
        "corners cut",
        "µs per query",
        "expanded per query",
    ];
    let mut table = super::table(&header, 1);
    for outcome in outcomes {
        table.add_row([
            outcome.map.clone(),
            outcome.scenarios.to_string(),
            outcome.as_published.to_string(),
            outcome.longer_by_cost_model.to_string(),
            outcome.wrong.to_string(),
            outcome.corners_cut.to_string(),
            format!("{:.2}", outcome.microseconds_per_query),
            format!("{:.1}", outcome.expanded_per_query),
        ]);
    }
    table
}

fn solve_file(file: &Path, map: Option<&Path>) -> anyhow::Result<Outcome> {
    let scenarios = read(file)?;
    let mut planner = read_map(file, &scenarios[0], map)?;
    let grid = planner.grid().clone();
    let mut outcome = Outcome {
        file: input::name(file),
        map: scenarios[0].map_file_name().to_owned(),
        scenarios: scenarios.len(),
        as_published: 0,
        longer_by_cost_model: 0,
        wrong: 0,
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
        question.ask(&mut planner, true, &mut route);
        elapsed += started.elapsed();
        expanded += u64::from(route.stats.expanded);
        count(&grid, done, scenario, &route, &mut outcome);
        progress.at(done as u64);
    }
    let count = scenarios.len() as f64;
    outcome.microseconds_per_query = elapsed.as_secs_f64() * 1e6 / count;
    outcome.expanded_per_query = expanded as f64 / count;
    Ok(outcome)
}

/// Counts the route in one of the columns, and says on stderr what is wrong with it.
fn count(grid: &Grid, index: usize, scenario: &Scenario, route: &Route, outcome: &mut Outcome) {
    let steps = Steps::of(grid, &route.cells);
    let ends = [scenario.start, scenario.goal].map(|cell| (cell.x, cell.z));
    let arrives =
        route.found && route.cells.first() == Some(&ends[0]) && route.cells.last() == Some(&ends[1]);
    outcome.corners_cut += usize::from(!steps.legal);
    let published = scenario.optimal_length_millionths;
    if arrives && steps.length().abs_diff(published) <= TOLERANCE {
        outcome.as_published += 1;
        return;
    }
    let judged = outcome.longer_by_cost_model + outcome.wrong;
    if arrives && judged < JUDGED_MAX && is_explained(grid, scenario, &steps) {
        outcome.longer_by_cost_model += 1;
        return;
    }
    outcome.wrong += 1;
    if outcome.wrong <= TOLD_MAX {
        let found = if arrives {
            format!("length {}", decimal(steps.length()))
        } else {
            "no route".to_owned()
        };
        // The first line is the version.
        output::complain(format_args!(
            "{}: scenario {}: {found}, published {}",
            outcome.file,
            index + 1,
            decimal(published)
        ));
    }
}

/// The published length is the least under √2, and the route's cost is the least under 1.4.
fn is_explained(grid: &Grid, scenario: &Scenario, steps: &Steps) -> bool {
    let least = |cardinal, diagonal| least_cost(grid, scenario.start, scenario.goal, cardinal, diagonal);
    least(1_000_000_000, ROOT_2)
        .is_some_and(|least| (least / 1000).abs_diff(scenario.optimal_length_millionths) <= TOLERANCE)
        && least(10, 14) == Some(10 * steps.cardinal + 14 * steps.diagonal)
}

/// The steps of a chain of cells.
struct Steps {
    cardinal: u64,
    diagonal: u64,
    /// No corner cut, no blocked cell, no jump.
    legal: bool,
}

impl Steps {
    fn of(grid: &Grid, cells: &[(u32, u32)]) -> Self {
        let walkable = |x: u32, z: u32| grid.is_walkable(Cell { x, z });
        let mut steps = Self {
            cardinal: 0,
            diagonal: 0,
            legal: true,
        };
        for pair in cells.windows(2) {
            let [(ax, az), (bx, bz)] = [pair[0], pair[1]];
            match (ax.abs_diff(bx), az.abs_diff(bz)) {
                (1, 1) => {
                    steps.diagonal += 1;
                    steps.legal &= walkable(ax, bz) && walkable(bx, az);
                }
                (0, 1) | (1, 0) => steps.cardinal += 1,
                _ => steps.legal = false,
            }
            steps.legal &= walkable(bx, bz);
        }
        steps
    }

    /// With √2 for a diagonal step, millionths of a cell.
    fn length(&self) -> u64 {
        self.cardinal * 1_000_000 + self.diagonal * ROOT_2 / 1000
    }
}

fn decimal(millionths: u64) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
