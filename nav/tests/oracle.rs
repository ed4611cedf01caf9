//! The fast search against the spec taken word for word: thousands of random grids, crowds and queries.

#[path = "support/literal.rs"]
mod literal;

use nav::{Cell, Circle, Fixed, Goal, Grid, GridParameters, GridSearch, Point, Query, Route};

/// SplitMix64: a case is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn fixed(&mut self, from: i64, to: i64) -> Fixed {
        Fixed::from_raw((from + self.below((to - from) as u64) as i64) as i32)
    }
}

fn random_grid(random: &mut Random) -> Grid {
    let side = |random: &mut Random| match random.below(8) {
        0 => 1 + random.below(3) as u32,
        1 => 60 + random.below(10) as u32,
        2 => 120 + random.below(20) as u32,
        _ => 4 + random.below(30) as u32,
    };
    let (width, depth) = (side(random), side(random));
    let mut walkable: Vec<bool> = match random.below(3) {
        // Scattered blocks, dense or sparse.
        0 => {
            let blocked = random.below(50);
            (0..width * depth).map(|_| random.below(100) >= blocked).collect()
        }
        // Rooms with doors.
        1 => {
            let room = 3 + random.below(7) as u32;
            (0..width * depth)
                .map(|index| {
                    let (x, z) = (index % width, index / width);
                    let wall = x % room == 0 || z % room == 0;
                    !wall || random.one_in(6)
                })
                .collect()
        }
        _ => vec![true; (width * depth) as usize],
    };
    // A few solid boxes.
    for _ in 0..random.below(4) {
        let (x, z) = (
            random.below(width.into()) as u32,
            random.below(depth.into()) as u32,
        );
        let (to_x, to_z) = (x + random.below(8) as u32, z + random.below(8) as u32);
        for z in z..to_z.min(depth) {
            for x in x..to_x.min(width) {
                walkable[(z * width + x) as usize] = false;
            }
        }
    }
    let cell_size = [26_214, 65_536, 20_000, 16_385][random.below(4) as usize];
    let parameters = GridParameters {
        cell_size: Fixed::from_raw(cell_size),
        agent_radius: Fixed::from_raw([29_491, 0, 13_107][random.below(3) as usize]),
        object_padding: Fixed::ZERO,
        boundary_padding: Fixed::ZERO,
        floor_y: Fixed::ZERO,
    };
    let min = Point::new(random.fixed(-900_000, 900_000), random.fixed(-900_000, 900_000));
    Grid::from_cells(parameters, min, width, depth, &walkable)
}

/// A position mostly in the grid, sometimes exactly on a border between cells, sometimes outside.
fn random_point(random: &mut Random, grid: &Grid) -> Point {
    let cell_size = i64::from(grid.parameters().cell_size.raw());
    let along = |random: &mut Random, min: Fixed, cells: u32| {
        let extent = i64::from(cells) * cell_size;
        let offset = match random.below(12) {
            0 => random.below(u64::from(cells) + 1) as i64 * cell_size,
            1 => random.below(4 * extent as u64) as i64 - 2 * extent,
            _ => random.below(extent as u64) as i64,
        };
        Fixed::from_raw((i64::from(min.raw()) + offset) as i32)
    };
    Point::new(
        along(random, grid.min().x, grid.width()),
        along(random, grid.min().z, grid.depth()),
    )
}

fn random_circles(random: &mut Random, grid: &Grid, most: u64) -> Vec<Circle> {
    let count = random.below(most + 1);
    (0..count)
        .map(|_| Circle {
            centre: random_point(random, grid),
            radius: match random.below(10) {
                0 => Fixed::ZERO,
                1 => random.fixed(0, 200_000),
                2 => random.fixed(-90_000, 10_000),
                _ => Fixed::from_raw(29_491),
            },
        })
        .collect()
}

