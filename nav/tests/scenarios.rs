//! Maps that nobody here made: every scenario is solved, no corner is cut, and the length is the published one.
//!
//! The published lengths are the least under diagonals of √2; ours are under 1.4, for which seven cardinal steps are worth
//! five diagonal ones. Where that makes a route longer by √2 its cost is held against an independent search instead.

use std::fs;
use std::path::Path;

use nav::{Cell, Grid, GridSearch, movingai};
use pathfinding::prelude::dijkstra;

/// With how many scenarios are longer by √2.
const MAPS: [(&str, usize); 5] = [
    ("room-64-64-8", 1),
    ("maze-128-128-2", 0),
    ("random-64-64-20", 0),
    ("warehouse-10-20-10-2-1", 0),
    ("Berlin_1_256", 4),
];

/// Lengths are published with √2 for a diagonal; 1 / 100 of a cell is the tolerance.
const TOLERANCE_MILLIONTHS: u64 = 10_000;

/// The number of scenarios longer by √2.
fn check(map: &str) -> usize {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/maps")
            .join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let grid = movingai::parse_map(map, &read(&format!("{map}.map")))
        .expect("a map")
        .grid();
    let scenarios = movingai::parse_scenarios(map, &read(&format!("{map}.map.scen"))).expect("scenarios");
    assert!(!scenarios.is_empty());
    let mut search = GridSearch::new(grid.clone());
    let mut cells = Vec::new();
    let mut longer = 0;
    for scenario in scenarios {
        let cost = search.find_chain(scenario.start, scenario.goal, &mut cells);
        let cost = cost.unwrap_or_else(|| panic!("{map}: {scenario:?} is not solved"));
        let (cardinal, diagonal) = steps(&grid, &cells);
        assert_eq!(cost, 10 * cardinal + 14 * diagonal, "{map}: {scenario:?}");
        // √2 to twelve digits.
        let length = u64::from(cardinal) * 1_000_000 + u64::from(diagonal) * 1_414_213_562_373 / 1_000_000;
        if length.abs_diff(scenario.optimal_length_millionths) > TOLERANCE_MILLIONTHS {
            assert!(
                length > scenario.optimal_length_millionths,
                "{map}: {scenario:?} has length {length}"
            );
            assert_eq!(
                Some(cost),
                least_cost(&grid, scenario.start, scenario.goal),
                "{map}: {scenario:?}"
            );
            longer += 1;
        }
    }
    longer
}

/// Cardinal and diagonal steps of a chain, each a legal move of spec 2.4.
fn steps(grid: &Grid, cells: &[(u32, u32)]) -> (u32, u32) {
    let (mut cardinal, mut diagonal) = (0, 0);
    let walkable = |x: u32, z: u32| grid.is_walkable(Cell { x, z });
    for pair in cells.windows(2) {
        let ((x, z), (next_x, next_z)) = (pair[0], pair[1]);
        assert!(
            walkable(next_x, next_z) && walkable(next_x, z) && walkable(x, next_z),
            "{pair:?}"
        );
        match (x.abs_diff(next_x), z.abs_diff(next_z)) {
            (1, 1) => diagonal += 1,
            (1, 0) | (0, 1) => cardinal += 1,
            _ => panic!("{pair:?} is no step"),
        }
    }
    (cardinal, diagonal)
}

/// By somebody else's search.
fn least_cost(grid: &Grid, start: Cell, goal: Cell) -> Option<u32> {
    let walkable = |x: u32, z: u32| grid.is_walkable(Cell { x, z });
    let successors = |&(x, z): &(u32, u32)| {
        let mut next = Vec::new();
        for (dx, dz) in [
            (1, 0),
            (-1, 0),
            (0, 1),
            (0, -1),
            (1, 1),
            (1, -1),
            (-1, 1),
            (-1, -1),
        ] {
            // Beyond the lower sides it wraps to where nothing is walkable.
            let (to_x, to_z) = (x.wrapping_add_signed(dx), z.wrapping_add_signed(dz));
            if walkable(to_x, to_z) && walkable(to_x, z) && walkable(x, to_z) {
                next.push(((to_x, to_z), if dx != 0 && dz != 0 { 14 } else { 10 }));
            }
        }
        next
    };
    let found = dijkstra(&(start.x, start.z), successors, |cell| *cell == (goal.x, goal.z));
    found.map(|(_, cost)| cost)
}

#[test]
fn every_scenario_has_its_published_length() {
    assert_eq!(MAPS.map(|(map, _)| (map, check(map))), MAPS);
}
