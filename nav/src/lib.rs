//! Maps and planners of lockstepd.
#![deny(clippy::float_arithmetic)]

pub mod drawing;
mod edits;
mod fixed;
pub mod geometry;
mod grid;
pub mod json;
mod map_file;
mod obstacles;
mod planner;
pub mod polygon;
mod problem;
mod search;
mod svg;

pub use drawing::Drawing;
pub use fixed::{FRACTION_BITS, Fixed, FixedError, GRID_ORIGIN_LIMIT, Point, WORLD_LIMIT};
pub use grid::{
    BakedGrid, CELLS_MAX, Cell, Cells, EditedMap, Frame, Grid, GridParameters, GridPlanner, GridSearch,
    Window, movingai, text,
};
pub use json::{Document, did_you_mean};
pub use map_file::{
    AREAS_MAX, Area, INSETS_MAX, MAP_BYTES_MAX, MAP_NAME_BYTES_MAX, MAP_VERTICES_MAX, MapFile, OBSTACLES_MAX,
    Obstacle, PolygonMap,
};
pub use planner::{Circle, EditError, Goal, MapEdits, Planner, PlannerKind, Query, Route, SearchStats};
pub use polygon::PolygonPlanner;
pub use problem::{Problem, Problems};
