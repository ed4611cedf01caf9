//! `lockstepd bench tick`: a crowd that wanders.
//!
//! NPCs wander within 12 m of where they start, pausing 0 to 20 ticks, at 10 Hz. They start on cells drawn by a fixed
//! seed from the largest component of the map, no two in contact. K × K copies of the map lie side by side without
//! anything between: where walkable cells meet at a seam, one copy leads into the next. With `--planner polygon` they start on
//! the same places, drawn from the grid of the same polygons, but plan on the polygons.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::nav::{BakedGrid, Cell, Cells, Fixed, Grid, PlannerKind, Point, WORLD_LIMIT};
use clap::Args;
use hdrhistogram::Histogram;
use protocol::Bundle;
use serde::Serialize;
use serde_json::json;
use sim::{Definition, Pcg32, Phase, Sources, World};

use crate::cli::input;
use crate::cli::map::parse_grid;
use crate::cli::output::{self, Output};
use crate::cli::path::planner;
use crate::exit::bad_input;
use crate::location_files::LocationFiles;

/// Measure the ticks of a wandering crowd
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TickArguments {
    /// Number of NPCs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=sim::CHARACTERS_MAX as i64))]
    characters: u32,
    /// Map (.json, .txt or .map); without it the map of the built-in demo
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The planner: grid or polygon; on polygons a map of polygons that the grid reads too
    #[arg(long, value_name = "NAME", value_parser = planner, default_value = "grid")]
    planner: PlannerKind,
    /// K × K copies of the map side by side, on the grid
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    copies: u32,
    /// Number of ticks; the first 300 (or the first third, if that is less) warm up
    #[arg(long, value_name = "T", default_value_t = 900, value_parser = clap::value_parser!(u64).range(3..=10_000_000))]
    ticks: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bench tick --characters 100
  lockstepd bench tick --characters 100 --planner polygon
  lockstepd bench tick --characters 1000 --map Berlin_1_256.map
  lockstepd bench tick --characters 10000 --map Berlin_1_256.map --copies 4 --json";

/// Ticks before those that count.
const WARM_UP_TICKS: u64 = 300;
/// Ticks per second of the simulated location.
pub(super) const TICK_RATE: u16 = 10;
/// Radius in which they wander, metres.
const WANDER_RADIUS: u32 = 12;
/// Least and most ticks of a pause.
const PAUSE_TICKS: [u32; 2] = [0, 20];
/// Two contact radii of 0.32 m, raw: whoever starts nearer would start in contact.
const CONTACT: i64 = 2 * 20_972;
/// Which cells are drawn.
const SEED: u32 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    map: String,
    planner: PlannerKind,
    copies: u32,
    cells: u64,
    characters: u32,
    ticks: u64,
    mean_microseconds: f64,
    p50_microseconds: u64,
    p99_microseconds: u64,
    max_microseconds: u64,
    /// Of the mean.
    microseconds_per_character: f64,
    /// Guard and motion alone, per character and tick.
    movement_microseconds_per_character: f64,
    /// The same at the median tick, which other programs on the machine disturb less.
    movement_p50_microseconds_per_character: f64,
    phases: Vec<PhaseTime>,
    plans_per_tick: f64,
    expanded_per_plan: f64,
    rejected_steps_per_tick: f64,
    waiting_npcs_per_tick: f64,
    digest: String,
}

#[derive(Serialize)]
struct PhaseTime {
    phase: &'static str,
    microseconds: f64,
}

/// The phases of a step, in order, as the table names them.
const PHASES: [(Phase, &str); 6] = [
    (Phase::Commands, "commands"),
    (Phase::Replans, "retries and replans"),
    (Phase::Movement, "guard and motion"),
    (Phase::Contact, "persistent contact"),
    (Phase::Behaviours, "behaviours"),
    (Phase::Digest, "snapshot and digest"),
];

/// Guard and motion in [`PHASES`].
const MOVEMENT: usize = 2;

const _: () = assert!(matches!(PHASES[MOVEMENT].0, Phase::Movement));

