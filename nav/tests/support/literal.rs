//! Spec 2.4 to 2.6 word for word: slow, and plain enough to be compared with the text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nav::{Cell, Circle, Fixed, Goal, Grid, Point, Query, Route, SearchStats};

/// Rings that a start or an exact end may be snapped over, metres.
const SNAP_REACH: Fixed = Fixed::from_int(8);

const DIRECTIONS: [(i32, i32); 8] = [
    (1, 0),
    (-1, 0),
    (0, 1),
    (0, -1),
    (1, 1),
    (1, -1),
    (-1, 1),
    (-1, -1),
];

/// Answers `query` on `grid` with `standing` circles in the way, beside `query.also`; `query.except` is not looked at.
pub(crate) fn plan(grid: &Grid, standing: &[Circle], query: &Query<'_>) -> Route {
    let mut free = Vec::new();
    for z in 0..grid.depth() {
        for x in 0..grid.width() {
            let cell = Cell { x, z };
            let stamped = |circle: &Circle| stamps(grid, circle, cell);
            free.push(
                grid.is_walkable(cell) && !standing.iter().any(stamped) && !query.also.iter().any(stamped),
            );
        }
    }
    Literal { grid, free }.plan(query)
}

/// The circle lies on the cell (spec 2.6).
fn stamps(grid: &Grid, circle: &Circle, cell: Cell) -> bool {
    let cell_size = grid.parameters().cell_size.wide();
    let mut half_diagonal = (cell_size * cell_size / 2).isqrt();
    while (2 * half_diagonal) * (2 * half_diagonal) < 2 * cell_size * cell_size {
        half_diagonal += 1;
    }
    let reach = i128::from(circle.radius.wide() + grid.parameters().agent_radius.wide() + half_diagonal);
    reach >= 0 && squared_distance(grid.centre_of(cell), circle.centre) <= reach * reach
}

fn squared_distance(a: Point, b: Point) -> i128 {
    let dx = i128::from(a.x.raw()) - i128::from(b.x.raw());
    let dz = i128::from(a.z.raw()) - i128::from(b.z.raw());
    dx * dx + dz * dz
}

/// Of a reached cell: the best g, the jump's direction and where it began.
type Node = (u32, (i32, i32), Cell);

struct Literal<'a> {
    grid: &'a Grid,
    free: Vec<bool>,
}

