//! Maps and planners of lockstepd.
#![deny(clippy::float_arithmetic)]

mod fixed;
mod grid;
pub mod json;
mod obstacles;
mod planner;
mod problem;
mod search;

pub use fixed::{FRACTION_BITS, Fixed, FixedError, GRID_ORIGIN_LIMIT, Point, WORLD_LIMIT};
pub use grid::{CELLS_MAX, Cell, Grid, GridParameters, GridPlanner, GridSearch};
pub use json::Document;
pub use planner::{Circle, EditError, Goal, MapEdits, Planner, Query, Route, SearchStats};
pub use problem::{Problem, Problems};
