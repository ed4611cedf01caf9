//! The small interface between a location and its planner: edits, standing obstacles, one query, one route.
//!
//! A planner owns its map, what has been changed on it, its index of standing obstacles and all its search buffers.
//! The four planners of spec 7 differ behind it; nothing in the simulation asks which one it is.

use bincode::{Decode, Encode};
use serde::Serialize;

use crate::{Fixed, Point};

/// Which planner a map is made for or a location uses (spec 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlannerKind {
    /// The uniform grid of spec 2.
    Grid,
    /// The visibility graph of spec 7.1.
    Polygon,
}

impl PlannerKind {
    /// Every planner.
    pub const ALL: [Self; 2] = [Self::Grid, Self::Polygon];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Polygon => "polygon",
        }
    }
}

/// A dynamic obstacle: somebody who stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Circle {
    /// Where, metres.
    pub centre: Point,
    /// The obstacle's own radius, metres; the planner adds the agent's.
    pub radius: Fixed,
}

/// What to do when the requested end cannot be reached (spec 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// `find_path`: the end, snapped by at most 8 m, or nothing.
    Exact,
    /// `find_path_to_nearest`: of all reachable places the one nearest to the end.
    Nearest,
}

/// One question to a planner.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Start position.
    pub from: Point,
    /// Requested end.
    pub to: Point,
    /// What counts as an answer.
    pub goal: Goal,
    /// The asking character's `collision_radius`, for planners with radius classes; the grid ignores it.
    pub agent_radius: Fixed,
    /// Circles that stand in the way of this query alone, beside those kept by [`Planner::block`].
    pub also: &'a [Circle],
    /// Circles kept by [`Planner::block`] that this query does not see; each was added exactly so.
    pub except: &'a [Circle],
    /// Stop after so many expanded nodes and return the best partial path; `None`: no limit.
    pub expanded_max: Option<u32>,
    /// Whether `Route::cells` and `Route::cost` are wanted; a planner may skip the search where only waypoints are.
    pub want_cells: bool,
}

/// What a search did, for people and benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Nodes taken from the queue.
    pub expanded: u32,
    /// Nodes entered into the queue.
    pub generated: u32,
    /// Largest size of the queue.
    pub queue_peak: u32,
}

/// The answer to a [`Query`]; the caller keeps one and hands it in again, so that a query allocates nothing after warm-up.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// There is a route (it may be the start alone, with no waypoints).
    pub found: bool,
    /// The requested end is where the route ends.
    pub complete: bool,
    /// Dynamic obstacles cut the route short (spec 2.4).
    pub search_ran_out: bool,
    /// The limit on expanded nodes was reached; the route is partial.
    pub budget_ran_out: bool,
    /// The points to walk to, in order.
    pub waypoints: Vec<Point>,
    /// Grid planner with `want_cells`: the chain of cells (x, z) from start to final cell, before smoothing.
    pub cells: Vec<(u32, u32)>,
    /// Cost of the chain (grid: 10 per cardinal, 14 per diagonal step); 0 where `cells` was not wanted.
    pub cost: u32,
    /// Planners without cells: the length of the route, raw, each link rounded up.
    pub length: i64,
    /// What it took.
    pub stats: SearchStats,
}

/// What has been changed on a map since it was loaded (spec 5.4, section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct MapEdits {
    /// Per area, in file order.
    pub available: Vec<bool>,
    /// Names of the file's obstacles that were removed, in name order.
    pub removed: Vec<String>,
    /// Obstacles added since, in name order.
    pub added: Vec<(String, Vec<Point>)>,
}

/// Why a map cannot be changed like that. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No area of that name.
    #[error("unknown area")]
    UnknownArea,
    /// A baked grid has no areas.
    #[error("a baked grid has no areas to open or close")]
    NoAreas,
    /// No obstacle of that name.
    #[error("unknown obstacle")]
    UnknownObstacle,
    /// The map has an obstacle of that name.
    #[error("an obstacle of that name is there already")]
    NameInUse,
    /// The polygon breaks a rule of spec 2.2.
    #[error("not a simple polygon within the world limit")]
    BadPolygon,
    /// 4,096 obstacles are the most a location has (spec 3.4).
    #[error("no room for another obstacle")]
    NoRoom,
}

/// A map with its planner.
pub trait Planner: Send + Sync {
    /// Names of the areas in file order and whether each is open.
    fn areas(&self) -> Vec<(String, bool)>;

    /// Opens or closes an area; `Ok(false)` if it was so already.
    ///
    /// # Errors
    /// `UnknownArea`, `NoAreas`.
    fn set_area_available(&mut self, area: &str, available: bool) -> Result<bool, EditError>;

    /// Adds a named obstacle polygon.
    ///
    /// # Errors
    /// `NameInUse`, `BadPolygon`, `NoRoom`.
    fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<(), EditError>;

    /// Removes an obstacle of the file or one added since.
    ///
    /// # Errors
    /// `UnknownObstacle`.
    fn remove_obstacle(&mut self, name: &str) -> Result<(), EditError>;

    /// All changes since the map was loaded.
    fn edits(&self) -> MapEdits;

    /// Makes `edits` the changes since the map was loaded (whatever they were before): loading a snapshot.
    ///
    /// # Errors
    /// If they do not fit this map; the map is then as it was.
    fn set_edits(&mut self, edits: &MapEdits) -> Result<(), EditError>;

    /// Somebody stands here from now on. Equal circles count: two blocks need two unblocks.
    fn block(&mut self, circle: Circle);

    /// Somebody who stood here does not any more; `circle` was blocked before.
    fn unblock(&mut self, circle: Circle);

    /// Forgets all standing circles.
    fn unblock_all(&mut self);

    /// Answers one query into `route` (its buffers are reused).
    fn plan(&mut self, query: &Query<'_>, route: &mut Route);

    /// The place is free ground of the static map (in the grid and walkable); standing circles do not count.
    fn is_free_ground(&self, point: Point) -> bool;

    /// Line of sight on the static map; both ends on free ground. Standing circles do not count.
    fn line_of_sight(&self, from: Point, to: Point) -> bool;
}
