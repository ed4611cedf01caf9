//! An index of border pieces by square cells: what a segment can meet is listed in the cells it passes.

use std::ops::Range;

use super::exact::Vector;
use crate::Point;
use crate::geometry::Bounds;

/// Most cells for each piece.
const CELLS_PER_PIECE: i64 = 16;

/// Numbers listed by cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    origin: Vector,
    /// Cells are 2^shift raw wide.
    shift: u32,
    width: i64,
    depth: i64,
    /// Cell i lists `items[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Default for Vector {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Cells {
    /// Lists each of `pieces` (a raw point on its line, its direction, and a rectangle of raw points around the floors of its
    /// points) in every cell that holds the floor of a point of it.
    pub(super) fn new(pieces: &[(Point, Vector, Bounds)]) -> Self {
        let Some(bounds) = pieces.iter().map(|piece| piece.2).reduce(Bounds::union) else {
            return Self::default();
        };
        let extent = Vector::between(bounds.min, bounds.max);
        // PERF: fewer make long lists, more make long ways (bench polyanya).
        let cells_max = CELLS_PER_PIECE * pieces.len() as i64 + 16;
        let mut shift = 0;
        while ((extent.x >> shift) + 1) * ((extent.z >> shift) + 1) > cells_max {
            shift += 1;
        }
        let mut cells = Self {
            origin: Vector::new(bounds.min.x.wide(), bounds.min.z.wide()),
            shift,
            width: (extent.x >> shift) + 1,
            depth: (extent.z >> shift) + 1,
            starts: Vec::new(),
            items: Vec::new(),
        };
        let mut entries: Vec<(u32, u32)> = Vec::with_capacity(pieces.len() * 2);
        for (number, (start, along, bounds)) in (0..).zip(pieces) {
            let rows = cells.row(bounds.min.z.wide())..=cells.row(bounds.max.z.wide());
            for row in rows {
                let columns = cells.columns_of_line(row, *start, *along, bounds);
                entries.extend(columns.map(|column| ((row * cells.width + column) as u32, number)));
            }
        }
        entries.sort_unstable();
        cells.starts = vec![0; (cells.width * cells.depth) as usize + 1];
        for &(cell, _) in &entries {
            cells.starts[cell as usize + 1] += 1;
        }
        for cell in 1..cells.starts.len() {
            cells.starts[cell] += cells.starts[cell - 1];
        }
        cells.items = entries.into_iter().map(|entry| entry.1).collect();
        cells
    }

    /// Calls `visit` with the list of each cell that the segment from a to b passes, in this order, until it returns true;
    /// whether it did.
    pub(super) fn any_along(&self, a: Point, b: Point, mut visit: impl FnMut(&[u32]) -> bool) -> bool {
        if self.starts.is_empty() {
            return false;
        }
        let (first, last) = (self.row(a.z.wide()), self.row(b.z.wide()));
        if first == last {
            let columns = (self.column(a.x.wide()), self.column(b.x.wide()));
            return self.any_in_row(first, columns, &mut visit);
        }
        let step = (last - first).signum();
        let along = Vector::between(a, b);
        let mut row = first;
        let mut entered = self.column(a.x.wide());
        loop {
            // Where the segment leaves the row: at its end, or at the line to the next.
            let left = if row == last {
                self.column(b.x.wide())
            } else {
                let line = self.origin.z + ((row + i64::from(step > 0)) << self.shift);
                self.column(a.x.wide() + ((line - a.z.wide()) * step * along.x).div_euclid(along.z.abs()))
            };
            if self.any_in_row(row, (entered, left), &mut visit) {
                return true;
            }
            if row == last {
                return false;
            }
            entered = left;
            row += step;
        }
    }

    /// A raw point of each cell and its list, cell by cell.
    pub(super) fn each(&self) -> impl Iterator<Item = (Point, &[u32])> {
        let cells = (0..self.depth).flat_map(|row| (0..self.width).map(move |column| (row, column)));
        cells.map(|(row, column)| {
            let x = self.origin.x + (column << self.shift);
            let z = self.origin.z + (row << self.shift);
            // Within the rectangle of what is listed.
            (Point::from_raw(x as i32, z as i32), self.list(row, column))
        })
    }

    /// Calls `visit` with the lists of the row of `point`, from its own cell to the left, together with the number of the
    /// cell and its least x, until it returns true. Nothing if the point lies outside of all cells.
    pub(super) fn leftward(&self, point: Point, mut visit: impl FnMut(&[u32], usize, i64) -> bool) {
        let row = (point.z.wide() - self.origin.z) >> self.shift;
        let column = (point.x.wide() - self.origin.x) >> self.shift;
        if !(0..self.depth).contains(&row) || !(0..self.width).contains(&column) {
            return;
        }
        for column in (0..=column).rev() {
            let cell = (row * self.width + column) as usize;
            if visit(
                self.list(row, column),
                cell,
                self.origin.x + (column << self.shift),
            ) {
                return;
            }
        }
    }

    fn any_in_row(&self, row: i64, (from, to): (i64, i64), visit: &mut impl FnMut(&[u32]) -> bool) -> bool {
        if from <= to {
            (from..=to).any(|column| visit(self.list(row, column)))
        } else {
            (to..=from).rev().any(|column| visit(self.list(row, column)))
        }
    }

    fn list(&self, row: i64, column: i64) -> &[u32] {
        let cell = (row * self.width + column) as usize;
        &self.items[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    /// The row of a coordinate, or the nearest.
    fn row(&self, z: i64) -> i64 {
        ((z - self.origin.z) >> self.shift).clamp(0, self.depth - 1)
    }

    /// The column of a coordinate, or the nearest.
    fn column(&self, x: i64) -> i64 {
        ((x - self.origin.x) >> self.shift).clamp(0, self.width - 1)
    }

    /// Columns that a line passes in a row, cut to a rectangle.
    fn columns_of_line(&self, row: i64, start: Point, along: Vector, bounds: &Bounds) -> Range<i64> {
        let (least, greatest) = (bounds.min.x.wide(), bounds.max.x.wide());
        let (mut low, mut high) = (least, greatest);
        if along.z != 0 {
            let line = self.origin.z + (row << self.shift);
            let x_at = |z: i64| {
                let z = z.clamp(bounds.min.z.wide(), bounds.max.z.wide() + 1);
                start.x.wide() + ((z - start.z.wide()) * along.x * along.z.signum()).div_euclid(along.z.abs())
            };
            let (one, other) = (x_at(line), x_at(line + (1 << self.shift)));
            low = one.min(other).clamp(least, greatest);
            high = one.max(other).clamp(least, greatest);
        }
        self.column(low)..self.column(high) + 1
    }
}
