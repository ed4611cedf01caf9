//! From polygons to cells (spec 2.3), as a whole or for a window of the grid.

use super::cells::{Cells, Window};
use super::raster::{Frame, Reach, fill_inside, fill_near_border, for_each_near_span};
use super::{CELLS_MAX, GridParameters};
use crate::Point;
use crate::geometry::{Bounds, Polygon, Segment};

/// Most steps (a row crossed by an edge, a cell near one) that drawing a map may take: some seconds. No map that is meant comes
/// near it; ten thousands of edges over millions of rows would take hours.
pub(crate) const DRAWING_STEPS_MAX: u64 = 1 << 28;

/// The polygons would need more than [`CELLS_MAX`] cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than 2^24 cells: {width} × {depth}")]
pub(crate) struct TooManyCells {
    width: u64,
    depth: u64,
}

/// The grid's place and size for these areas, open or not (rule 1).
///
/// # Errors
/// More than 2²⁴ cells; nothing has been allocated yet.
pub(crate) fn frame_around(parameters: &GridParameters, areas: &Bounds) -> Result<Frame, TooManyCells> {
    let cell_size = parameters.cell_size.wide();
    let margin = 2 * cell_size + obstacle_radius(parameters);
    let cells = |min: i64, max: i64| ((max - min + 2 * margin) as u64).div_ceil(cell_size as u64);
    let width = cells(areas.min.x.wide(), areas.max.x.wide());
    let depth = cells(areas.min.z.wide(), areas.max.z.wide());
    if width * depth > CELLS_MAX as u64 {
        return Err(TooManyCells { width, depth });
    }
    // At most 16,000 m + 400 m.
    let corner = |min: i64| (min - margin) as i32;
    Ok(Frame {
        min: Point::from_raw(corner(areas.min.x.wide()), corner(areas.min.z.wide())),
        width: width as u32,
        depth: depth as u32,
        cell_size: parameters.cell_size,
    })
}

/// About how many steps it takes to draw an area: its rows, and the cells of the strip that is eroded along its edges.
pub(crate) fn area_steps(frame: &Frame, parameters: &GridParameters, area: &Polygon) -> u64 {
    let padding = parameters.boundary_padding.wide();
    steps(frame, area, 0, |length| {
        if padding == 0 {
            0
        } else {
            (length + cells_along(frame, 2 * padding)) * cells_along(frame, 2 * padding)
        }
    })
}

/// About how many steps it takes to draw an obstacle: the rows of its edges, grown.
pub(crate) fn obstacle_steps(frame: &Frame, parameters: &GridParameters, obstacle: &Polygon) -> u64 {
    steps(frame, obstacle, 2 * obstacle_radius(parameters), |_| 0)
}

/// Per edge its rows, with those of `grown` raw, and what `more` says of its length in cells.
fn steps(frame: &Frame, polygon: &Polygon, grown: i64, more: impl Fn(u64) -> u64) -> u64 {
    let of_edge = |edge: Segment| {
        let dx = (edge.b.x.wide() - edge.a.x.wide()).abs();
        let dz = (edge.b.z.wide() - edge.a.z.wide()).abs();
        let rows = cells_along(frame, dz + grown).min(u64::from(frame.depth));
        rows + more(cells_along(frame, dx.max(dz)))
    };
    polygon.edges().map(of_edge).sum()
}

fn cells_along(frame: &Frame, length: i64) -> u64 {
    (length / frame.cell_size.wide()) as u64 + 1
}

/// How near a cell's centre may not be to an obstacle's edge, raw (rule 4).
pub(super) fn obstacle_radius(parameters: &GridParameters) -> i64 {
    parameters.agent_radius.wide() + parameters.object_padding.wide()
}

/// How far from an area's polygon a cell can change when it opens or closes, raw: the boundary padding, and the rounding of
/// nearest points.
pub(super) fn area_reach(parameters: &GridParameters) -> i64 {
    parameters.boundary_padding.wide() + 2
}

