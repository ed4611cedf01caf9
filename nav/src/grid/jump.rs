//! Jump points (spec 2.4) over rows and columns of free cells, as the space that the A* searches.

use super::stops::Stops;
use super::{Cell, Lines, Numbering};
use crate::search::{Part, Space, Visitor};

/// Cost of a cardinal step.
const CARDINAL: u32 = 10;
/// Cost of a diagonal step.
const DIAGONAL: u32 = 14;

/// The arrival of the start: every direction is tried.
pub(crate) const START: u8 = 8;

/// Steps (dx, dz) by arrival number.
const DIRECTIONS: [(i32, i32); 8] = [
    (1, 0),
    (-1, 0),
    (0, 1),
    (0, -1),
    (1, 1),
    (1, -1),
    (-1, 1),
    (-1, -1),
];

/// The number of a direction.
const fn arrival(dx: i32, dz: i32) -> u8 {
    let mut number = 0;
    while DIRECTIONS[number].0 != dx || DIRECTIONS[number].1 != dz {
        number += 1;
    }
    number as u8
}

/// 10 per cardinal and 14 per diagonal step over open ground.
fn octile(a: Cell, b: Cell) -> u32 {
    let (dx, dz) = (a.x.abs_diff(b.x), a.z.abs_diff(b.z));
    // Below 2^28: no side has more than 2^24 cells.
    CARDINAL
        .wrapping_mul(dx.max(dz))
        .wrapping_add((DIAGONAL - CARDINAL).wrapping_mul(dx.min(dz)))
}

/// The free cells of one query and its goal.
#[derive(Debug)]
pub(crate) struct JumpPoints<'a> {
    /// Free cells by row.
    pub(crate) rows: &'a Lines,
    columns: &'a Lines,
    row_stops: &'a mut Stops,
    column_stops: &'a mut Stops,
    numbering: Numbering,
    goal: Place,
}

/// A cell and its two bits.
#[derive(Clone, Copy, Debug)]
struct Place {
    cell: Cell,
    /// Its address in the rows.
    row: usize,
    /// Its address in the columns.
    column: usize,
}

impl<'a> JumpPoints<'a> {
    pub(crate) fn new(
        (rows, row_stops): (&'a Lines, &'a mut Stops),
        (columns, column_stops): (&'a Lines, &'a mut Stops),
        numbering: Numbering,
        goal: Cell,
    ) -> Self {
        let goal = Place {
            cell: goal,
            row: rows.address(goal.z, goal.x),
            column: columns.address(goal.x, goal.z),
        };
        row_stops.plant(rows, goal.row);
        column_stops.plant(columns, goal.column);
        Self {
            rows,
            columns,
            row_stops,
            column_stops,
            numbering,
            goal,
        }
    }

    fn place(&self, node: u32) -> Place {
        let cell = self.numbering.cell_at(node);
        Place {
            cell,
            row: self.rows.address(cell.z, cell.x),
            column: self.columns.address(cell.x, cell.z),
        }
    }

    /// The cell is not free that lies (dx, dz) steps from `place`; each is −1, 0 or 1.
    #[inline(always)]
    fn is_blocked(&self, place: Place, dx: i32, dz: i32) -> bool {
        let address = place
            .row
            .wrapping_add_signed(dx as isize)
            .wrapping_add_signed(dz as isize * self.rows.line_bits() as isize);
        !self.rows.get_at(address)
    }

    /// The jump along x: where it stops in the rows, and whether at a jump point.
    #[inline(always)]
    fn jump_x<const DX: i32>(&mut self, from: usize) -> (usize, bool) {
        if DX > 0 {
            self.row_stops.jump_up(self.rows, from)
        } else {
            self.row_stops.jump_down(self.rows, from)
        }
    }

    /// The jump along z: where it stops in the columns, and whether at a jump point.
    #[inline(always)]
    fn jump_z<const DZ: i32>(&mut self, from: usize) -> (usize, bool) {
        if DZ > 0 {
            self.column_stops.jump_up(self.columns, from)
        } else {
            self.column_stops.jump_down(self.columns, from)
        }
    }

