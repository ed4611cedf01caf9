//! `lockstepd path MAP`: one question to a map, or a file of them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use nav::drawing::{LAYERS, QueryPicture};
use nav::{Drawing, Fixed, FixedError, Goal, PlannerKind, Point, Route, WORLD_LIMIT};

use super::input;
use super::map::{MapInput, MapPlanner};
use super::output::{self, Output};
use super::question::{self, Answer, Cost, Question, RADIUS_MAX};
use crate::exit::{Status, WithStatus, bad_input};

/// Plan a path on a map (.json, .txt or .map), or answer a file of queries
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PathArguments {
    /// Map: polygons (.json), baked grid (.txt) or MovingAI octile map (.map)
    map: PathBuf,
    /// Start, metres
    #[arg(long, value_name = "X,Z", value_parser = point, allow_hyphen_values = true, required_unless_present = "queries")]
    from: Option<Point>,
    /// Requested end, metres
    #[arg(long, value_name = "X,Z", value_parser = point, allow_hyphen_values = true, required_unless_present = "queries")]
    to: Option<Point>,
    /// Only a path to the requested end itself (snapped by at most 8 m); default: to the nearest place that can be reached
    #[arg(long)]
    exact: bool,
    /// The planner: grid or polygon; default: the one that the map names, else the grid
    #[arg(long, value_name = "NAME", value_parser = planner)]
    planner: Option<PlannerKind>,
    /// Radius of who asks, metres, for planners with radius classes; the grid has its agentRadius in the map
    #[arg(long, value_name = "R", value_parser = radius)]
    radius: Option<Fixed>,
    /// People who stand in the way: [{"x": 1, "z": 2, "radius": 0.45}, …]
    #[arg(long, value_name = "FILE.json")]
    obstacles: Option<PathBuf>,
    /// Print JSON: one object, or with --queries one a line
    #[arg(long)]
    json: bool,
    /// Draw map and path into this file
    #[arg(long, value_name = "OUT.svg", value_parser = picture_file)]
    svg: Option<PathBuf>,
    /// What to draw, all by default; a layer that this map has nothing for is empty
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "svg", value_parser = PossibleValuesParser::new(LAYERS))]
    layers: Vec<String>,
    /// Questions, one JSON object a line: {"from": [x, z], "to": [x, z], "exact": false, "obstacles": […]}; `-` is stdin
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["from", "to", "exact", "svg"])]
    queries: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd path town.json --from 2,3 --to 40.5,12
  lockstepd path town.json --from 2,3 --to 40.5,12 --svg path.svg --layers areas,blocked,path,ends
  lockstepd path town.txt --from -3,0 --to 8,8 --exact --obstacles people.json --json
  lockstepd path town.json --planner polygon --from 2,3 --to 40.5,12 --radius 0.45 --svg graph.svg
  lockstepd path town.txt --queries queries.jsonl --json

No path is an answer too, with status 0: `\"found\": false`.";

