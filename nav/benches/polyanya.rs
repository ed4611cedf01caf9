//! The polygon planner beside the `polyanya` crate on the same maps and queries (tests/bench-polygon), in one run:
//!
//! ```text
//! polyanya MAP build OURS_us PEER_us RATIO
//! polyanya MAP query OURS_us PEER_us RATIO
//! ```
//!
//! Build is from polygons to the first query; query is the mean over all queries of the file, the fastest of several rounds
//! taken in turn. Both find the shortest way, so every length is compared.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use glam::Vec2;
use nav::{Document, Fixed, Goal, MapFile, Planner, Point, PolygonPlanner, Query, Route};
use polyanya::{Mesh, Triangulation};

const MAPS: [&str; 3] = ["star-200", "holes-100", "holes-2000"];
const ROUNDS: usize = 15;

fn main() {
    // A map's name as an argument: that map alone.
    let only = std::env::args()
        .skip(1)
        .find(|argument| MAPS.contains(&argument.as_str()));
    for name in MAPS
        .into_iter()
        .filter(|name| only.as_deref().is_none_or(|only| only == *name))
    {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bench-polygon");
        let read =
            |ending: &str| fs::read(folder.join(format!("{name}.{ending}"))).expect("a benchmark's file");
        let Ok(MapFile::Polygons(map)) = MapFile::parse("map.json", &read("json")) else {
            panic!("{name} is no map of polygons");
        };
        let queries = queries(&read("queries.jsonl"));

        let mut ours = Duration::MAX;
        let mut peers = Duration::MAX;
        let (mut planner, mut mesh) = (None, None);
        for _ in 0..3 {
            let start = Instant::now();
            let built =
                PolygonPlanner::new(map.areas(), map.obstacles(), &[Fixed::ZERO]).expect("a small map");
            ours = ours.min(start.elapsed());
            planner = Some(built);
            let start = Instant::now();
            let built = triangulated(&map);
            peers = peers.min(start.elapsed());
            mesh = Some(built);
        }
        let (mut planner, mesh) = (planner.expect("built"), mesh.expect("built"));
        let (corners, links) = planner.size();
        print(name, "build", ours, peers, 1);
        println!("polyanya {name} size {corners} corners {links} links");

        let mut route = Route::default();
        compare(name, &mut planner, &mesh, &queries, &mut route);
        let mut ours = Duration::MAX;
        let mut peers = Duration::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for &(from, to) in &queries {
                ask(&mut planner, from, to, &mut route);
            }
            ours = ours.min(start.elapsed());
            let start = Instant::now();
            for &(from, to) in &queries {
                std::hint::black_box(mesh.path(vector(from), vector(to)));
            }
            peers = peers.min(start.elapsed());
        }
        print(name, "query", ours, peers, queries.len() as u32);
    }
}

fn print(name: &str, measure: &str, ours: Duration, peers: Duration, count: u32) {
    let micros = |duration: Duration| (duration / count).as_nanos() as f64 / 1000.0;
    let (ours, peers) = (micros(ours), micros(peers));
    println!(
        "polyanya {name} {measure} {ours:.2} {peers:.2} {:.3}",
        ours / peers
    );
}

/// Every route has the peer's length; 32-bit floats leave it 1 part in 10,000.
fn compare(
    name: &str,
    planner: &mut PolygonPlanner,
    mesh: &Mesh,
    queries: &[(Point, Point)],
    route: &mut Route,
) {
    let mut missing = 0;
    let mut stats = (0, 0);
    for &(from, to) in queries {
        ask(planner, from, to, route);
        assert!(route.complete, "{name}: no way from {from:?} to {to:?}");
        stats.0 += u64::from(route.stats.expanded);
        stats.1 += u64::from(route.stats.generated);
        let Some(path) = mesh.path(vector(from), vector(to)) else {
            missing += 1;
            continue;
        };
        let ours = route.length as f64 / 65536.0;
        let peers = f64::from(path.length);
        assert!(
            (ours - peers).abs() <= 1e-4 * peers + 1e-3,
            "{name}: from {from:?} to {to:?}: {ours} and {peers}"
        );
    }
    let count = queries.len();
    println!("polyanya {name} lengths equal, {missing} of {count} not found by the peer");
    let mean = |sum: u64| sum as f64 / count as f64;
    println!(
        "polyanya {name} expanded {:.1} generated {:.1}",
        mean(stats.0),
        mean(stats.1)
    );
}

fn ask(planner: &mut PolygonPlanner, from: Point, to: Point, route: &mut Route) {
    let query = Query {
        from,
        to,
        goal: Goal::Exact,
        agent_radius: Fixed::ZERO,
        also: &[],
        except: &[],
        expanded_max: None,
        want_cells: false,
    };
    planner.plan(&query, route);
}

fn triangulated(map: &nav::PolygonMap) -> Mesh {
    let outline = |polygon: &nav::geometry::Polygon| -> Vec<Vec2> {
        polygon.vertices().iter().map(|&point| vector(point)).collect()
    };
    let mut triangulation = Triangulation::from_outer_edges(&outline(&map.areas()[0].polygon));
    for obstacle in map.obstacles() {
        triangulation.add_obstacle(outline(&obstacle.polygon));
    }
    let mut mesh = triangulation.as_navmesh();
    mesh.bake();
    mesh
}

fn vector(point: Point) -> Vec2 {
    let metres = |value: Fixed| value.raw() as f32 / 65536.0;
    Vec2::new(metres(point.x), metres(point.z))
}

fn queries(lines: &[u8]) -> Vec<(Point, Point)> {
    let lines = std::str::from_utf8(lines).expect("text").lines();
    lines
        .map(|line| {
            let document = Document::parse("query", line.as_bytes(), 1 << 10).expect("JSON");
            let mut object = document.root().object().expect("an object");
            let mut point = |key| {
                object
                    .required(key)
                    .and_then(|node| node.pair())
                    .expect("a point")
            };
            (point("from"), point("to"))
        })
        .collect()
}
