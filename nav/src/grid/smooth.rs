//! From a chain of cells to waypoints (spec 2.5).

use super::line_of_sight::{first_blocker, touches};
use super::{Cell, Grid, Lines};
use crate::{Point, Route};

/// Blockers that are remembered: the next candidate's line mostly runs into the one that stopped the last.
const REMEMBERED: usize = 3;

/// String pulling: calls `keep` for the cells of the chain that are kept, in order, from the first to the last. `chain` is
/// the chain from its end to its start.
///
/// PERF: a candidate is given up without a walk if one of the cells that stopped earlier ones lies in its line;
/// `peers * smooth`.
pub(crate) fn pull(rows: &Lines, chain: &[Cell], mut keep: impl FnMut(Cell)) {
    // A cell that blocks nothing, until there are others: the anchor.
    let mut blockers = [chain[chain.len() - 1]; REMEMBERED];
    let mut rest = chain;
    while let [ahead @ .., anchor] = rest {
        keep(*anchor);
        let Some((_, farther)) = ahead.split_last() else {
            return;
        };
        // The last of the chain in sight; a unit step always is.
        let seen = farther.iter().position(|candidate| {
            if blockers
                .iter()
                .any(|blocker| blocker != anchor && touches(*anchor, *candidate, *blocker))
            {
                return false;
            }
            let blocker = first_blocker(rows, *anchor, *candidate);
            if let Some(blocker) = blocker {
                blockers.rotate_right(1);
                blockers[0] = blocker;
            }
            blocker.is_none()
        });
        rest = &ahead[..=seen.unwrap_or(farther.len())];
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
