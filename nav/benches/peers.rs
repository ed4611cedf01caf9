//! Ours beside the `pathfinding` crate's A* on the same graph, measured in turns: `cargo bench -p nav --bench peers`.
//!
//! Prints `peers MAP MEASURE ours_us peer_us ratio` (ratio = ours / peer), microseconds per query. The peer's time is always
//! that of the connected queries on the map with its 32 circles. Ours: `search` the same, cells and cost produced; `smooth` a
//! whole query past the 32 standing circles: waypoints, cells and cost; `stamp` the same where each query brings the 32
//! circles itself; `unreachable` as `smooth`, for the ends that cannot be reached.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use nav::{Cell, Circle, Fixed, Goal, GridSearch, Point, Query, Route, text};
use pathfinding::prelude::astar;
use serde_json::Value;

const MAPS: [&str; 3] = ["random20", "rooms", "open"];
const ROUNDS: usize = 12;
/// Queries timed together.
const CHUNK: usize = 50;

fn main() {
    for map in MAPS {
        measure(map);
    }
}

fn measure(map: &str) {
    let grid = text::parse(map, read(&format!("{map}.txt")).as_bytes())
        .expect("a grid")
        .grid();
    let circles = read_circles(&read(&format!("{map}.obstacles.json")));
    let connected = read_queries(&read(&format!("{map}.conn.jsonl")));
    let mixed = read_queries(&read(&format!("{map}.mixed.jsonl")));

    let mut bare = GridSearch::new(grid.clone());
    let mut crowded = GridSearch::new(grid.clone());
    for circle in &circles {
        crowded.block(*circle);
    }
    let peer = Peer::new(&crowded);
    let mut route = Route::default();
    let unreachable: Vec<(Point, Point)> = mixed
        .into_iter()
        .filter(|(from, to)| {
            crowded.plan(&query(*from, *to, &[]), &mut route);
            !route.complete
        })
        .collect();
    let cells: Vec<(Cell, Cell)> = connected
        .iter()
        .map(|(from, to)| (grid.nearest_cell(*from), grid.nearest_cell(*to)))
        .collect();
    let mut chain = Vec::new();
    for (from, to) in &cells {
        let ours = crowded.find_chain(*from, *to, &mut chain);
        assert_eq!(ours, peer.cost(*from, *to), "{map}: {from:?} to {to:?}");
    }

    // Chunk by chunk in turns, and of each chunk the fastest round: other work on the machine then hits both alike or drops out.
    let mut fastest: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for chunk in 0..cells.len().div_ceil(CHUNK) {
            let mut time = |measure, run: &mut dyn FnMut()| {
                // Once untimed: whoever follows the peer would else pay for the caches it has emptied.
                run();
                let begin = Instant::now();
                run();
                let micros = begin.elapsed().as_secs_f64() * 1e6;
                let chunks = fastest.entry(measure).or_default();
                if chunks.len() <= chunk {
                    chunks.push(f64::INFINITY);
                }
                chunks[chunk] = chunks[chunk].min(micros);
            };
            time("peer", &mut || {
                for (from, to) in chunk_of(&cells, chunk) {
                    black_box(peer.cost(*from, *to));
                }
            });
            time("search", &mut || {
                for (from, to) in chunk_of(&cells, chunk) {
                    black_box(crowded.find_chain(*from, *to, &mut chain));
                }
            });
            time("smooth", &mut || {
                for (from, to) in chunk_of(&connected, chunk) {
                    crowded.plan(&query(*from, *to, &[]), &mut route);
                    black_box(&route);
                }
            });
            time("stamp", &mut || {
                for (from, to) in chunk_of(&connected, chunk) {
                    bare.plan(&query(*from, *to, &circles), &mut route);
                    black_box(&route);
                }
            });
            time("unreachable", &mut || {
                for (from, to) in chunk_of(&unreachable, chunk) {
                    crowded.plan(&query(*from, *to, &[]), &mut route);
                    black_box(&route);
                }
            });
        }
    }
    let each = |measure: &str, queries: usize| fastest[measure].iter().sum::<f64>() / queries as f64;
    let peer_time = each("peer", cells.len());
    for (measure, queries) in [
        ("search", cells.len()),
        ("smooth", connected.len()),
        ("stamp", connected.len()),
        ("unreachable", unreachable.len()),
    ] {
        let ours = each(measure, queries);
        println!(
            "peers {map} {measure} {ours:.2} {peer_time:.2} {:.4}",
            ours / peer_time
        );
    }
}

