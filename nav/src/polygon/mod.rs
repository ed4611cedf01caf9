//! The polygon planner (spec 7.1): a visibility graph over the corners of the free space, exact in integers.
//!
//! ```text
//! exact        vectors, sectors of directions, points between raw points, wide comparisons
//! arrangement  polygons → border pieces: edges cut where they meet, kept where one side is free
//! border       the free space: sectors around vertices, parts, where a point lies, line of sight
//! cells        the index of border edges that line of sight walks along
//! nodes        corners of more than 180 degrees, pushed by the inset
//! graph        links between nodes in sight, kept where a change does not come near
//! ground       the free space of one query: without the octagons around circles
//! reach        whether octagons cut a point off
//! search       A* with untested links
//! near         the nodes near the straight way
//! nearest      the nearest free or reachable point
//! picture      the debug picture as layers
//! planner      all of it behind the `Planner` interface
//! ```
//!
//! How it stays exact. Every edge of the border lies on a line between two raw vertices of a polygon of the map. Where it
//! ends is a raw vertex, or a crossing of two such lines, kept as a fraction; all predicates are signs of cross products of
//! raw differences with those (bounds in `exact.rs`). A segment to be tested always has raw ends. So nothing is ever rounded
//! but three things the spec rounds: the raw point that stands for a corner at a crossing, the push of a node, and the
//! nearest point to a place outside. Each of these is then tested like any other raw point.
//!
//! Where the spec leaves a choice:
//! - Parts that meet in a point, and walls that do, are no passage, wherever else they may be connected: around a vertex the
//!   free directions form sectors, and a segment or a route passes within one. So whether a link holds depends on what is
//!   near it alone, and no door far away opens a way between two touching walls.
//! - The raw point for a corner between raw points is searched for within 64 raw, then in the wedge in front of both edges
//!   within 4,096 columns or rows. Of walls that meet in a still more acute point (below about a sixtieth of a degree) the end
//!   of one of them serves.
//! - Nodes of one corner position count in the order of the exact position; octagon corners after the map's.
//! - Of a static node that an octagon touches, a corner has to keep more than 180 degrees; a pushed one a single sector.

mod arrangement;
mod border;
mod cells;
mod exact;
mod graph;
mod ground;
mod near;
mod nearest;
mod nodes;
mod picture;
mod planner;
mod reach;
mod search;
#[cfg(test)]
mod tests;

use arrangement::{Outline, check_outlines};

use crate::map_file::{Area, Obstacle};

pub use arrangement::{CORNERS_MAX, TooIntricate};
pub use planner::PolygonPlanner;

/// Whether a map's polygons are few and simple enough for this planner, whichever areas are open.
///
/// # Errors
/// Too many corners.
pub(crate) fn check(areas: &[Area], obstacles: &[Obstacle]) -> Result<(), TooIntricate> {
    let areas = areas.iter().map(|area| (&area.polygon, false));
    let obstacles = obstacles.iter().map(|obstacle| (&obstacle.polygon, true));
    let outlines: Vec<Outline<'_>> = areas
        .chain(obstacles)
        .map(|(polygon, is_obstacle)| Outline { polygon, is_obstacle })
        .collect();
    check_outlines(&outlines)
}
