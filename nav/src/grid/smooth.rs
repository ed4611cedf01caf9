//! From a chain of cells to waypoints (spec 2.5).

use super::line_of_sight::{first_blocker, touches};
use super::{Cell, Grid, Lines};
use crate::{Point, Route};

/// Blockers that are remembered: the next candidate's line mostly runs into the one that stopped the last.
const REMEMBERED: usize = 3;

/// String pulling: calls `keep` for the cells (x, z) of the chain that are kept, in order, from the first to the last.
///
/// PERF: a candidate is given up without a walk if one of the cells that stopped earlier ones lies in its line;
/// `peers * smooth`.
pub(crate) fn pull(rows: &Lines, chain: &[(u32, u32)], mut keep: impl FnMut(Cell)) {
    let cell = |(x, z): (u32, u32)| Cell { x, z };
    let mut blockers = [Cell { x: 0, z: 0 }; REMEMBERED];
    let mut remembered = 0;
    let mut rest = chain;
    while let [anchor, ahead @ ..] = rest {
        let anchor = cell(*anchor);
        keep(anchor);
        let [_, farther @ ..] = ahead else {
            return;
        };
        // The last of the chain in sight; a unit step always is.
        let seen = farther.iter().rposition(|candidate| {
            let candidate = cell(*candidate);
            let lies_between = |blocker: &Cell| touches(anchor, candidate, *blocker);
            if blockers[..remembered].iter().any(lies_between) {
                return false;
            }
            let blocker = first_blocker(rows, anchor, candidate);
            if let Some(blocker) = blocker {
                blockers.rotate_right(1);
                blockers[0] = blocker;
                remembered = (remembered + 1).min(REMEMBERED);
            }
            blocker.is_none()
        });
        rest = &ahead[seen.map_or(0, |seen| seen + 1)..];
    }
}

/// Turns the kept cells, whose centres are `route.waypoints`, into what is walked: the exact end, and no first waypoint
/// where the character stands already (spec 2.5, rules 4 and 5).
pub(crate) fn trim(grid: &Grid, last: Cell, from: Point, to: Point, route: &mut Route) {
    route.complete = grid.cell_of(to) == Some(last);
    if route.complete
        && let Some(end) = route.waypoints.last_mut()
    {
        *end = to;
    }
    let is_exact_end = route.complete && route.waypoints.len() == 1;
    let cell_size = i128::from(grid.parameters().cell_size.raw());
    let near = |point: Point| {
        let dx = i128::from(point.x.raw()) - i128::from(from.x.raw());
        let dz = i128::from(point.z.raw()) - i128::from(from.z.raw());
        16 * (dx * dx + dz * dz) <= 9 * cell_size * cell_size
    };
    if !is_exact_end && route.waypoints.first().is_some_and(|first| near(*first)) {
        route.waypoints.remove(0);
    }
}