/// Measures and prints.
///
/// # Errors
/// Bad input: the map; too little room for so many. IO.
pub(crate) fn run(arguments: &TickArguments) -> anyhow::Result<ExitCode> {
    let (name, bytes) = source(arguments.map.as_deref())?;
    let baked = baked(&name, &bytes, arguments.copies)?;
    let grid = baked.grid();
    let map = match arguments.planner {
        PlannerKind::Grid => CrowdMap::of_grid(&baked),
        PlannerKind::Polygon if arguments.copies == 1 => CrowdMap {
            planner: PlannerKind::Polygon,
            file: "map.json",
            bytes,
        },
        PlannerKind::Polygon => return Err(bad_input("--copies: only the grid puts copies side by side")),
    };
    let (definition, _) = crowd(&name, map, &grid, arguments.characters, 0)?;
    let report = measure(&name, &grid, &definition, arguments);

    let mut output = Output::stdout();
    if arguments.json {
        output.json(&report)?;
    } else {
        print(&mut output, &report)?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// K × K copies of a map, or of the demo's, as a grid, and what it is called.
pub(super) fn map(path: Option<&Path>, copies: u32) -> anyhow::Result<(String, BakedGrid)> {
    let (name, bytes) = source(path)?;
    let baked = baked(&name, &bytes, copies)?;
    Ok((name, baked))
}

/// A map file, or the demo's, and what it is called.
fn source(path: Option<&Path>) -> anyhow::Result<(String, Vec<u8>)> {
    if let Some(path) = path {
        return Ok((input::name(path), input::read(path, input::MAP_BYTES_MAX)?));
    }
    let demo = LocationFiles::demo();
    let map = demo.maps.first();
    let (name, bytes) = map.ok_or_else(|| bad_input("the demo has no map"))?;
    Ok((format!("demo {name}"), bytes.clone()))
}

fn baked(name: &str, bytes: &[u8], copies: u32) -> anyhow::Result<BakedGrid> {
    let one = parse_grid(name, bytes)?.map().to_baked();
    side_by_side(name, &one, copies)
}

/// A map as the file of a location.
pub(super) struct CrowdMap {
    planner: PlannerKind,
    file: &'static str,
    bytes: Vec<u8>,
}

impl CrowdMap {
    pub(super) fn of_grid(baked: &BakedGrid) -> Self {
        Self {
            planner: PlannerKind::Grid,
            file: "map.txt",
            bytes: baked.to_text().into_bytes(),
        }
    }
}

/// K × K copies of a grid.
fn side_by_side(name: &str, one: &BakedGrid, copies: u32) -> anyhow::Result<BakedGrid> {
    let (width, depth) = (one.cells.width(), one.cells.depth());
    let cell_size = one.parameters.cell_size;
    let size = width.checked_mul(copies).zip(depth.checked_mul(copies));
    let fitting = size.filter(|(width, depth)| {
        let far = |min: Fixed, cells: u32| min.wide() + cell_size.wide() * i64::from(cells);
        Grid::fits(cell_size, one.min, *width, *depth)
            && far(one.min.x, *width).max(far(one.min.z, *depth)) <= WORLD_LIMIT.wide()
    });
    let Some((all_width, all_depth)) = fitting else {
        return Err(bad_input(format_args!(
            "{name}: {copies} × {copies} copies are too large for one map"
        )));
    };
    let mut cells = Cells::new(all_width, all_depth);
    for z in 0..all_depth {
        for x in 0..all_width {
            cells.set(x, z, one.cells.get(x % width, z % depth));
        }
    }
    Ok(BakedGrid {
        parameters: one.parameters,
        min: one.min,
        cells,
    })
}

/// A location with so many wandering NPCs on a map, in places on the grid of it, and so many more places where players appear.
pub(super) fn crowd(
    name: &str,
    map: CrowdMap,
    grid: &Grid,
    characters: u32,
    spawns: u32,
) -> anyhow::Result<(Definition, Bundle)> {
    let wanted = characters as usize + spawns as usize;
    let places = places(grid, wanted);
    if places.len() < wanted {
        return Err(bad_input(format_args!(
            "{name}: the largest component has room for {} characters, not for {wanted}",
            places.len()
        )));
    }
    let (places, spawns) = places.split_at(characters as usize);
    let spawns: Vec<_> = spawns
        .iter()
        .map(|place| json!({"x": place.x, "z": place.z}))
        .collect();
    let npcs: Vec<_> = places
        .iter()
        .enumerate()
        .map(|(index, place)| {
            let wander =
                json!({"x": place.x, "z": place.z, "radius": WANDER_RADIUS, "pauseTicks": PAUSE_TICKS});
            json!({
                "id": index + 1, "name": format!("NPC {}", index + 1),
                "x": place.x, "z": place.z, "behaviour": {"wander": wander},
            })
        })
        .collect();
    let location = json!({
        "name": "bench", "tickRate": TICK_RATE, "planner": map.planner.name(),
        "maps": {"map": map.file}, "startMap": "map", "spawns": spawns, "npcs": npcs, "bots": [],
    });
    let location = location.to_string().into_bytes();
    let files = vec![(map.file.to_owned(), map.bytes)];
    let definition = Definition::load(&Sources {
        location_file: "bench",
        location: &location,
        tick_rate: None,
        bots: None,
        files: &files,
    })?;
    Ok((definition, Bundle::new(location, None, None, files)?))
}

/// At most `count` centres of cells of the largest component (ties: the first), drawn by a fixed seed, none in contact.
fn places(grid: &Grid, count: usize) -> Vec<Point> {
    let mut members: Vec<Vec<Cell>> = vec![Vec::new(); grid.components() as usize];
    for z in 0..grid.depth() {
        for x in 0..grid.width() {
            if let Some(component) = grid.component_of(Cell { x, z }) {
                members[component as usize].push(Cell { x, z });
            }
        }
    }
    let mut cells = Vec::new();
    for member in members {
        if member.len() > cells.len() {
            cells = member;
        }
    }
    let mut random = Pcg32::of_character(SEED);
    for last in (1..cells.len()).rev() {
        cells.swap(last, random.below(last as u32 + 1) as usize);
    }
    // Cells so near to a taken one that their centres are in contact.
    let reach = CONTACT / grid.parameters().cell_size.wide();
    let mut taken = vec![false; grid.width() as usize * grid.depth() as usize];
    let mut places = Vec::with_capacity(count);
    for cell in cells {
        if places.len() == count {
            break;
        }
        if taken[grid.index_of(cell) as usize] {
            continue;
        }
        places.push(grid.centre_of(cell));
        for z in window(cell.z, reach, grid.depth()) {
            for x in window(cell.x, reach, grid.width()) {
                taken[grid.index_of(Cell { x, z }) as usize] = true;
            }
        }
    }
    places
}

fn window(middle: u32, reach: i64, end: u32) -> std::ops::Range<u32> {
    let reach = u32::try_from(reach).unwrap_or(u32::MAX);
    middle.saturating_sub(reach)..middle.saturating_add(reach).saturating_add(1).min(end)
}

fn measure(name: &str, grid: &Grid, definition: &Definition, arguments: &TickArguments) -> Report {
    let warm_up = WARM_UP_TICKS.min(arguments.ticks / 3);
    let counted = arguments.ticks - warm_up;
    let mut world = World::new(definition);
    let mut events = Vec::new();
    let mut phases = [Duration::ZERO; PHASES.len()];
    // One minute is far over any tick; three digits are enough for a percentile.
    let mut times =
        Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).expect("constant bounds that are allowed");
    let mut movement_nanoseconds =
        Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("constant bounds that are allowed");
    let mut total = Duration::ZERO;
    let (mut plans, mut expanded, mut rejected, mut waiting) = (0u64, 0u64, 0u64, 0u64);
    let mut progress = output::progress(arguments.ticks, "ticks");
    for tick in 0..arguments.ticks {
        events.clear();
        let mut spent = [Duration::ZERO; PHASES.len()];
        let started = Instant::now();
        let mut last = started;
        world.step_watched(&[], &mut events, &mut |phase| {
            let now = Instant::now();
            if let Some(index) = PHASES.iter().position(|(listed, _)| *listed == phase) {
                spent[index] += now - last;
            }
            last = now;
        });
        let elapsed = started.elapsed();
        progress.at(tick);
        if tick < warm_up {
            continue;
        }
        total += elapsed;
        times.saturating_record(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1));
        for (sum, spent) in phases.iter_mut().zip(spent) {
            *sum += spent;
        }
        let nanoseconds = u64::try_from(spent[MOVEMENT].as_nanos()).unwrap_or(u64::MAX);
        movement_nanoseconds.saturating_record(nanoseconds.max(1));
        let counters = world.counters();
        plans += u64::from(counters.plans);
        expanded += counters.expanded;
        rejected += u64::from(counters.rejected_steps);
        waiting += u64::from(counters.waiting_npcs);
    }
    drop(progress);

    let per_tick = |sum: u64| sum as f64 / counted as f64;
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6 / counted as f64;
    let people = f64::from(arguments.characters);
    let phase_times = PHASES.iter().zip(phases).map(|((_, phase), duration)| PhaseTime {
        phase,
        microseconds: microseconds(duration),
    });
    Report {
        map: name.to_owned(),
        planner: arguments.planner,
        copies: arguments.copies,
        cells: u64::from(grid.width()) * u64::from(grid.depth()),
        characters: arguments.characters,
        ticks: counted,
        mean_microseconds: microseconds(total),
        p50_microseconds: times.value_at_quantile(0.5),
        p99_microseconds: times.value_at_quantile(0.99),
        max_microseconds: times.max(),
        microseconds_per_character: microseconds(total) / people,
        movement_microseconds_per_character: microseconds(phases[MOVEMENT]) / people,
        movement_p50_microseconds_per_character: movement_nanoseconds.value_at_quantile(0.5) as f64
            / 1e3
            / people,
        phases: phase_times.collect(),
        plans_per_tick: per_tick(plans),
        expanded_per_plan: expanded as f64 / plans.max(1) as f64,
        rejected_steps_per_tick: per_tick(rejected),
        waiting_npcs_per_tick: per_tick(waiting),
        digest: format!("{:016x}", world.digest()),
    }
}