    /// The number of steps of a diagonal jump, whose first step is legal.
    ///
    /// PERF: the two cardinal jumps of a step tell of two of the three cells that the next one needs; `peers * search`.
    fn jump_diagonal<const DX: i32, const DZ: i32>(&mut self, from: Place) -> Option<u32> {
        let row_step = self.rows.line_bits() as isize * DZ as isize + DX as isize;
        let column_step = self.columns.line_bits() as isize * DX as isize + DZ as isize;
        let (mut row, mut column) = (from.row, from.column);
        let mut steps = 0;
        loop {
            row = row.wrapping_add_signed(row_step);
            column = column.wrapping_add_signed(column_step);
            steps += 1;
            let (end_x, found_x) = self.jump_x::<DX>(row);
            let (end_z, found_z) = self.jump_z::<DZ>(column);
            if found_x || found_z || row == self.goal.row {
                return Some(steps);
            }
            let is_next_legal = end_x != row.wrapping_add_signed(DX as isize)
                && end_z != column.wrapping_add_signed(DZ as isize)
                && self.rows.get_at(row.wrapping_add_signed(row_step));
            if !is_next_legal {
                return None;
            }
        }
    }

    /// Returns whether the next cell along x is free.
    #[inline(always)]
    fn visit_x<const DX: i32>(&mut self, from: Place, visitor: &mut Visitor<'_>) -> bool {
        let (end, found) = self.jump_x::<DX>(from.row);
        if found {
            self.visit::<DX, 0>(from, end.abs_diff(from.row) as u32, visitor);
        }
        found || end != from.row.wrapping_add_signed(DX as isize)
    }

    /// Returns whether the next cell along z is free.
    #[inline(always)]
    fn visit_z<const DZ: i32>(&mut self, from: Place, visitor: &mut Visitor<'_>) -> bool {
        let (end, found) = self.jump_z::<DZ>(from.column);
        if found {
            self.visit::<0, DZ>(from, end.abs_diff(from.column) as u32, visitor);
        }
        found || end != from.column.wrapping_add_signed(DZ as isize)
    }

    /// `between`: the two cells beside the first step are free.
    #[inline(always)]
    fn visit_diagonal<const DX: i32, const DZ: i32>(
        &mut self,
        from: Place,
        between: bool,
        visitor: &mut Visitor<'_>,
    ) {
        if between
            && !self.is_blocked(from, DX, DZ)
            && let Some(steps) = self.jump_diagonal::<DX, DZ>(from)
        {
            self.visit::<DX, DZ>(from, steps, visitor);
        }
    }

    #[inline(always)]
    fn visit<const DX: i32, const DZ: i32>(&self, from: Place, steps: u32, visitor: &mut Visitor<'_>) {
        let end = Cell {
            x: from.cell.x.wrapping_add_signed(DX.wrapping_mul(steps as i32)),
            z: from.cell.z.wrapping_add_signed(DZ.wrapping_mul(steps as i32)),
        };
        let cost = if DX != 0 && DZ != 0 { DIAGONAL } else { CARDINAL };
        let next = self.numbering.index_of(end);
        let arrival = const { arrival(DX, DZ) };
        visitor.visit(next, cost.wrapping_mul(steps), arrival, || {
            octile(end, self.goal.cell)
        });
    }

    /// After a jump along x: straight on, and round each corner just passed.
    fn expand_x<const DX: i32>(&mut self, from: Place, visitor: &mut Visitor<'_>) {
        let ahead = self.visit_x::<DX>(from, visitor);
        if self.is_blocked(from, -DX, 1) {
            let aside = self.visit_z::<1>(from, visitor);
            self.visit_diagonal::<DX, 1>(from, ahead && aside, visitor);
        }
        if self.is_blocked(from, -DX, -1) {
            let aside = self.visit_z::<-1>(from, visitor);
            self.visit_diagonal::<DX, -1>(from, ahead && aside, visitor);
        }
    }

