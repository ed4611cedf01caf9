//! One query on a grid, from positions to waypoints (spec 2.4 and 2.5).

use super::jump::START;
use super::line_of_sight::first_blocker;
use super::reach::{Flood, Reach, Side};
use super::{Cell, Grid, smooth, snap};
use crate::obstacles::Overlay;
use crate::search::{Progress, Search};
use crate::{Circle, Fixed, Goal, Point, Query, Route, SearchStats};

/// Expanded cells before anybody asks whether the target is shut in: most searches end within them.
const EXPANDED_FIRST: u32 = 64;
/// Words that a target is then flooded by, to see whether it is: people who stand close leave small pockets.
const POCKET_WORDS: u32 = 16;
/// Expanded cells before both sides are flooded in earnest.
const EXPANDED_SECOND: u32 = 192;
/// Each side is then flooded by one word per so many cells expanded since the pause before.
const EXPANDED_PER_WORD: u32 = 2;

/// Searches one grid: the standing circles over it and all the scratch. Nothing is allocated by a query after warm-up.
#[derive(Clone, Debug)]
pub struct GridSearch {
    grid: Grid,
    overlay: Overlay,
    search: Search,
    flood: Flood,
    /// The cells between which the jumps of a route lead, from its end to its start.
    turns: Vec<Cell>,
    /// The chain of a route whose cells nobody wants.
    chain: Vec<(u32, u32)>,
}

/// What a query wants of its way beside the target.
#[derive(Clone, Copy, Debug)]
struct Demand {
    expanded_max: Option<u32>,
    want_cells: bool,
}

/// How search and flood take turns.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    /// Cells that the search may expand before the flood's turn.
    expanded: u32,
    /// Who is flooded then, and by how many words each.
    sides: &'static [Side],
    words: u32,
}

const BOTH: [Side; 2] = [Side::Start, Side::Target];

impl Default for Pauses {
    fn default() -> Self {
        Self {
            expanded: EXPANDED_FIRST,
            sides: &[Side::Target],
            words: POCKET_WORDS,
        }
    }
}

impl Pauses {
    fn next(&mut self) {
        self.expanded = EXPANDED_SECOND.max(2 * self.expanded);
        self.sides = &BOTH;
        self.words = self.expanded / EXPANDED_PER_WORD;
    }
}

/// How a target is reached.
enum Way {
    /// In a straight line; no chain was searched.
    Sight,
    /// By the search that has ended like this.
    Chain(Progress),
}

