//! Maps and planners of lockstepd.
#![deny(clippy::float_arithmetic)]

mod fixed;
pub mod json;
mod planner;
mod problem;

pub use fixed::{FRACTION_BITS, Fixed, FixedError, GRID_ORIGIN_LIMIT, Point, WORLD_LIMIT};
pub use json::Document;
pub use planner::{Circle, EditError, Goal, MapEdits, Planner, Query, Route, SearchStats};
pub use problem::{Problem, Problems};