    /// As `expand_x`, after a jump along z.
    fn expand_z<const DZ: i32>(&mut self, from: Place, visitor: &mut Visitor<'_>) {
        let ahead = self.visit_z::<DZ>(from, visitor);
        if self.is_blocked(from, 1, -DZ) {
            let aside = self.visit_x::<1>(from, visitor);
            self.visit_diagonal::<1, DZ>(from, ahead && aside, visitor);
        }
        if self.is_blocked(from, -1, -DZ) {
            let aside = self.visit_x::<-1>(from, visitor);
            self.visit_diagonal::<-1, DZ>(from, ahead && aside, visitor);
        }
    }

    fn expand_diagonal<const DX: i32, const DZ: i32>(&mut self, from: Place, visitor: &mut Visitor<'_>) {
        let ahead_x = self.visit_x::<DX>(from, visitor);
        let ahead_z = self.visit_z::<DZ>(from, visitor);
        self.visit_diagonal::<DX, DZ>(from, ahead_x && ahead_z, visitor);
    }

    /// The start's ways: its rest are the diagonal jumps that lead away from the goal. Over open ground they are the longest
    /// walks of all, and mostly nobody comes back for them.
    fn expand_start(&mut self, from: Place, part: Part, visitor: &mut Visitor<'_>) -> Option<u32> {
        if part == Part::First {
            self.visit_x::<1>(from, visitor);
            self.visit_x::<-1>(from, visitor);
            self.visit_z::<1>(from, visitor);
            self.visit_z::<-1>(from, visitor);
        }
        let put_off = [
            self.visit_in_part::<1, 1>(from, part, visitor),
            self.visit_in_part::<1, -1>(from, part, visitor),
            self.visit_in_part::<-1, 1>(from, part, visitor),
            self.visit_in_part::<-1, -1>(from, part, visitor),
        ];
        put_off.into_iter().flatten().min()
    }

    /// A diagonal jump from the start if it belongs to `part`; by how much f grows on it at least if it is put off.
    fn visit_in_part<const DX: i32, const DZ: i32>(
        &mut self,
        from: Place,
        part: Part,
        visitor: &mut Visitor<'_>,
    ) -> Option<u32> {
        if self.is_blocked(from, DX, 0) || self.is_blocked(from, 0, DZ) || self.is_blocked(from, DX, DZ) {
            return None;
        }
        let next = Cell {
            x: from.cell.x.wrapping_add_signed(DX),
            z: from.cell.z.wrapping_add_signed(DZ),
        };
        // The heuristic is convex: no later step adds less.
        let more = DIAGONAL + octile(next, self.goal.cell) - octile(from.cell, self.goal.cell);
        let own_part = if more > 0 { Part::Rest } else { Part::First };
        if part == own_part {
            self.visit_diagonal::<DX, DZ>(from, true, visitor);
        }
        (part != own_part && part == Part::First).then_some(more)
    }
}

impl Drop for JumpPoints<'_> {
    /// The next search has another goal.
    fn drop(&mut self) {
        self.row_stops.uproot(self.goal.row);
        self.column_stops.uproot(self.goal.column);
    }
}

impl Space for JumpPoints<'_> {
    fn heuristic(&self, node: u32) -> u32 {
        octile(self.numbering.cell_at(node), self.goal.cell)
    }

    fn expand(&mut self, node: u32, arrival: u8, part: Part, visitor: &mut Visitor<'_>) -> Option<u32> {
        let from = self.place(node);
        match arrival {
            0 => self.expand_x::<1>(from, visitor),
            1 => self.expand_x::<-1>(from, visitor),
            2 => self.expand_z::<1>(from, visitor),
            3 => self.expand_z::<-1>(from, visitor),
            4 => self.expand_diagonal::<1, 1>(from, visitor),
            5 => self.expand_diagonal::<1, -1>(from, visitor),
            6 => self.expand_diagonal::<-1, 1>(from, visitor),
            7 => self.expand_diagonal::<-1, -1>(from, visitor),
            _ => return self.expand_start(from, part, visitor),
        }
        None
    }
}