/// Answers.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &PathArguments) -> anyhow::Result<ExitCode> {
    let mut map = MapInput::read(&arguments.map, arguments.planner)?;
    let obstacles = match &arguments.obstacles {
        None => Vec::new(),
        Some(path) => {
            let bytes = input::read(path, input::OBSTACLES_BYTES_MAX)?;
            question::parse_obstacles(&input::name(path), &bytes)?
        }
    };
    let mut questions = match (&arguments.queries, arguments.from, arguments.to) {
        (Some(queries), ..) => question::read_all(queries)?,
        (None, Some(from), Some(to)) => vec![Question {
            from,
            to,
            goal: if arguments.exact {
                Goal::Exact
            } else {
                Goal::Nearest
            },
            agent_radius: Fixed::ZERO,
            obstacles: Vec::new(),
        }],
        _ => return Err(bad_input("--from and --to, or --queries")),
    };
    for question in &mut questions {
        question.agent_radius = arguments.radius.unwrap_or_default();
        question.obstacles.extend_from_slice(&obstacles);
    }

    let mut output = Output::stdout();
    let mut route = Route::default();
    let mut progress = output::progress(questions.len() as u64, "queries");
    for (done, question) in questions.iter().enumerate() {
        question.ask(map.planner.any(), true, &mut route);
        if arguments.json {
            output.json(&Answer::new(&route, &map))?;
        } else {
            print(&mut output, question, &map, &route)?;
        }
        progress.at(done as u64);
    }
    drop(progress);
    if let (Some(path), [question]) = (&arguments.svg, &questions[..]) {
        let picture = picture(&mut map, question, &route, &arguments.layers);
        std::fs::write(path, picture)
            .with_context(|| path.display().to_string())
            .with_status(Status::Io)?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The map with the question and its answer, as SVG.
fn picture(map: &mut MapInput, question: &Question, route: &Route, layers: &[String]) -> String {
    let mut drawing = match &mut map.planner {
        MapPlanner::Grid(planner) => {
            let source = planner.map();
            let mut drawing = Drawing::of_map(source);
            let query = QueryPicture {
                from: question.from,
                to: question.to,
                standing: &question.obstacles,
                route,
                expanded: &[],
            };
            drawing.add_query(source.frame(), &query);
            drawing
        }
        MapPlanner::Polygon(planner) => {
            let mut drawing = planner.picture(question.agent_radius);
            planner.add_query_picture(&mut drawing, &question.query(false), route);
            drawing
        }
    };
    if !layers.is_empty() {
        drawing.keep_layers(layers);
    }
    let (from, to) = (question.from, question.to);
    drawing.to_svg(&format!("{}, {} to {}, {}", from.x, from.z, to.x, to.z))
}

/// A route for people.
fn print(output: &mut Output, question: &Question, map: &MapInput, route: &Route) -> anyhow::Result<()> {
    let (from, to) = (question.from, question.to);
    let way = format!("{}, {} to {}, {}", from.x, from.z, to.x, to.z);
    if !route.found {
        return output.line(format_args!("{way}: no path ({} expanded)", route.stats.expanded));
    }
    let end = if route.complete {
        "complete"
    } else {
        "to the nearest place that can be reached"
    };
    let cost = match Cost::of(route, &map.planner) {
        steps @ Cost::Steps(_) => format!("{} cells, cost {steps}", route.cells.len()),
        length @ Cost::Length(_) => format!("{length} m"),
    };
    output.line(format_args!(
        "{way}: {end}, {cost}, {} expanded",
        route.stats.expanded
    ))?;
    for waypoint in &route.waypoints {
        output.line(format_args!("  {}, {}", waypoint.x, waypoint.z))?;
    }
    Ok(())
}

/// `x,z`.
fn point(text: &str) -> Result<Point, String> {
    let (x, z) = text
        .split_once(',')
        .ok_or("not X,Z: two numbers with a comma between")?;
    let number = |text: &str| {
        Fixed::from_str(text.trim()).map_err(|error| match error {
            FixedError::NotANumber => format!("{text:?} is not a number"),
            FixedError::OutOfRange => format!("{text} is outside -{WORLD_LIMIT} to {WORLD_LIMIT}"),
        })
    };
    Ok(Point::new(number(x)?, number(z)?))
}

/// The name of a file: the answer is what goes to stdout.
fn picture_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("a picture needs a file; stdout has the answer".to_owned()),
        name => Ok(name.into()),
    }
}

/// A planner's name.
pub(crate) fn planner(text: &str) -> Result<PlannerKind, String> {
    let kind = PlannerKind::ALL.into_iter().find(|kind| kind.name() == text);
    kind.ok_or_else(|| {
        let names = PlannerKind::ALL.map(PlannerKind::name);
        format!("one of {}", names.join(", "))
    })
}

fn radius(text: &str) -> Result<Fixed, String> {
    let radius = Fixed::from_str(text).map_err(|error| error.to_string())?;
    if (Fixed::ZERO..=RADIUS_MAX).contains(&radius) {
        Ok(radius)
    } else {
        Err(format!("outside 0 to {RADIUS_MAX}"))
    }
}