/// The queries of one chunk; none beyond the last.
fn chunk_of<T>(queries: &[T], chunk: usize) -> &[T] {
    let from = (chunk * CHUNK).min(queries.len());
    &queries[from..(from + CHUNK).min(queries.len())]
}

fn query<'a>(from: Point, to: Point, also: &'a [Circle]) -> Query<'a> {
    Query {
        from,
        to,
        goal: Goal::Nearest,
        agent_radius: Fixed::ZERO,
        also,
        except: &[],
        expanded_max: None,
        want_cells: true,
    }
}

/// The peer's side: the usual A* on a grid, a free flag per cell, successors without a list of their own.
struct Peer {
    width: i32,
    depth: i32,
    free: Vec<bool>,
}

const STEPS: [(i32, i32, u32); 8] = [
    (1, 0, 10),
    (-1, 0, 10),
    (0, 1, 10),
    (0, -1, 10),
    (1, 1, 14),
    (1, -1, 14),
    (-1, 1, 14),
    (-1, -1, 14),
];

impl Peer {
    fn new(search: &GridSearch) -> Self {
        let (width, depth) = (search.grid().width(), search.grid().depth());
        let cells = (0..width * depth).map(|index| search.grid().cell_at(index));
        Self {
            width: width as i32,
            depth: depth as i32,
            free: cells.map(|cell| search.is_free(cell)).collect(),
        }
    }

    fn is_free(&self, x: i32, z: i32) -> bool {
        (0..self.width).contains(&x)
            && (0..self.depth).contains(&z)
            && self.free[(z * self.width + x) as usize]
    }

    fn cost(&self, from: Cell, to: Cell) -> Option<u32> {
        let start = (from.x as i32, from.z as i32);
        let goal = (to.x as i32, to.z as i32);
        let legal = |x: i32, z: i32, dx: i32, dz: i32| {
            self.is_free(x + dx, z + dz)
                && (dx == 0 || dz == 0 || self.is_free(x + dx, z) && self.is_free(x, z + dz))
        };
        let successors = |&(x, z): &(i32, i32)| {
            let steps = STEPS.iter().filter(move |(dx, dz, _)| legal(x, z, *dx, *dz));
            steps.map(move |(dx, dz, cost)| ((x + dx, z + dz), *cost))
        };
        let heuristic = |&(x, z): &(i32, i32)| {
            let (dx, dz) = (x.abs_diff(goal.0), z.abs_diff(goal.1));
            10 * dx.max(dz) + 4 * dx.min(dz)
        };
        let (path, cost) = astar(&start, successors, heuristic, |cell| *cell == goal)?;
        black_box(path);
        Some(cost)
    }
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/bench80")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fixed(value: &Value) -> Fixed {
    Fixed::from_f64(value.as_f64().expect("a number")).expect("within the world")
}

fn read_queries(text: &str) -> Vec<(Point, Point)> {
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let point = |key: &str| Point::new(fixed(&value[key][0]), fixed(&value[key][1]));
        (point("from"), point("to"))
    };
    text.lines().map(read).collect()
}

fn read_circles(text: &str) -> Vec<Circle> {
    let value: Value = serde_json::from_str(text).expect("JSON");
    let read = |circle: &Value| Circle {
        centre: Point::new(fixed(&circle["x"]), fixed(&circle["z"])),
        radius: fixed(&circle["radius"]),
    };
    value.as_array().expect("an array").iter().map(read).collect()
}