impl GridSearch {
    /// A search of `grid` with nobody standing.
    pub fn new(grid: Grid) -> Self {
        let mut search = Search::default();
        search.resize(grid.width() as usize * grid.depth() as usize);
        let mut flood = Flood::default();
        flood.resize(grid.rows().words().len());
        Self {
            overlay: Overlay::new(&grid),
            grid,
            search,
            flood,
            turns: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// The grid that is searched.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Other walkable cells from now on; who stands stays.
    ///
    /// # Panics
    /// If the new grid has another size, place or other parameters: edits change none of them (spec 2.3, rule 1).
    pub fn set_grid(&mut self, grid: Grid) {
        assert!(grid.has_frame_of(&self.grid), "an edit keeps the grid's frame");
        self.overlay.rebuild(&grid);
        self.grid = grid;
    }

    /// Somebody stands here from now on. Equal circles count; at most 65,535 circles over one cell.
    pub fn block(&mut self, circle: Circle) {
        self.overlay.block(&self.grid, circle);
    }

    /// Somebody who stood here does not any more; `circle` was blocked before.
    ///
    /// # Panics
    /// May, if it was not.
    pub fn unblock(&mut self, circle: Circle) {
        self.overlay.unblock(&self.grid, circle);
    }

    /// Nobody stands any more.
    pub fn unblock_all(&mut self) {
        self.overlay.unblock_all(&self.grid);
    }

    /// The cell is in the grid, walkable, and nobody stands on it.
    pub fn is_free(&self, cell: Cell) -> bool {
        self.grid.is_walkable(cell) && self.overlay.rows().get(cell.z, cell.x)
    }

    /// `find_path` (spec 2.4): to the end, snapped by at most 8 m, or nowhere. `also`: circles in the way of this query.
    pub fn find_path(&mut self, from: Point, to: Point, also: &[Circle]) -> Route {
        self.find(from, to, also, Goal::Exact)
    }

    /// `find_path_to_nearest` (spec 2.4): to the reachable cell nearest to the end.
    pub fn find_path_to_nearest(&mut self, from: Point, to: Point, also: &[Circle]) -> Route {
        self.find(from, to, also, Goal::Nearest)
    }

    /// The chain of cells between two cells, into `cells`, and its cost; `None` if one of them is not free or they cannot
    /// reach each other. Circles that stand are in the way.
    pub fn find_chain(&mut self, from: Cell, to: Cell, cells: &mut Vec<(u32, u32)>) -> Option<u32> {
        cells.clear();
        let same_component = self.grid.component_of(from) == self.grid.component_of(to);
        if !(self.is_free(from) && self.is_free(to) && same_component) {
            return None;
        }
        let demand = Demand {
            expanded_max: None,
            want_cells: true,
        };
        self.way(from, to, demand, false).ok()?;
        let end = self.grid.index_of(to);
        self.fill_chain(end, cells);
        Some(self.search.cost(end))
    }

    fn find(&mut self, from: Point, to: Point, also: &[Circle], goal: Goal) -> Route {
        let mut route = Route::default();
        let query = Query {
            from,
            to,
            goal,
            agent_radius: Fixed::ZERO,
            also,
            except: &[],
            expanded_max: None,
            want_cells: true,
        };
        self.plan(&query, &mut route);
        route
    }

    /// Answers `query` into `route`, whose buffers are reused.
    ///
    /// Under a limit of expanded cells the target is the one without it, and the route leads to the best cell taken from
    /// the queue so far: smallest heuristic, then smaller cost, then smaller index. `stats` are those of the search for the
    /// final target, all 0 where none was needed.
    pub fn plan(&mut self, query: &Query<'_>, route: &mut Route) {
        for circle in query.except {
            self.overlay.unblock(&self.grid, *circle);
        }
        for circle in query.also {
            self.overlay.lay(&self.grid, *circle);
        }
        self.overlay.settle();
        self.answer(query, route);
        self.overlay.lift();
        for circle in query.except {
            self.overlay.block(&self.grid, *circle);
        }
    }

    fn answer(&mut self, query: &Query<'_>, route: &mut Route) {
        clear(route);
        let Some(start) = snap::snap_start(&self.grid, self.overlay.rows(), query.from) else {
            return;
        };
        let requested = self.grid.nearest_cell(query.to);
        let demand = Demand {
            expanded_max: query.expanded_max,
            want_cells: query.want_cells,
        };
        let found = match query.goal {
            Goal::Exact => self.way_to_exact(start, requested, demand),
            Goal::Nearest => self.way_to_nearest(start, requested, demand, &mut route.search_ran_out),
        };
        let Some((target, way)) = found else {
            return;
        };
        route.found = true;
        match way {
            Way::Sight => {
                let kept = [start, target];
                let kept = if start == target { &kept[1..] } else { &kept[..] };
                route
                    .waypoints
                    .extend(kept.iter().map(|cell| self.grid.centre_of(*cell)));
                smooth::trim(&self.grid, target, query.from, query.to, route);
            }
            Way::Chain(progress) => {
                route.budget_ran_out = progress == Progress::Limited;
                route.stats = self.search.stats();
                let end = self.search.end(progress);
                let mut unwanted = std::mem::take(&mut self.chain);
                let chain = if query.want_cells {
                    route.cost = self.search.cost(end);
                    &mut route.cells
                } else {
                    unwanted.clear();
                    &mut unwanted
                };
                self.fill_chain(end, chain);
                smooth::pull(self.overlay.rows(), chain, |cell| {
                    route.waypoints.push(self.grid.centre_of(cell));
                });
                self.chain = unwanted;
                let last = self.grid.cell_at(end);
                smooth::trim(&self.grid, last, query.from, query.to, route);
            }
        }
    }

    fn way_to_exact(&mut self, start: Cell, requested: Cell, demand: Demand) -> Option<(Cell, Way)> {
        let target = snap::snap_end(&self.grid, self.overlay.rows(), requested)?;
        if self.grid.component_of(target) != self.grid.component_of(start) {
            return None;
        }
        let way = self.way(start, target, demand, false).ok()?;
        Some((target, way))
    }

    /// Tries the free cells of the start's static component from the nearest to the end on: the first that is reachable is
    /// the target, and the very first one if dynamic obstacles cut nothing off.
    fn way_to_nearest(
        &mut self,
        start: Cell,
        requested: Cell,
        demand: Demand,
        search_ran_out: &mut bool,
    ) -> Option<(Cell, Way)> {
        let component = self.grid.component_of(start);
        let nearest = snap::nearest_free(&self.grid, self.overlay.rows(), requested, |cell| {
            self.grid.component_of(cell) == component
        })?;
        let mut target = nearest;
        loop {
            *search_ran_out = target != nearest;
            if target == start && *search_ran_out {
                return None;
            }
            let way = self.way(start, target, demand, *search_ran_out);
            let rows = self.overlay.rows();
            target = match way {
                Ok(way) => return Some((target, way)),
                Err(Side::Start) => self.flood.nearest_to(rows, requested)?,
                Err(Side::Target) => snap::nearest_free(&self.grid, rows, requested, |cell| {
                    self.grid.component_of(cell) == component && !self.flood.is_closed(rows, cell)
                })?,
            };
        }
    }

    /// The way from `start` to `target`, or the side that is cut off from the other. `flooded`: this query has asked for
    /// another target before, and its flood goes on.
    ///
    /// PERF: search and flood take turns, so that neither a far target costs a flood of the map nor a cut-off one a search
    /// of it; `peers * unreachable`.
    fn way(&mut self, start: Cell, target: Cell, demand: Demand, mut flooded: bool) -> Result<Way, Side> {
        if !demand.want_cells && first_blocker(self.overlay.rows(), start, target).is_none() {
            return Ok(Way::Sight);
        }
        if flooded {
            // Near one pocket there are often more.
            self.flood.aim(self.overlay.rows(), target);
            if let Reach::CutOff(side) = self.flood.advance(self.overlay.rows(), &BOTH, POCKET_WORDS) {
                return Err(side);
            }
        }
        let mut space = self.overlay.jump_points(self.grid.numbering(), target);
        let (start_node, goal_node) = (self.grid.index_of(start), self.grid.index_of(target));
        self.search
            .begin(&space, start_node, START, goal_node, demand.expanded_max);
        let mut pauses = Pauses::default();
        loop {
            let progress = self.search.advance(&mut space, pauses.expanded);
            if progress == Progress::Arrived {
                return Ok(Way::Chain(progress));
            }
            if !flooded {
                self.flood.begin(space.rows, start);
                self.flood.aim(space.rows, target);
                flooded = true;
            }
            let reach = if progress == Progress::Paused {
                self.flood.advance(space.rows, pauses.sides, pauses.words)
            } else {
                self.flood.advance(space.rows, &BOTH, u32::MAX)
            };
            match reach {
                Reach::CutOff(side) => return Err(side),
                Reach::Joined if progress == Progress::Paused => {
                    return Ok(Way::Chain(self.search.advance(&mut space, u32::MAX)));
                }
                Reach::Joined => return Ok(Way::Chain(progress)),
                Reach::Undecided => pauses.next(),
            }
        }
    }

    /// The jumps from the start to `end`, filled in with their unit steps, into the empty `chain`.
    fn fill_chain(&mut self, end: u32, chain: &mut Vec<(u32, u32)>) {
        self.turns.clear();
        let mut node = end;
        loop {
            self.turns.push(self.grid.cell_at(node));
            let parent = self.search.parent(node);
            if parent == node {
                break;
            }
            node = parent;
        }
        for jump in self.turns.windows(2).rev() {
            let (to, from) = (jump[0], jump[1]);
            let step_x = (to.x as i32 - from.x as i32).signum();
            let step_z = (to.z as i32 - from.z as i32).signum();
            let steps = to.x.abs_diff(from.x).max(to.z.abs_diff(from.z));
            let mut next = (from.x, from.z);
            chain.extend((0..steps).map(|_| {
                let cell = next;
                next = (
                    next.0.wrapping_add_signed(step_x),
                    next.1.wrapping_add_signed(step_z),
                );
                cell
            }));
        }
        let end = self.turns[0];
        chain.push((end.x, end.z));
    }
}

fn clear(route: &mut Route) {
    route.found = false;
    route.complete = false;
    route.search_ran_out = false;
    route.budget_ran_out = false;
    route.waypoints.clear();
    route.cells.clear();
    route.cost = 0;
    route.stats = SearchStats::default();
}
