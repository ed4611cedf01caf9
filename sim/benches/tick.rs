//! What a tick costs, phase by phase: NPCs that wander (radius 12 m, pauses of 0 to 20 ticks), spread by a fixed seed over
//! the largest component of a map. `cargo bench -p sim --bench tick [-- CHARACTERS COPIES [FROM UNTIL]]`; without numbers, 1,000 on
//! Berlin_1_256 and 10,000 on 4 × 4 copies of it. Means over the ticks FROM to UNTIL (300 to 900).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nav::{Cell, EditedMap, MapFile};
use sim::{Definition, Pcg32, Phase, Sources, World};

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let ticks = |at: usize, default: usize| numbers.get(at).copied().unwrap_or(default);
    match numbers[..] {
        [characters, copies, ..] => measure(characters, copies, ticks(2, 300), ticks(3, 900)),
        _ => {
            measure(1_000, 1, 300, 900);
            measure(10_000, 4, 300, 900);
        }
    }
}

fn measure(characters: usize, copies: usize, from: usize, until: usize) {
    let mut world = World::new(&definition(characters, copies));
    let mut phases: BTreeMap<Phase, Vec<Duration>> = BTreeMap::new();
    let mut ticks = Vec::new();
    let (mut plans, mut rejected, mut waiting, mut steps) = (0u64, 0u64, 0u64, 0u64);
    for tick in 0..until {
        let start = Instant::now();
        let mut last = start;
        let mut events = Vec::new();
        world.step_watched(&[], &mut events, &mut |phase| {
            let now = Instant::now();
            if tick >= from {
                phases.entry(phase).or_default().push(now - last);
            }
            last = now;
        });
        if tick < from {
            continue;
        }
        ticks.push(last - start);
        let counters = world.counters();
        plans += u64::from(counters.plans);
        rejected += u64::from(counters.rejected_steps);
        waiting += u64::from(counters.waiting_npcs);
        let moved = world
            .characters()
            .iter()
            .filter(|character| character.is_moving());
        steps += moved.count() as u64 + u64::from(counters.rejected_steps);
    }
    let measured = ticks.len() as u64;
    ticks.sort_unstable();
    let total: Duration = ticks.iter().sum();
    println!(
        "{characters} characters, {copies} × {copies} copies: {:?} a tick, median {:?}, p99 {:?}, worst {:?}",
        total / measured as u32,
        ticks[ticks.len() / 2],
        ticks[ticks.len() * 99 / 100],
        ticks[ticks.len() - 1],
    );
    println!(
        "  a tick: {} plans, {} steps tried, {} rejected, {} NPCs waiting; snapshot {} bytes",
        plans / measured,
        steps / measured,
        rejected / measured,
        waiting / measured,
        world.snapshot_bytes().len(),
    );
    // Medians, so that what else the machine does is left out.
    for (phase, mut durations) in phases {
        durations.sort_unstable();
        let median = durations[durations.len() / 2];
        println!(
            "  {phase:?}: {median:?} ({:?} a character)",
            median / characters as u32
        );
    }
    println!("  last digest {:016x}", world.digest());
}

fn definition(characters: usize, copies: usize) -> Definition {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/maps/Berlin_1_256.map");
    let map = copied(&fs::read_to_string(path).expect("the map is there"), copies);
    let mut location = String::from(r#"{"name": "bench", "maps": {"map": "bench.map"}, "npcs": ["#);
    for (index, (x, z)) in places(&map, characters).iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(
            location,
            r#"{comma}{{"id": {}, "name": "NPC {index}", "x": {x}.5, "z": {z}.5, "behaviour": {{"wander": {{"x": {x}.5, "z": {z}.5, "radius": 12, "pauseTicks": [0, 20]}}}}}}"#,
            index + 1,
        )
        .expect("a String takes everything");
    }
    location.push_str("]}");
    Definition::load(&Sources {
        location_file: "location.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots: None,
        files: &[("bench.map".to_owned(), map.into_bytes())],
    })
    .expect("a good location")
}

/// So many copies of a `.map` side by side, and as many rows of these.
fn copied(map: &str, copies: usize) -> String {
    let rows: Vec<&str> = map.lines().skip(4).collect();
    let (width, depth) = (rows[0].len() * copies, rows.len() * copies);
    let mut text = format!("type octile\nheight {depth}\nwidth {width}\nmap\n");
    for _ in 0..copies {
        for row in &rows {
            text.push_str(&row.repeat(copies));
            text.push('\n');
        }
    }
    text
}

/// Cells of the largest component, each once, drawn with a fixed seed.
fn places(map: &str, count: usize) -> Vec<(u32, u32)> {
    let map = MapFile::parse("bench.map", map.as_bytes()).expect("a good map");
    let grid = EditedMap::new(&map).grid();
    let mut components: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for z in 0..grid.depth() {
        for x in 0..grid.width() {
            if let Some(component) = grid.component_of(Cell { x, z }) {
                components.entry(component).or_default().push((x, z));
            }
        }
    }
    let mut cells = components
        .into_values()
        .max_by_key(Vec::len)
        .expect("a component");
    let mut rng = Pcg32::of_character(1);
    for last in 0..count {
        let other = last + rng.below((cells.len() - last) as u32) as usize;
        cells.swap(last, other);
    }
    cells.truncate(count);
    cells
}
