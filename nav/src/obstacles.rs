//! Standing circles over a grid (spec 2.6): the free cells, kept up to date circle by circle.
//!
//! Each cell counts the circles that lie on it, so that equal ones add up and any one can go again; free cells are kept as
//! bits, by row and by column, ready to be searched. The circles of one query only clear bits and write down what was
//! there, so that a query neither copies nor changes the static grid and leaves nothing behind.

use crate::Circle;
use crate::grid::{Cell, Grid, Lines, WORD};

/// Free cells of a grid under its standing circles.
#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    rows: Lines,
    columns: Lines,
    /// Circles on each cell, by index.
    counts: Vec<u16>,
    /// Words that the circles of the query in progress have changed, with what they were.
    undo: Vec<Undo>,
}

#[derive(Clone, Copy, Debug)]
struct Undo {
    in_columns: bool,
    word: u32,
    bits: u64,
}

impl Overlay {
    /// Nobody stands on `grid`.
    pub(crate) fn new(grid: &Grid) -> Self {
        Self {
            rows: grid.rows().clone(),
            columns: grid.columns().clone(),
            counts: vec![0; grid.width() as usize * grid.depth() as usize],
            undo: Vec::new(),
        }
    }

    /// Free cells by row.
    pub(crate) fn rows(&self) -> &Lines {
        &self.rows
    }

    /// Free cells by column.
    pub(crate) fn columns(&self) -> &Lines {
        &self.columns
    }

    /// The circle stands from now on; at most 65,535 over one cell.
    pub(crate) fn block(&mut self, grid: &Grid, circle: Circle) {
        let width = grid.width();
        Stamp::new(grid, circle).for_each_row(|z, from, to| {
            for x in from..to {
                let count = &mut self.counts[(z * width + x) as usize];
                *count += 1;
                if *count == 1 {
                    self.rows.clear(z, x);
                    self.columns.clear(x, z);
                }
            }
        });
    }

    /// One such circle does not stand any more.
    pub(crate) fn unblock(&mut self, grid: &Grid, circle: Circle) {
        let width = grid.width();
        Stamp::new(grid, circle).for_each_row(|z, from, to| {
            for x in from..to {
                let count = &mut self.counts[(z * width + x) as usize];
                *count -= 1;
                if *count == 0 && grid.is_walkable(Cell { x, z }) {
                    self.rows.set(z, x);
                    self.columns.set(x, z);
                }
            }
        });
    }

    /// Nobody stands.
    pub(crate) fn unblock_all(&mut self, grid: &Grid) {
        self.counts.fill(0);
        self.rows.clone_from(grid.rows());
        self.columns.clone_from(grid.columns());
    }

    /// The walkable cells have changed; who stands stays. `grid` has the size and place of the one before.
    pub(crate) fn rebuild(&mut self, grid: &Grid) {
        self.rows.clone_from(grid.rows());
        self.columns.clone_from(grid.columns());
        let width = grid.width();
        for (index, _) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (x, z) = (index as u32 % width, index as u32 / width);
            self.rows.clear(z, x);
            self.columns.clear(x, z);
        }
    }

    /// The circle is in the way until `lift`.
    ///
    /// PERF: whole spans of words, no counting; `peers * stamp`.
    pub(crate) fn lay(&mut self, grid: &Grid, circle: Circle) {
        let stamp = Stamp::new(grid, circle);
        stamp.for_each_row(|z, from, to| clear_span(&mut self.rows, z, from, to, false, &mut self.undo));
        stamp.for_each_column(|x, from, to| {
            clear_span(&mut self.columns, x, from, to, true, &mut self.undo);
        });
    }

    /// Takes up every circle that was laid; nothing was blocked or unblocked since the first of them.
    pub(crate) fn lift(&mut self) {
        // Backwards: a word may be there several times, and the oldest entry is the true one.
        while let Some(Undo {
            in_columns,
            word,
            bits,
        }) = self.undo.pop()
        {
            let lines = if in_columns {
                &mut self.columns
            } else {
                &mut self.rows
            };
            lines.words_mut()[word as usize] = bits;
        }
    }
}

