//! The nearest cells to a place, in the total orders of spec 2.4 ("Snapping").

use super::{Cell, Grid, Lines};
use crate::{Fixed, Point};

/// A start or an exact end is moved by at most this, metres.
const REACH: Fixed = Fixed::from_int(8);

/// A start's cell, or the free cell that stands in for it.
pub(crate) fn snap_start(grid: &Grid, free: &Lines, from: Point) -> Option<Cell> {
    let own = grid.nearest_cell(from);
    if free.get(own.z, own.x) {
        return Some(own);
    }
    let component = grid.component_of(own);
    let accepts = |cell: Cell| component.is_none() || grid.component_of(cell) == component;
    let square = |a: Fixed, b: Fixed| {
        let difference = i128::from(a.raw()) - i128::from(b.raw());
        difference * difference
    };
    nearest(
        grid,
        free,
        own,
        rings(grid),
        |z| square(grid.centre_of(Cell { x: 0, z }).z, from.z),
        |x| square(grid.centre_of(Cell { x, z: 0 }).x, from.x),
        accepts,
    )
}

/// An exact end's cell, or the free cell that stands in for it.
pub(crate) fn snap_end(grid: &Grid, free: &Lines, requested: Cell) -> Option<Cell> {
    if free.get(requested.z, requested.x) {
        return Some(requested);
    }
    nearest_by_steps(grid, free, requested, rings(grid), |_| true)
}

/// The free cell nearest to `requested` (squared grid distance, then index), at any distance, of those that `accepts` takes.
pub(crate) fn nearest_free(
    grid: &Grid,
    free: &Lines,
    requested: Cell,
    accepts: impl Fn(Cell) -> bool,
) -> Option<Cell> {
    nearest_by_steps(grid, free, requested, u32::MAX, accepts)
}

fn rings(grid: &Grid) -> u32 {
    (REACH.wide() / grid.parameters().cell_size.wide()) as u32
}

fn nearest_by_steps(
    grid: &Grid,
    free: &Lines,
    requested: Cell,
    rings: u32,
    accepts: impl Fn(Cell) -> bool,
) -> Option<Cell> {
    let square = |a: u32, b: u32| {
        let difference = i128::from(a.abs_diff(b));
        difference * difference
    };
    nearest(
        grid,
        free,
        requested,
        rings,
        |z| square(z, requested.z),
        |x| square(x, requested.x),
        accepts,
    )
}

/// The accepted free cell within `rings` of `centre` with the least `row(z) + column(x)`, ties by index. On either side
/// of the centre's row and column both must grow with the distance from it.
fn nearest(
    grid: &Grid,
    free: &Lines,
    centre: Cell,
    rings: u32,
    row: impl Fn(u32) -> i128,
    column: impl Fn(u32) -> i128,
    accepts: impl Fn(Cell) -> bool,
) -> Option<Cell> {
    let mut best: Option<(i128, Cell)> = None;
    let first_x = centre.x.saturating_sub(rings);
    let last_x = centre.x.saturating_add(rings).min(grid.width() - 1);
    // Looks at one row; false if it, and so every farther one on this side, is too far away.
    let mut look = |z: u32| {
        let across = row(z);
        if best.is_some_and(|(distance, _)| across > distance) {
            return false;
        }
        // Each side ends at the first accepted cell, or where nothing nearer can come.
        let mut consider = |x: u32| {
            let distance = across + column(x);
            if best.is_some_and(|(nearest, _)| distance > nearest) {
                return true;
            }
            let cell = Cell { x, z };
            let accepted = accepts(cell);
            if accepted {
                let closer =
                    |(nearest, found): (i128, Cell)| (distance, cell.z, cell.x) < (nearest, found.z, found.x);
                if best.is_none_or(closer) {
                    best = Some((distance, cell));
                }
            }
            // The centre's own column may be farther than its neighbour's when measured from a point.
            accepted && x != centre.x
        };
        let mut next = Some(centre.x);
        while let Some(x) = next.and_then(|from| free.previous_set(z, from)) {
            if x < first_x || consider(x) {
                break;
            }
            next = x.checked_sub(1);
        }
        let mut next = centre.x + 1;
        while let Some(x) = free.next_set(z, next) {
            if x > last_x || consider(x) {
                break;
            }
            next = x + 1;
        }
        true
    };
    look(centre.z);
    let (mut below, mut above) = (true, true);
    for ring in 1..=rings.min(grid.width().max(grid.depth())) {
        below = below && centre.z >= ring && look(centre.z - ring);
        above = above && centre.z + ring < grid.depth() && look(centre.z + ring);
        if !below && !above {
            break;
        }
    }
    best.map(|(_, cell)| cell)
}
