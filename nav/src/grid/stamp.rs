//! The cells under a circle (spec 2.6).

use super::Grid;
use crate::Circle;

/// Most cells across whose columns are followed while the rows are walked.
const COLUMNS_FOLLOWED: usize = 64;

/// The cells whose centre is within a circle's radius + agentRadius + half a cell's diagonal of its centre.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    x: Axis,
    z: Axis,
    /// Raw.
    reach: i64,
}

/// The rows and columns that a stamp lies within, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) rows: (u32, u32),
    pub(crate) columns: (u32, u32),
}

/// One coordinate of the cell centres, seen from the circle's; raw.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Of cell 0.
    first: i64,
    cell_size: i64,
    cells: i64,
    /// The first cell whose centre is not below the circle's, 0 to `cells`.
    middle: i64,
}

impl Axis {
    fn new(min: i64, cell_size: i64, cells: u32, centre: i64) -> Self {
        // ((2i + 1) × cs) >> 1 = i × cs + (cs >> 1)
        let first = min + (cell_size >> 1) - centre;
        let middle = (-first + cell_size - 1).div_euclid(cell_size);
        Self {
            first,
            cell_size,
            cells: i64::from(cells),
            middle: middle.clamp(0, i64::from(cells)),
        }
    }

    fn distance(self, cell: i64) -> i64 {
        (self.first + cell * self.cell_size).abs()
    }
}

impl Stamp {
    pub(crate) fn new(grid: &Grid, circle: Circle) -> Self {
        let parameters = grid.parameters();
        let cell_size = parameters.cell_size.wide();
        Self {
            x: Axis::new(
                grid.min().x.wide(),
                cell_size,
                grid.width(),
                circle.centre.x.wide(),
            ),
            z: Axis::new(
                grid.min().z.wide(),
                cell_size,
                grid.depth(),
                circle.centre.z.wide(),
            ),
            reach: circle.radius.wide() + parameters.agent_radius.wide() + grid.half_diagonal(),
        }
    }

    /// Calls `visit(z, first x, x after the last)` for every row with a cell under the circle.
    pub(crate) fn for_each_row(&self, visit: impl FnMut(u32, u32, u32)) -> Option<Bounds> {
        spans(self.z, self.x, self.reach, visit)
    }

    /// As `for_each_row`, and `visit_column(x, first z, z after the last)` for every column.
    pub(crate) fn for_each_line(
        &self,
        mut visit_row: impl FnMut(u32, u32, u32),
        mut visit_column: impl FnMut(u32, u32, u32),
    ) -> Option<Bounds> {
        let left = (self.x.middle - COLUMNS_FOLLOWED as i64 / 2).max(0) as u32;
        let across = 2 * (self.reach / self.x.cell_size) + 2;
        if across > COLUMNS_FOLLOWED as i64 {
            self.for_each_row(visit_row);
            let bounds = spans(self.x, self.z, self.reach, visit_column)?;
            return Some(Bounds {
                rows: bounds.columns,
                columns: bounds.rows,
            });
        }
        // A row's span lies over the one before or under it: columns open at one row and close at another.
        let mut opened = [0; COLUMNS_FOLLOWED];
        let mut before = None;
        let mut next = 0;
        let bounds = self.for_each_row(|z, from, to| {
            visit_row(z, from, to);
            let (before_from, before_to) = before.unwrap_or((from, from));
            for x in (from..before_from).chain(before_to..to) {
                opened[(x - left) as usize] = z;
            }
            for x in (before_from..from).chain(to..before_to) {
                visit_column(x, opened[(x - left) as usize], z);
            }
            before = Some((from, to));
            next = z + 1;
        })?;
        let (from, to) = before?;
        for x in from..to {
            visit_column(x, opened[(x - left) as usize], next);
        }
        Some(bounds)
    }
}

/// Walks the circle's outline line by line upward instead of taking a root for each: a span's ends move little from one
/// to the next.
fn spans(lines: Axis, positions: Axis, reach: i64, mut visit: impl FnMut(u32, u32, u32)) -> Option<Bounds> {
    // Radius and padding are below 2^31.5 raw together, so that the squares fit.
    let reach_squared = reach * reach;
    let mut line = lines.middle;
    while line > 0 && lines.distance(line - 1) <= reach {
        line -= 1;
    }
    let (mut from, mut to) = (positions.middle, positions.middle);
    let (mut least_from, mut greatest_to) = (from, to);
    let mut seen: Option<(i64, i64)> = None;
    while line < lines.cells {
        let across = lines.distance(line);
        if across > reach {
            break;
        }
        let room = reach_squared - across * across;
        let is_under = |position: i64| {
            let along = positions.distance(position);
            along <= reach && along * along <= room
        };
        // Up to the middle spans grow, from there on they shrink; on it they may do either.
        if line <= lines.middle {
            while from > 0 && is_under(from - 1) {
                from -= 1;
            }
            while to < positions.cells && is_under(to) {
                to += 1;
            }
            least_from = least_from.min(from);
            greatest_to = greatest_to.max(to);
        }
        if line >= lines.middle {
            while from < positions.middle && !is_under(from) {
                from += 1;
            }
            while to > positions.middle && !is_under(to - 1) {
                to -= 1;
            }
        }
        if from < to {
            visit(line as u32, from as u32, to as u32);
            seen = Some((seen.map_or(line, |(first, _)| first), line));
        }
        line += 1;
    }
    seen.map(|(first, last)| Bounds {
        rows: (first as u32, last as u32),
        columns: (least_from as u32, greatest_to as u32 - 1),
    })
}