fn print(output: &mut Output, report: &Report) -> anyhow::Result<()> {
    let copies = report.copies;
    output.line(format_args!(
        "{}, planner {}, {copies} × {copies} copies, {} cells: {} NPCs, {} ticks counted, digest {}",
        report.map,
        report.planner.name(),
        report.cells,
        report.characters,
        report.ticks,
        report.digest
    ))?;
    let mut table = super::table(&["per tick", ""], 1);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("mean µs", format!("{:.1}", report.mean_microseconds));
    row("p50 µs", report.p50_microseconds.to_string());
    row("p99 µs", report.p99_microseconds.to_string());
    row("max µs", report.max_microseconds.to_string());
    for phase in &report.phases {
        row(
            &format!("  {} µs", phase.phase),
            format!("{:.1}", phase.microseconds),
        );
    }
    row(
        "µs per character",
        format!("{:.3}", report.microseconds_per_character),
    );
    row(
        "guard and motion, µs per character",
        format!("{:.3}", report.movement_microseconds_per_character),
    );
    row(
        "  at the median tick",
        format!("{:.3}", report.movement_p50_microseconds_per_character),
    );
    row("plans", format!("{:.2}", report.plans_per_tick));
    row("expanded per plan", format!("{:.1}", report.expanded_per_plan));
    row("rejected steps", format!("{:.2}", report.rejected_steps_per_tick));
    row("waiting NPCs", format!("{:.2}", report.waiting_npcs_per_tick));
    output.line(table)
}
