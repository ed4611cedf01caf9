//! Jump points (spec 2.4) over rows and columns of free cells, as the space that the A* searches.

use super::stops::Stops;
use super::{Cell, Lines};
use crate::search::{Space, Step};

/// Cost of a cardinal step.
pub(crate) const CARDINAL: u32 = 10;
/// Cost of a diagonal step.
pub(crate) const DIAGONAL: u32 = 14;

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

/// The free cells of one query and its goal.
#[derive(Debug)]
pub(crate) struct JumpPoints<'a> {
    /// Free cells by row.
    pub(crate) rows: &'a Lines,
    /// The same by column.
    pub(crate) columns: &'a Lines,
    /// Where jumps along x end.
    pub(crate) row_stops: &'a mut Stops,
    /// Where jumps along z end.
    pub(crate) column_stops: &'a mut Stops,
    /// Of the grid.
    pub(crate) width: u32,
    /// A free cell.
    pub(crate) goal: Cell,
}

/// 10 per cardinal and 14 per diagonal step over open ground.
pub(crate) fn octile(a: Cell, b: Cell) -> u32 {
    let (dx, dz) = (a.x.abs_diff(b.x), a.z.abs_diff(b.z));
    CARDINAL * dx.max(dz) + (DIAGONAL - CARDINAL) * dx.min(dz)
}

impl JumpPoints<'_> {
    fn cell(&self, node: u32) -> Cell {
        Cell {
            x: node % self.width,
            z: node / self.width,
        }
    }

    fn is_free(&self, x: i32, z: i32) -> bool {
        self.rows.get_signed(z, x)
    }

    fn step(&self, end: Cell, cost: u32, arrival: u8) -> Step {
        Step {
            next: end.z * self.width + end.x,
            cost,
            arrival,
            heuristic: octile(end, self.goal),
        }
    }

    /// The jump along x; its end's x.
    #[inline]
    fn jump_x<const DX: i32>(&mut self, x: u32, z: u32) -> Option<u32> {
        let goal = if z == self.goal.z { self.goal.x as i32 } else { -1 };
        if DX > 0 {
            self.row_stops.jump_up(self.rows, z, x, goal)
        } else {
            self.row_stops.jump_down(self.rows, z, x, goal)
        }
    }

    /// The jump along z; its end's z.
    #[inline]
    fn jump_z<const DZ: i32>(&mut self, x: u32, z: u32) -> Option<u32> {
        let goal = if x == self.goal.x { self.goal.z as i32 } else { -1 };
        if DZ > 0 {
            self.column_stops.jump_up(self.columns, x, z, goal)
        } else {
            self.column_stops.jump_down(self.columns, x, z, goal)
        }
    }

    /// Both coordinates change by 1 a step.
    #[inline]
    fn jump_diagonal<const DX: i32, const DZ: i32>(&mut self, x: u32, z: u32) -> Option<Cell> {
        let (mut x, mut z) = (x as i32, z as i32);
        loop {
            if !(self.is_free(x + DX, z) && self.is_free(x, z + DZ) && self.is_free(x + DX, z + DZ)) {
                return None;
            }
            (x, z) = (x + DX, z + DZ);
            let cell = Cell {
                x: x as u32,
                z: z as u32,
            };
            if cell == self.goal
                || self.jump_x::<DX>(cell.x, cell.z).is_some()
                || self.jump_z::<DZ>(cell.x, cell.z).is_some()
            {
                return Some(cell);
            }
        }
    }

    fn visit_x<const DX: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        if let Some(x) = self.jump_x::<DX>(from.x, from.z) {
            let cost = CARDINAL * x.abs_diff(from.x);
            visit(self.step(Cell { x, z: from.z }, cost, const { arrival(DX, 0) }));
        }
    }

    fn visit_z<const DZ: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        if let Some(z) = self.jump_z::<DZ>(from.x, from.z) {
            let cost = CARDINAL * z.abs_diff(from.z);
            visit(self.step(Cell { x: from.x, z }, cost, const { arrival(0, DZ) }));
        }
    }

    fn visit_diagonal<const DX: i32, const DZ: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        if let Some(end) = self.jump_diagonal::<DX, DZ>(from.x, from.z) {
            let cost = DIAGONAL * end.x.abs_diff(from.x);
            visit(self.step(end, cost, const { arrival(DX, DZ) }));
        }
    }

    /// After a jump along x: straight on, and round each corner just passed.
    fn expand_x<const DX: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        let (x, z) = (from.x as i32, from.z as i32);
        self.visit_x::<DX>(from, visit);
        if !self.is_free(x - DX, z + 1) {
            self.visit_z::<1>(from, visit);
            self.visit_diagonal::<DX, 1>(from, visit);
        }
        if !self.is_free(x - DX, z - 1) {
            self.visit_z::<-1>(from, visit);
            self.visit_diagonal::<DX, -1>(from, visit);
        }
    }

    fn expand_z<const DZ: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        let (x, z) = (from.x as i32, from.z as i32);
        self.visit_z::<DZ>(from, visit);
        if !self.is_free(x + 1, z - DZ) {
            self.visit_x::<1>(from, visit);
            self.visit_diagonal::<1, DZ>(from, visit);
        }
        if !self.is_free(x - 1, z - DZ) {
            self.visit_x::<-1>(from, visit);
            self.visit_diagonal::<-1, DZ>(from, visit);
        }
    }

    fn expand_diagonal<const DX: i32, const DZ: i32>(&mut self, from: Cell, visit: &mut impl FnMut(Step)) {
        self.visit_x::<DX>(from, visit);
        self.visit_z::<DZ>(from, visit);
        self.visit_diagonal::<DX, DZ>(from, visit);
    }
}

impl Space for JumpPoints<'_> {
    fn heuristic(&self, node: u32) -> u32 {
        octile(self.cell(node), self.goal)
    }

    fn expand(&mut self, node: u32, arrival: u8, visit: &mut impl FnMut(Step)) {
        let from = self.cell(node);
        match arrival {
            0 => self.expand_x::<1>(from, visit),
            1 => self.expand_x::<-1>(from, visit),
            2 => self.expand_z::<1>(from, visit),
            3 => self.expand_z::<-1>(from, visit),
            4 => self.expand_diagonal::<1, 1>(from, visit),
            5 => self.expand_diagonal::<1, -1>(from, visit),
            6 => self.expand_diagonal::<-1, 1>(from, visit),
            7 => self.expand_diagonal::<-1, -1>(from, visit),
            _ => {
                self.visit_x::<1>(from, visit);
                self.visit_x::<-1>(from, visit);
                self.visit_z::<1>(from, visit);
                self.visit_z::<-1>(from, visit);
                self.visit_diagonal::<1, 1>(from, visit);
                self.visit_diagonal::<1, -1>(from, visit);
                self.visit_diagonal::<-1, 1>(from, visit);
                self.visit_diagonal::<-1, -1>(from, visit);
            }
        }
    }
}