fn clear_span(lines: &mut Lines, line: u32, from: u32, to: u32, in_columns: bool, undo: &mut Vec<Undo>) {
    let first = lines.first_word(line);
    let (from_word, last_word) = (from / WORD, (to - 1) / WORD);
    for index in from_word..=last_word {
        let mut mask = !0;
        if index == from_word {
            mask &= !0 << (from % WORD);
        }
        if index == last_word {
            mask &= !0 >> (WORD - 1 - (to - 1) % WORD);
        }
        let word = first + index as usize;
        let bits = &mut lines.words_mut()[word];
        if *bits & mask != 0 {
            undo.push(Undo {
                in_columns,
                word: word as u32,
                bits: *bits,
            });
            *bits &= !mask;
        }
    }
}

/// The cells under a circle: those whose centre is within its radius + agentRadius + half a cell's diagonal of its centre.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    x: Axis,
    z: Axis,
    /// Raw.
    reach: i64,
}

/// One coordinate of the cell centres and of the circle's, raw.
#[derive(Clone, Copy, Debug)]
struct Axis {
    min: i64,
    cell_size: i64,
    cells: i64,
    centre: i64,
    /// The first cell whose centre is not below the circle's, 0 to `cells`.
    middle: i64,
}

impl Stamp {
    fn new(grid: &Grid, circle: Circle) -> Self {
        let parameters = grid.parameters();
        let axis = |min: i64, cells: u32, centre: i64| {
            let cell_size = parameters.cell_size.wide();
            // ((2i + 1) × cs) >> 1 ≥ d is (2i + 1) × cs ≥ 2d, since d is whole.
            let over = 2 * (centre - min) - cell_size;
            let middle = (over + 2 * cell_size - 1).div_euclid(2 * cell_size);
            Axis {
                min,
                cell_size,
                cells: i64::from(cells),
                centre,
                middle: middle.clamp(0, i64::from(cells)),
            }
        };
        Self {
            x: axis(grid.min().x.wide(), grid.width(), circle.centre.x.wide()),
            z: axis(grid.min().z.wide(), grid.depth(), circle.centre.z.wide()),
            reach: circle.radius.wide() + parameters.agent_radius.wide() + grid.half_diagonal(),
        }
    }

    /// Calls `visit(z, first x, x after the last)` for every row with a cell under the circle.
    fn for_each_row(&self, visit: impl FnMut(u32, u32, u32)) {
        spans(self.z, self.x, self.reach, visit);
    }

    /// Calls `visit(x, first z, z after the last)` for every column with a cell under the circle.
    fn for_each_column(&self, visit: impl FnMut(u32, u32, u32)) {
        spans(self.x, self.z, self.reach, visit);
    }
}

/// Walks the circle's outline instead of taking a root per line: from one line to the next a span's ends move little.
fn spans(lines: Axis, positions: Axis, reach: i64, mut visit: impl FnMut(u32, u32, u32)) {
    // The largest radius and padding together stay below 2^31.5 raw, so that the squares fit.
    let reach_squared = reach * reach;
    let distance =
        |axis: Axis, index: i64| (axis.min + (((2 * index + 1) * axis.cell_size) >> 1) - axis.centre).abs();
    let (mut from, mut to) = (positions.middle, positions.middle);
    // True if the line is within reach at all; no farther one on that side is, otherwise.
    let mut look = |line: i64| {
        let across = distance(lines, line);
        if across > reach {
            return false;
        }
        let room = reach_squared - across * across;
        let is_under = |index: i64| {
            let along = distance(positions, index);
            along <= reach && along * along <= room
        };
        while from > 0 && is_under(from - 1) {
            from -= 1;
        }
        while from < positions.middle && !is_under(from) {
            from += 1;
        }
        while to < positions.cells && is_under(to) {
            to += 1;
        }
        while to > positions.middle && !is_under(to - 1) {
            to -= 1;
        }
        if from < to {
            visit(line as u32, from as u32, to as u32);
        }
        true
    };
    let mut line = lines.middle;
    while line < lines.cells && look(line) {
        line += 1;
    }
    line = lines.middle - 1;
    while line >= 0 && look(line) {
        line -= 1;
    }
}