/// Rules 2 and 3 in a window: `ground` becomes what lies inside an open area and not too near to its outer edge. `areas` are
/// the open ones, at least those that come near the window.
pub(super) fn draw_areas(
    ground: &mut Cells,
    frame: &Frame,
    window: &Window,
    parameters: &GridParameters,
    areas: &[&Polygon],
    marks: &mut Vec<u64>,
) {
    ground.clear(window);
    for area in areas {
        fill_inside(ground, frame, window, area, marks);
    }
    let padding = parameters.boundary_padding.wide();
    if padding == 0 {
        return;
    }
    let mut others = Vec::new();
    for (index, area) in areas.iter().enumerate() {
        if frame
            .cells_within(area.bounds(), padding)
            .intersection(window)
            .is_empty()
        {
            continue;
        }
        for edge in area.edges() {
            others.clear();
            let near = |(other, polygon): &(usize, &&Polygon)| {
                *other != index && polygon.bounds().meets_within(&edge.bounds(), 1)
            };
            others.extend(areas.iter().enumerate().filter(near).map(|(_, polygon)| *polygon));
            erode(ground, frame, window, edge, padding, &others);
        }
    }
}

/// Rule 4 in a window: adds the cells that an obstacle blocks.
pub(super) fn draw_obstacle(
    covered: &mut Cells,
    frame: &Frame,
    window: &Window,
    parameters: &GridParameters,
    obstacle: &Polygon,
    marks: &mut Vec<u64>,
) {
    fill_inside(covered, frame, window, obstacle, marks);
    let reach = Reach::within(obstacle_radius(parameters));
    fill_near_border(covered, frame, window, obstacle, reach);
}

/// Rule 3 for one edge: blocks the cells nearer to it than `padding` unless their nearest point lies in another open area,
/// where the edge is a seam and no wall. `others` are the other areas near the edge.
fn erode(
    ground: &mut Cells,
    frame: &Frame,
    window: &Window,
    edge: Segment,
    padding: i64,
    others: &[&Polygon],
) {
    for_each_near_span(
        frame,
        window,
        edge,
        Reach::nearer_than(padding),
        |row, columns| {
            for column in columns {
                if !ground.get(column, row) {
                    continue;
                }
                let nearest = edge.nearest(frame.centre(column, row));
                // The nearest point is rounded: on a slanted seam an exact test would make a wall of it.
                if !others
                    .iter()
                    .any(|other| other.contains(nearest) || other.border_within(nearest, 1))
                {
                    ground.set(column, row, false);
                }
            }
        },
    );
}

#[cfg(test)]
pub(super) mod literal {
    use std::cmp::Ordering;

    use super::{GridParameters, Point, Polygon, obstacle_radius};

    /// The rules of spec 2.3 asked of one cell as they are written: what drawing must agree with. `areas` are the open ones.
    pub(crate) fn is_walkable(
        parameters: &GridParameters,
        areas: &[&Polygon],
        obstacles: &[&Polygon],
        centre: Point,
    ) -> bool {
        let padding = parameters.boundary_padding.wide();
        let inside = areas.iter().any(|area| area.contains(centre));
        let is_seam = |index: usize, nearest: Point| {
            areas.iter().enumerate().any(|(other, polygon)| {
                other != index && (polygon.contains(nearest) || polygon.border_within(nearest, 1))
            })
        };
        let eroded = areas.iter().enumerate().any(|(index, area)| {
            area.edges().any(|edge| {
                edge.compare_distance(centre, padding) == Ordering::Less
                    && !is_seam(index, edge.nearest(centre))
            })
        });
        let radius = obstacle_radius(parameters);
        let covered = obstacles
            .iter()
            .any(|obstacle| obstacle.contains(centre) || obstacle.border_within(centre, radius));
        inside && !eroded && !covered
    }
}
