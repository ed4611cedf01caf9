//! `lockstepd bench nav`: the reference workload. 80 × 80 cells of 0.4 m, 32 standing people stamped anew for every
//! query, the first 100 and all 1,000 queries; with `--planner polygon` maps of polygons instead.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::nav::{Circle, PlannerKind, Route};
use clap::Args;
use serde::Serialize;

use crate::cli::input;
use crate::cli::map::{MapInput, MapPlanner};
use crate::cli::output::{self, Output};
use crate::cli::path::planner;
use crate::cli::question::{self, Question};
use crate::exit::bad_input;

/// Measure obstacle-aware path queries on the reference maps (built in), or on a map of yours
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NavArguments {
    /// The planner: grid or polygon, each with its own reference maps; with --map default the one that the map names
    #[arg(long, value_name = "NAME", value_parser = planner)]
    planner: Option<PlannerKind>,
    /// Measure on this map instead of the three reference maps
    #[arg(long, value_name = "MAP", requires = "queries")]
    map: Option<PathBuf>,
    /// With --map: its queries, one a line, as for `path --queries`
    #[arg(long, value_name = "FILE.jsonl", requires = "map")]
    queries: Option<PathBuf>,
    /// With --map: obstacles that every query meets beside its own
    #[arg(long, value_name = "FILE.json", requires = "map")]
    obstacles: Option<PathBuf>,
    /// Print one JSON object for each row
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bench nav
  lockstepd bench nav --json
  lockstepd bench nav --planner polygon
  lockstepd bench nav --map town.txt --queries queries.jsonl --obstacles people.json";

/// Measured so often after one pass to warm up; the fastest counts, since whatever else the machine does only adds.
const PASSES: usize = 9;
/// What the original system quotes for so many obstacle-aware queries on an 80 × 80 grid, milliseconds.
const ORIGINAL: [(usize, f64); 2] = [(100, 15.0), (1000, 176.0)];

/// A reference map, who stands on it, and its queries by kind.
struct Reference {
    map: &'static str,
    ending: &'static str,
    bytes: &'static [u8],
    obstacles: &'static [u8],
    queries: &'static [(&'static str, &'static [u8])],
}

/// Baked grids; queries whose ends are connected, and queries of which about a quarter end nowhere or under somebody.
const ON_GRIDS: [Reference; 3] = [
    Reference {
        map: "random20",
        ending: "txt",
        bytes: include_bytes!("../../../../tests/bench80/random20.txt"),
        obstacles: include_bytes!("../../../../tests/bench80/random20.obstacles.json"),
        queries: &[
            (
                "connected",
                include_bytes!("../../../../tests/bench80/random20.conn.jsonl"),
            ),
            (
                "mixed",
                include_bytes!("../../../../tests/bench80/random20.mixed.jsonl"),
            ),
        ],
    },
    Reference {
        map: "rooms",
        ending: "txt",
        bytes: include_bytes!("../../../../tests/bench80/rooms.txt"),
        obstacles: include_bytes!("../../../../tests/bench80/rooms.obstacles.json"),
        queries: &[
            (
                "connected",
                include_bytes!("../../../../tests/bench80/rooms.conn.jsonl"),
            ),
            (
                "mixed",
                include_bytes!("../../../../tests/bench80/rooms.mixed.jsonl"),
            ),
        ],
    },
    Reference {
        map: "open",
        ending: "txt",
        bytes: include_bytes!("../../../../tests/bench80/open.txt"),
        obstacles: include_bytes!("../../../../tests/bench80/open.obstacles.json"),
        queries: &[
            (
                "connected",
                include_bytes!("../../../../tests/bench80/open.conn.jsonl"),
            ),
            (
                "mixed",
                include_bytes!("../../../../tests/bench80/open.mixed.jsonl"),
            ),
        ],
    },
];

/// A star of 200 corners, and squares with 24 and 499 holes of four corners; nobody stands there.
const ON_POLYGONS: [Reference; 3] = [
    Reference {
        map: "star-200",
        ending: "json",
        bytes: include_bytes!("../../../../tests/bench-polygon/star-200.json"),
        obstacles: b"[]",
        queries: &[(
            "connected",
            include_bytes!("../../../../tests/bench-polygon/star-200.queries.jsonl"),
        )],
    },
    Reference {
        map: "holes-100",
        ending: "json",
        bytes: include_bytes!("../../../../tests/bench-polygon/holes-100.json"),
        obstacles: b"[]",
        queries: &[(
            "connected",
            include_bytes!("../../../../tests/bench-polygon/holes-100.queries.jsonl"),
        )],
    },
    Reference {
        map: "holes-2000",
        ending: "json",
        bytes: include_bytes!("../../../../tests/bench-polygon/holes-2000.json"),
        obstacles: b"[]",
        queries: &[(
            "connected",
            include_bytes!("../../../../tests/bench-polygon/holes-2000.queries.jsonl"),
        )],
    },
];

/// One map with one set of queries.
struct Workload {
    map: String,
    kind: &'static str,
    planner: MapPlanner,
    /// What reading the map and building its planner took.
    built: Duration,
    questions: Vec<Question>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    map: String,
    workload: &'static str,
    queries: usize,
    build_milliseconds: f64,
    total_milliseconds: f64,
    microseconds_per_query: f64,
    expanded_per_query: f64,
    complete: usize,
    /// Quoted by the original system for as many queries, on another machine.
    original_milliseconds: Option<f64>,
}

/// Measures and prints.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &NavArguments) -> anyhow::Result<ExitCode> {
    let workloads = match (&arguments.map, &arguments.queries) {
        (Some(map), Some(queries)) => {
            let obstacles = arguments.obstacles.as_deref();
            vec![given(map, queries, obstacles, arguments.planner)?]
        }
        _ => reference(arguments.planner.unwrap_or(PlannerKind::Grid))?,
    };
    let is_reference =
        arguments.map.is_none() && arguments.planner.is_none_or(|kind| kind == PlannerKind::Grid);
    let mut progress = output::progress(2 * workloads.len() as u64, "workloads");
    let mut rows = Vec::new();
    for mut workload in workloads {
        let all = workload.questions.len();
        let sizes = if all > 100 { vec![100, all] } else { vec![all] };
        for size in sizes {
            rows.push(measure(&mut workload, size, is_reference));
            progress.at(rows.len() as u64);
        }
    }
    drop(progress);

    let mut output = Output::stdout();
    if arguments.json {
        for row in &rows {
            output.json(row)?;
        }
    } else {
        output.line(table(&rows))?;
        if is_reference {
            output.line(
                "Original: what the original system quotes for as many obstacle-aware queries on an 80 × 80 grid; a \
                 comparison across machines.",
            )?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn table(rows: &[Row]) -> comfy_table::Table {
    let header = [
        "map",
        "ends",
        "queries",
        "build ms",
        "total ms",
        "µs per query",
        "expanded per query",
        "complete",
        "original ms",
    ];
    let mut table = super::table(&header, 2);
    for row in rows {
        table.add_row([
            row.map.clone(),
            row.workload.to_owned(),
            row.queries.to_string(),
            format!("{:.3}", row.build_milliseconds),
            format!("{:.3}", row.total_milliseconds),
            format!("{:.2}", row.microseconds_per_query),
            format!("{:.1}", row.expanded_per_query),
            row.complete.to_string(),
            row.original_milliseconds
                .map_or(String::new(), |time| time.to_string()),
        ]);
    }
    table
}

/// The fastest of several passes over the first `size` questions.
fn measure(workload: &mut Workload, size: usize, is_reference: bool) -> Row {
    let questions = &workload.questions[..size];
    let mut route = Route::default();
    let (mut expanded, mut complete) = (0u64, 0);
    let mut fastest = Duration::MAX;
    for pass in 0..=PASSES {
        (expanded, complete) = (0, 0);
        let started = Instant::now();
        for question in questions {
            question.ask(workload.planner.any(), false, &mut route);
            expanded += u64::from(route.stats.expanded);
            complete += usize::from(route.complete);
        }
        if pass > 0 {
            fastest = fastest.min(started.elapsed());
        }
    }
    let fastest = fastest.as_secs_f64();
    let count = size.max(1) as f64;
    let original = ORIGINAL
        .iter()
        .find(|(queries, _)| *queries == size && is_reference);
    Row {
        map: workload.map.clone(),
        workload: workload.kind,
        queries: size,
        build_milliseconds: workload.built.as_secs_f64() * 1e3,
        total_milliseconds: fastest * 1e3,
        microseconds_per_query: fastest * 1e6 / count,
        expanded_per_query: expanded as f64 / count,
        complete,
        original_milliseconds: original.map(|(_, time)| *time),
    }
}

fn reference(planner: PlannerKind) -> anyhow::Result<Vec<Workload>> {
    let references = match planner {
        PlannerKind::Grid => &ON_GRIDS,
        PlannerKind::Polygon => &ON_POLYGONS,
    };
    let mut workloads = Vec::new();
    for reference in references {
        let Reference {
            map, ending, bytes, ..
        } = reference;
        let obstacles = question::parse_obstacles(map, reference.obstacles)?;
        for (kind, lines) in reference.queries {
            let mut questions = Vec::new();
            for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
                if !line.is_empty() {
                    questions.push(with_obstacles(
                        Question::parse(map, index as u64 + 1, line)?,
                        &obstacles,
                    ));
                }
            }
            let started = Instant::now();
            let planner = MapInput::parse(&format!("{map}.{ending}"), bytes, Some(planner))?.planner;
            workloads.push(Workload {
                map: (*map).to_owned(),
                kind,
                planner,
                built: started.elapsed(),
                questions,
            });
        }
    }
    Ok(workloads)
}

fn given(
    map: &Path,
    queries: &Path,
    obstacles: Option<&Path>,
    planner: Option<PlannerKind>,
) -> anyhow::Result<Workload> {
    let started = Instant::now();
    let planner = MapInput::read(map, planner)?.planner;
    let built = started.elapsed();
    let obstacles = match obstacles {
        None => Vec::new(),
        Some(path) => {
            let bytes = input::read(path, input::OBSTACLES_BYTES_MAX)?;
            question::parse_obstacles(&input::name(path), &bytes)?
        }
    };
    let questions = question::read_all(queries)?;
    if questions.is_empty() {
        return Err(bad_input(format_args!("{}: no query", queries.display())));
    }
    let questions = questions
        .into_iter()
        .map(|question| with_obstacles(question, &obstacles));
    Ok(Workload {
        map: input::name(map),
        kind: "given",
        planner,
        built,
        questions: questions.collect(),
    })
}

fn with_obstacles(mut question: Question, obstacles: &[Circle]) -> Question {
    question.obstacles.extend_from_slice(obstacles);
    question
}
