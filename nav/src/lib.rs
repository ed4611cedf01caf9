//! Maps and planners of lockstepd.
#![deny(clippy::float_arithmetic)]

mod fixed;
mod planner;

pub use fixed::{FRACTION_BITS, Fixed, FixedError, GRID_ORIGIN_LIMIT, Point, WORLD_LIMIT};
pub use planner::{Circle, EditError, Goal, MapEdits, Planner, Query, Route, SearchStats};
