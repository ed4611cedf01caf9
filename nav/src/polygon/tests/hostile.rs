//! Files that mean harm: random outlines as JSON, most of them broken. What comes of it is a precise error or a planner whose
//! every route stays in the free space; never a panic.

use super::random::Random;
use crate::polygon::PolygonPlanner;
use crate::{Circle, Fixed, Goal, MapFile, Planner, PlannerKind, Point, Query, Route};

const FILES: u64 = 3_000;

/// Numbers that polygons go wrong with, beside those of a lattice.
const NUMBERS: [&str; 14] = [
    "16000",
    "-16000",
    "16000.1",
    "1e9",
    "-1e400",
    "0.00001",
    "-0.0000076",
    "1e-7",
    "null",
    "\"1\"",
    "true",
    "[]",
    "15999.99999",
    "1",
];

/// A coordinate: of a small lattice, with a raw or two beside it, or anything.
fn number(random: &mut Random, wildness: u32) -> String {
    match random.below(wildness) {
        0 => NUMBERS[random.below(NUMBERS.len() as u32) as usize].to_owned(),
        1 => Fixed::from_raw((random.between(-4, 4) << 16) + random.between(-2, 2)).to_string(),
        2 => Fixed::from_raw(random.between(-(1 << 18), 1 << 18)).to_string(),
        _ => random.between(-4, 4).to_string(),
    }
}

fn outline(random: &mut Random, wildness: u32) -> String {
    if random.below(3) > 0 {
        let [a, b, c, d] = [(); 4].map(|()| number(random, wildness));
        return format!("[[{a}, {b}], [{c}, {b}], [{c}, {d}], [{a}, {d}]]");
    }
    let least = if random.below(20) == 0 { 0 } else { 3 };
    let count = random.between(least, 6);
    let corner =
        |random: &mut Random| format!("[{}, {}]", number(random, wildness), number(random, wildness));
    let mut corners: Vec<String> = (0..count).map(|_| corner(random)).collect();
    if count > 0 && random.below(8) == 0 {
        let again = corners[random.below(count as u32) as usize].clone();
        corners.push(again);
    }
    format!("[{}]", corners.join(", "))
}

fn file(random: &mut Random) -> String {
    // Most numbers good, or few files would pass.
    let wildness = [6, 40, 400][random.below(3) as usize];
    let areas: Vec<String> = (0..random.between(1, 3))
        .map(|index| {
            let outline = outline(random, wildness);
            let available = ["", r#", "available": false"#][usize::from(random.below(6) == 0)];
            format!(r#"{{"name": "a{index}", "polygon": {outline}{available}}}"#)
        })
        .collect();
    let obstacles: Vec<String> = (0..random.between(0, 4))
        .map(|index| {
            format!(
                r#"{{"name": "o{index}", "polygon": {}}}"#,
                outline(random, wildness)
            )
        })
        .collect();
    let inset = match random.below(20) {
        0 => ["[]", "[1, 1]", "-1", "100.1"][random.below(4) as usize],
        _ => ["0", "0.3", "100", "[0, 1]", "[0.00001, 7]"][random.below(5) as usize],
    };
    let mut text = format!(
        r#"{{"planner": "polygon", "inset": {inset}, "areas": [{}], "obstacles": [{}]}}"#,
        areas.join(", "),
        obstacles.join(", ")
    );
    if random.below(10) == 0 {
        let at = random.below(text.len() as u32) as usize;
        let with = ["", "[", "}", ",", "9", "\"", "-"][random.below(7) as usize];
        text.replace_range(at..=at, with);
    }
    text
}

#[test]
fn no_file_makes_it_panic_or_walk_through_a_wall() {
    let (mut read, mut found) = (0, 0);
    for seed in 0..FILES {
        let mut random = Random(seed ^ 0xF11E);
        let text = file(&mut random);
        let map = match MapFile::parse_for(Some(PlannerKind::Polygon), "map.json", text.as_bytes()) {
            Ok(MapFile::Polygons(map)) => map,
            Ok(MapFile::Baked(_)) => panic!("seed {seed}: read as a grid: {text}"),
            Err(problems) => {
                assert!(!problems.is_empty(), "seed {seed}: {text}");
                for problem in problems.as_slice() {
                    let is_precise =
                        problem.file == "map.json" && !problem.place.is_empty() && !problem.rule.is_empty();
                    assert!(is_precise, "seed {seed}: {problem}: {text}");
                }
                continue;
            }
        };
        read += 1;
        let mut planner = PolygonPlanner::of_map(&map);
        for _ in 0..6 {
            found += u32::from(ask(&mut planner, &mut random, &format!("seed {seed}: {text}")));
        }
    }
    assert!(read > FILES / 10 && found > 1_000, "{read} maps, {found} routes");
}

/// A query from anywhere to anywhere, perhaps with circles; whether it found a route, which stays in the free space.
fn ask(planner: &mut PolygonPlanner, random: &mut Random, context: &str) -> bool {
    let mut point = || {
        let mut coordinate = || match random.below(8) {
            0 => random.between(-(16_000 << 16), 16_000 << 16),
            1 => random.between(-5 << 16, 5 << 16),
            _ => random.between(-5, 5) << 16,
        };
        Point::from_raw(coordinate(), coordinate())
    };
    let (from, to) = (point(), point());
    let circles = [point(), point()].map(|centre| Circle {
        centre,
        radius: Fixed::from_raw(1 << 15),
    });
    let goal = [Goal::Exact, Goal::Nearest][random.below(2) as usize];
    let query = Query {
        from,
        to,
        goal,
        agent_radius: Fixed::from_raw(random.between(0, 1 << 17)),
        also: &circles[random.below(3) as usize..],
        except: &[],
        expanded_max: None,
        want_cells: false,
    };
    let mut route = Route::default();
    planner.plan(&query, &mut route);
    let mut at = from;
    for (index, &waypoint) in route.waypoints.iter().enumerate() {
        // A start that was moved is the first waypoint.
        let is_start = index == 0 && !planner.line_of_sight(from, waypoint);
        assert!(
            planner.is_free_ground(waypoint),
            "{context}: {query:?}: {route:?}"
        );
        assert!(
            is_start || planner.line_of_sight(at, waypoint),
            "{context}: {query:?}: {route:?}"
        );
        at = waypoint;
    }
    route.found
}