impl Literal<'_> {
    fn plan(&self, query: &Query<'_>) -> Route {
        let mut route = Route::default();
        let Some(start) = self.snap_start(query.from) else {
            return route;
        };
        let requested = self.grid.nearest_cell(query.to);
        let target = match query.goal {
            Goal::Exact => self
                .snap_end(requested)
                .filter(|end| self.reachable(start)[self.grid.index_of(*end) as usize]),
            Goal::Nearest => {
                let component = self.grid.component_of(start);
                let reachable = self.reachable(start);
                let nearest_free = self
                    .cells()
                    .filter(|cell| self.is_free(*cell) && self.grid.component_of(*cell) == component)
                    .min_by_key(|cell| self.grid_order(requested, *cell));
                let target = self
                    .cells()
                    .filter(|cell| reachable[self.grid.index_of(*cell) as usize])
                    .min_by_key(|cell| self.grid_order(requested, *cell));
                route.search_ran_out = target != nearest_free;
                target.filter(|target| *target != start || nearest_free == Some(start))
            }
        };
        let Some(target) = target else {
            return route;
        };
        let Some((chain, cost)) = self.search(start, target, query.expanded_max, &mut route) else {
            route.stats = SearchStats::default();
            return route;
        };
        let last = chain[chain.len() - 1];
        route.found = true;
        route.complete = self.grid.cell_of(query.to) == Some(last);
        route.cost = cost;
        self.waypoints(&chain, query, &mut route);
        route.cells = chain.iter().map(|cell| (cell.x, cell.z)).collect();
        route
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        let width = self.grid.width();
        (0..width * self.grid.depth()).map(move |index| Cell {
            x: index % width,
            z: index / width,
        })
    }

    fn free_at(&self, x: i32, z: i32) -> bool {
        let inside = x >= 0 && z >= 0 && (x as u32) < self.grid.width() && (z as u32) < self.grid.depth();
        inside
            && self.is_free(Cell {
                x: x as u32,
                z: z as u32,
            })
    }

    fn is_free(&self, cell: Cell) -> bool {
        self.free[self.grid.index_of(cell) as usize]
    }

    fn rings(&self, from: Cell, to: Cell) -> i64 {
        i64::from(from.x.abs_diff(to.x).max(from.z.abs_diff(to.z)))
    }

    fn grid_order(&self, from: Cell, to: Cell) -> (u64, u32) {
        let (dx, dz) = (u64::from(from.x.abs_diff(to.x)), u64::from(from.z.abs_diff(to.z)));
        (dx * dx + dz * dz, self.grid.index_of(to))
    }

    fn snap_start(&self, from: Point) -> Option<Cell> {
        let own = self.grid.nearest_cell(from);
        if self.is_free(own) {
            return Some(own);
        }
        let reach = SNAP_REACH.wide() / self.grid.parameters().cell_size.wide();
        let component = self.grid.component_of(own);
        self.cells()
            .filter(|cell| self.is_free(*cell) && self.rings(own, *cell) <= reach)
            .filter(|cell| component.is_none() || self.grid.component_of(*cell) == component)
            .min_by_key(|cell| {
                (
                    squared_distance(self.grid.centre_of(*cell), from),
                    self.grid.index_of(*cell),
                )
            })
    }

    fn snap_end(&self, requested: Cell) -> Option<Cell> {
        let reach = SNAP_REACH.wide() / self.grid.parameters().cell_size.wide();
        self.cells()
            .filter(|cell| self.is_free(*cell) && self.rings(requested, *cell) <= reach)
            .min_by_key(|cell| self.grid_order(requested, *cell))
    }

    fn legal_move(&self, x: i32, z: i32, dx: i32, dz: i32) -> bool {
        self.free_at(x + dx, z + dz) && self.free_at(x + dx, z) && self.free_at(x, z + dz)
    }

    fn reachable(&self, start: Cell) -> Vec<bool> {
        let mut reachable = vec![false; self.free.len()];
        reachable[self.grid.index_of(start) as usize] = true;
        let mut stack = vec![start];
        while let Some(cell) = stack.pop() {
            let (x, z) = (cell.x as i32, cell.z as i32);
            for (dx, dz) in DIRECTIONS {
                let legal = if dx != 0 && dz != 0 {
                    self.legal_move(x, z, dx, dz)
                } else {
                    self.free_at(x + dx, z + dz)
                };
                if legal {
                    let next = Cell {
                        x: (x + dx) as u32,
                        z: (z + dz) as u32,
                    };
                    if !std::mem::replace(&mut reachable[self.grid.index_of(next) as usize], true) {
                        stack.push(next);
                    }
                }
            }
        }
        reachable
    }

    /// The chain of cells and its cost, by A* over jump points.
    fn search(
        &self,
        start: Cell,
        goal: Cell,
        expanded_max: Option<u32>,
        route: &mut Route,
    ) -> Option<(Vec<Cell>, u32)> {
        let heuristic = |cell: Cell| {
            let (dx, dz) = (cell.x.abs_diff(goal.x), cell.z.abs_diff(goal.z));
            10 * dx.max(dz) + 4 * dx.min(dz)
        };
        let mut nodes: Vec<Option<Node>> = vec![None; self.free.len()];
        let mut queue = BinaryHeap::new();
        nodes[self.grid.index_of(start) as usize] = Some((0, (0, 0), start));
        queue.push(Reverse((heuristic(start), Reverse(0), self.grid.index_of(start))));
        route.stats.generated = 1;
        // Heuristic, g, index of the best cell so far, for a partial path.
        let mut best = (heuristic(start), 0, self.grid.index_of(start));
        let end = loop {
            route.stats.queue_peak = route.stats.queue_peak.max(queue.len() as u32);
            let Reverse((_, Reverse(g), index)) = queue.pop()?;
            let (best_g, direction, _) = nodes[index as usize]?;
            if g != best_g {
                continue;
            }
            let cell = Cell {
                x: index % self.grid.width(),
                z: index / self.grid.width(),
            };
            if cell == goal {
                break cell;
            }
            if expanded_max.is_some_and(|max| route.stats.expanded >= max) {
                route.budget_ran_out = true;
                break self.grid.cell_at(best.2);
            }
            route.stats.expanded += 1;
            best = best.min((heuristic(cell), g, index));
            for (dx, dz) in self.directions(cell, direction) {
                let Some(next) = self.jump(cell, dx, dz, goal) else {
                    continue;
                };
                let steps = cell.x.abs_diff(next.x).max(cell.z.abs_diff(next.z));
                let g = g + steps * if dx != 0 && dz != 0 { 14 } else { 10 };
                let node = &mut nodes[self.grid.index_of(next) as usize];
                if node.is_none_or(|(best_g, _, _)| g < best_g) {
                    *node = Some((g, (dx, dz), cell));
                    queue.push(Reverse((
                        g + heuristic(next),
                        Reverse(g),
                        self.grid.index_of(next),
                    )));
                    route.stats.generated += 1;
                }
            }
        };
        let (cost, _, _) = nodes[self.grid.index_of(end) as usize]?;
        let mut chain = vec![end];
        let mut cell = end;
        while cell != start {
            let (_, (dx, dz), parent) = nodes[self.grid.index_of(cell) as usize]?;
            while cell != parent {
                cell = Cell {
                    x: (cell.x as i32 - dx) as u32,
                    z: (cell.z as i32 - dz) as u32,
                };
                chain.push(cell);
            }
        }
        chain.reverse();
        Some((chain, cost))
    }

    fn directions(&self, cell: Cell, (dx, dz): (i32, i32)) -> Vec<(i32, i32)> {
        let (x, z) = (cell.x as i32, cell.z as i32);
        if (dx, dz) == (0, 0) {
            return DIRECTIONS.to_vec();
        }
        if dx != 0 && dz != 0 {
            return vec![(dx, 0), (0, dz), (dx, dz)];
        }
        let mut directions = vec![(dx, dz)];
        for side in [-1, 1] {
            let (sx, sz) = (dz * side, dx * side);
            if !self.free_at(x - dx + sx, z - dz + sz) {
                directions.extend([(sx, sz), (dx + sx, dz + sz)]);
            }
        }
        directions
    }

    fn jump(&self, from: Cell, dx: i32, dz: i32, goal: Cell) -> Option<Cell> {
        let (mut x, mut z) = (from.x as i32, from.z as i32);
        loop {
            if dx != 0 && dz != 0 && !self.legal_move(x, z, dx, dz) {
                return None;
            }
            (x, z) = (x + dx, z + dz);
            if !self.free_at(x, z) {
                return None;
            }
            let cell = Cell {
                x: x as u32,
                z: z as u32,
            };
            let forced = |side: i32| {
                let (sx, sz) = (dz * side, dx * side);
                !self.free_at(x - dx + sx, z - dz + sz) && self.free_at(x + sx, z + sz)
            };
            let stops = if dx != 0 && dz != 0 {
                self.jump(cell, dx, 0, goal).is_some() || self.jump(cell, 0, dz, goal).is_some()
            } else {
                forced(-1) || forced(1)
            };
            if cell == goal || stops {
                return Some(cell);
            }
        }
    }

    fn waypoints(&self, chain: &[Cell], query: &Query<'_>, route: &mut Route) {
        let mut anchor = 0;
        let mut kept = vec![chain[0]];
        while anchor + 1 < chain.len() {
            anchor = (anchor + 1..chain.len())
                .rev()
                .find(|last| line_of_sight(&|x, z| self.free_at(x, z), chain[anchor], chain[*last]))
                .expect("a step of the chain is in sight");
            kept.push(chain[anchor]);
        }
        route.waypoints = kept.iter().map(|cell| self.grid.centre_of(*cell)).collect();
        if route.complete {
            *route.waypoints.last_mut().expect("the chain is not empty") = query.to;
        }
        let cell_size = i128::from(self.grid.parameters().cell_size.raw());
        let exact_end = route.complete && route.waypoints.len() == 1;
        if !exact_end && 16 * squared_distance(route.waypoints[0], query.from) <= 9 * cell_size * cell_size {
            route.waypoints.remove(0);
        }
    }
}

/// Spec 2.5, rule 2.
fn line_of_sight(is_free: &dyn Fn(i32, i32) -> bool, from: Cell, to: Cell) -> bool {
    let (mut x, mut z) = (from.x as i32, from.z as i32);
    let (step_x, step_z) = ((to.x as i32 - x).signum(), (to.z as i32 - z).signum());
    let (nx, nz) = (u64::from(from.x.abs_diff(to.x)), u64::from(from.z.abs_diff(to.z)));
    let (mut ix, mut iz) = (0, 0);
    while ix < nx || iz < nz {
        let order = ((1 + 2 * ix) * nz).cmp(&((1 + 2 * iz) * nx));
        if order.is_eq() && !(is_free(x + step_x, z) && is_free(x, z + step_z)) {
            return false;
        }
        if order.is_le() {
            (ix, x) = (ix + 1, x + step_x);
        }
        if order.is_ge() {
            (iz, z) = (iz + 1, z + step_z);
        }
        if !is_free(x, z) {
            return false;
        }
    }
    true
}