/// The circles around a place that stand so close that nobody gets through.
fn ring(random: &mut Random, grid: &Grid, standing: &mut Vec<Circle>) {
    let centre = random_point(random, grid);
    let reach = 4 * i64::from(grid.parameters().cell_size.raw());
    for (dx, dz) in [
        (-1, -1),
        (-1, 0),
        (-1, 1),
        (0, -1),
        (0, 1),
        (1, -1),
        (1, 0),
        (1, 1),
    ] {
        standing.push(Circle {
            centre: Point::from_raw(
                (i64::from(centre.x.raw()) + dx * reach) as i32,
                (i64::from(centre.z.raw()) + dz * reach) as i32,
            ),
            radius: Fixed::from_raw(60_000),
        });
    }
}

fn check(seed: u64) {
    let mut random = Random(seed);
    let grid = random_grid(&mut random);
    let mut search = GridSearch::new(grid.clone());
    let mut standing = random_circles(&mut random, &grid, 6);
    if random.one_in(2) {
        ring(&mut random, &grid, &mut standing);
    }
    for circle in &standing {
        search.block(*circle);
    }
    let mut route = Route::default();
    for _ in 0..6 {
        if random.one_in(3) && !standing.is_empty() {
            let gone = standing.swap_remove(random.below(standing.len() as u64) as usize);
            search.unblock(gone);
        }
        if random.one_in(3) {
            let again = standing.first().copied();
            let new = again.filter(|_| random.one_in(2));
            let new = new.or_else(|| random_circles(&mut random, &grid, 1).pop());
            if let Some(circle) = new {
                standing.push(circle);
                search.block(circle);
            }
        }
        let (from, to) = (random_point(&mut random, &grid), random_point(&mut random, &grid));
        let also = random_circles(&mut random, &grid, 3);
        let excepted = (random.below(3) as usize).min(standing.len());
        let query = Query {
            from,
            to,
            goal: if random.one_in(3) {
                Goal::Exact
            } else {
                Goal::Nearest
            },
            agent_radius: Fixed::ZERO,
            also: &also,
            except: &standing[..excepted],
            expanded_max: random.one_in(4).then(|| random.below(30) as u32),
            want_cells: true,
        };
        let expected = literal::plan(&grid, &standing[excepted..], &query);
        search.plan(&query, &mut route);
        let answer = |route: &Route| {
            (
                (
                    route.found,
                    route.complete,
                    route.search_ran_out,
                    route.budget_ran_out,
                ),
                route.waypoints.clone(),
                route.cells.clone(),
                route.cost,
                route.stats.expanded,
            )
        };
        assert_eq!(
            answer(&route),
            answer(&expected),
            "seed {seed}: {query:?} on {grid:?}"
        );
        if query.expanded_max.is_none() {
            // Sight may stand in for the search: the same route, without cells.
            search.plan(
                &Query {
                    want_cells: false,
                    ..query
                },
                &mut route,
            );
            assert_eq!(
                (
                    route.found,
                    route.complete,
                    route.search_ran_out,
                    &route.waypoints
                ),
                (
                    expected.found,
                    expected.complete,
                    expected.search_ran_out,
                    &expected.waypoints
                ),
                "seed {seed}, waypoints only: {query:?} on {grid:?}"
            );
        }
    }
}

#[test]
fn the_search_answers_as_the_spec_says() {
    for seed in 0..3_000 {
        check(seed);
    }
}

/// Line of sight is the same from both ends, although the walk of the spec has a direction.
#[test]
fn sight_is_mutual() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let grid = random_grid(&mut random);
        for _ in 0..50 {
            let cell = |random: &mut Random| Cell {
                x: random.below(grid.width().into()) as u32,
                z: random.below(grid.depth().into()) as u32,
            };
            let (a, b) = (cell(&mut random), cell(&mut random));
            if grid.is_walkable(a) && grid.is_walkable(b) {
                assert_eq!(
                    grid.line_of_sight(a, b),
                    grid.line_of_sight(b, a),
                    "seed {seed}: {a:?} {b:?}"
                );
            }
        }
    }
}
