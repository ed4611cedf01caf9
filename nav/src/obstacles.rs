//! Standing circles over a grid (spec 2.6): the free cells, kept up to date circle by circle.
//!
//! Each cell counts the circles that lie on it, so that equal ones add up and any one can go again; free cells are kept as
//! bits, by row and by column, ready to be searched. The circles of one query only clear bits, which are then put back
//! within the circles' bounds: a query neither copies nor changes the static grid and leaves nothing behind.

use crate::Circle;
use crate::grid::{Bounds, Cell, Grid, JumpPoints, Lines, Numbering, Stamp, Stops, WORD};

/// About so many lines lie under a person.
const LINES_UNDER_A_CIRCLE: usize = 8;

/// Free cells of a grid under its standing circles and those of the query in progress.
#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    rows: Layer,
    columns: Layer,
    /// Standing circles on each cell, by index.
    counts: Vec<u16>,
    /// Where the circles of the query in progress lie.
    laid: Vec<Bounds>,
}

/// The free cells along one axis.
#[derive(Clone, Debug)]
struct Layer {
    /// Walkable and nobody stands there.
    standing: Lines,
    /// And no circle of the query in progress either.
    free: Lines,
    stops: Stops,
}

impl Overlay {
    /// Nobody stands on `grid`.
    pub(crate) fn new(grid: &Grid) -> Self {
        Self {
            rows: Layer::new(grid.rows()),
            columns: Layer::new(grid.columns()),
            counts: vec![0; grid.width() as usize * grid.depth() as usize],
            laid: Vec::new(),
        }
    }

    /// Free cells by row.
    pub(crate) fn rows(&self) -> &Lines {
        &self.rows.free
    }

    /// The free cells as they are now, as the space of a search for `goal`.
    pub(crate) fn jump_points(&mut self, numbering: Numbering, goal: Cell) -> JumpPoints<'_> {
        JumpPoints::new(
            (&self.rows.free, &mut self.rows.stops),
            (&self.columns.free, &mut self.columns.stops),
            numbering,
            goal,
        )
    }

    /// The circle stands from now on; at most 65,535 over one cell, and no circle is laid.
    pub(crate) fn block(&mut self, grid: &Grid, circle: Circle) {
        let width = grid.width();
        let bounds = Stamp::new(grid, circle).for_each_row(|z, from, to| {
            for x in from..to {
                let count = &mut self.counts[(z * width + x) as usize];
                *count += 1;
                if *count == 1 {
                    self.rows.clear(z, x);
                    self.columns.clear(x, z);
                }
            }
        });
        self.touch(bounds);
    }

    /// One such circle does not stand any more; no circle is laid.
    pub(crate) fn unblock(&mut self, grid: &Grid, circle: Circle) {
        let width = grid.width();
        let bounds = Stamp::new(grid, circle).for_each_row(|z, from, to| {
            for x in from..to {
                let count = &mut self.counts[(z * width + x) as usize];
                *count -= 1;
                if *count == 0 && grid.is_walkable(Cell { x, z }) {
                    self.rows.set(z, x);
                    self.columns.set(x, z);
                }
            }
        });
        self.touch(bounds);
    }

    /// Nobody stands.
    pub(crate) fn unblock_all(&mut self, grid: &Grid) {
        self.counts.fill(0);
        self.rebuild(grid);
    }

    /// The walkable cells have changed; who stands stays. `grid` has the size and place of the one before.
    pub(crate) fn rebuild(&mut self, grid: &Grid) {
        self.rows.reset(grid.rows());
        self.columns.reset(grid.columns());
        for (index, _) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let cell = grid.cell_at(index as u32);
            self.rows.clear(cell.z, cell.x);
            self.columns.clear(cell.x, cell.z);
        }
    }

    /// The circle is in the way until `lift`.
    ///
    /// PERF: whole spans of words, no counting; `peers * stamp`.
    pub(crate) fn lay(&mut self, grid: &Grid, circle: Circle) {
        let (rows, columns) = (&mut self.rows.free, &mut self.columns.free);
        let bounds = Stamp::new(grid, circle).for_each_line(
            |z, from, to| clear_span(rows, z, from, to),
            |x, from, to| clear_span(columns, x, from, to),
        );
        self.laid.extend(bounds);
    }

    /// Every circle of the query is laid.
    pub(crate) fn settle(&mut self) {
        self.touch_laid();
    }

    /// Takes up every circle that was laid.
    pub(crate) fn lift(&mut self) {
        if self.lies_everywhere() {
            self.rows.free.clone_from(&self.rows.standing);
            self.columns.free.clone_from(&self.columns.standing);
        } else {
            for bounds in &self.laid {
                self.rows.restore(bounds.rows, bounds.columns);
                self.columns.restore(bounds.columns, bounds.rows);
            }
        }
        self.touch_laid();
        self.laid.clear();
    }

    fn touch_laid(&mut self) {
        if self.lies_everywhere() {
            self.rows.stops.touch_all();
            self.columns.stops.touch_all();
        } else {
            for index in 0..self.laid.len() {
                self.touch(Some(self.laid[index]));
            }
        }
    }

    /// So many circles are laid on so small a grid that all of it is quicker done than each of their bounds.
    fn lies_everywhere(&self) -> bool {
        self.laid.len() * LINES_UNDER_A_CIRCLE >= self.rows.free.words().len()
    }

    fn touch(&mut self, bounds: Option<Bounds>) {
        if let Some(Bounds { rows, columns }) = bounds {
            self.rows.stops.touch(&self.rows.free, rows, columns);
            self.columns.stops.touch(&self.columns.free, columns, rows);
        }
    }
}

impl Layer {
    fn new(walkable: &Lines) -> Self {
        Self {
            standing: walkable.clone(),
            free: walkable.clone(),
            stops: Stops::new(walkable),
        }
    }

    fn reset(&mut self, walkable: &Lines) {
        self.standing.clone_from(walkable);
        self.free.clone_from(walkable);
        self.stops.touch_all();
    }

    fn set(&mut self, line: u32, position: u32) {
        self.standing.set(line, position);
        self.free.set(line, position);
    }

    fn clear(&mut self, line: u32, position: u32) {
        self.standing.clear(line, position);
        self.free.clear(line, position);
    }

    /// Puts the words of a range of lines back that hold a range of positions; last ones included.
    fn restore(&mut self, lines: (u32, u32), positions: (u32, u32)) {
        for line in lines.0..=lines.1 {
            let first = self.free.first_word(line);
            let words = first + (positions.0 / WORD) as usize..=first + (positions.1 / WORD) as usize;
            self.free.words_mut()[words.clone()].copy_from_slice(&self.standing.words()[words]);
        }
    }
}

/// Clears the positions `from` to `to` − 1.
#[inline(always)]
fn clear_span(lines: &mut Lines, line: u32, from: u32, to: u32) {
    let mut first = lines.first_word(line) + (from / WORD) as usize;
    let words = lines.words_mut();
    let shift = from % WORD;
    let mut left = to - from;
    if shift + left <= WORD {
        words[first] &= !((!0 >> (WORD - left)) << shift);
        return;
    }
    words[first] &= !(!0 << shift);
    left -= WORD - shift;
    while left >= WORD {
        first += 1;
        words[first] = 0;
        left -= WORD;
    }
    if left > 0 {
        words[first + 1] &= !0 << left;
    }
}
