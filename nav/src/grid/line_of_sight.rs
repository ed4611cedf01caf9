//! Line of sight between cells (spec 2.5, rule 2).
//!
//! The walk of the spec touches exactly the cells whose closed square meets the segment between the two centres: with the
//! offsets (i, j) from the first cell toward the second and the totals (nx, nz) those with 0 ≤ i ≤ nx, 0 ≤ j ≤ nz and
//! 2 × |i × nz − j × nx| ≤ nx + nz; equality is a corner, which a diagonal step needs free on both sides.

use super::{Cell, Lines};

/// The first cell met between `from` and `to` that is not free; `None`: they see each other. `from` itself is not looked at.
pub(crate) fn first_blocker(rows: &Lines, from: Cell, to: Cell) -> Option<Cell> {
    let (mut x, mut z) = (from.x as i32, from.z as i32);
    let (step_x, step_z) = ((to.x as i32 - x).signum(), (to.z as i32 - z).signum());
    let nx = i64::from(from.x.abs_diff(to.x));
    let nz = i64::from(from.z.abs_diff(to.z));
    // (1 + 2ix) × nz − (1 + 2iz) × nx
    let mut order = nz - nx;
    let cell = |x: i32, z: i32| Cell {
        x: x as u32,
        z: z as u32,
    };
    while (x as u32, z as u32) != (to.x, to.z) {
        if order == 0 {
            if !rows.get_signed(z, x + step_x) {
                return Some(cell(x + step_x, z));
            }
            if !rows.get_signed(z + step_z, x) {
                return Some(cell(x, z + step_z));
            }
        }
        let (along_x, along_z) = (order <= 0, order >= 0);
        if along_x {
            x += step_x;
            order += 2 * nz;
        }
        if along_z {
            z += step_z;
            order -= 2 * nx;
        }
        if !rows.get_signed(z, x) {
            return Some(cell(x, z));
        }
    }
    None
}

/// `cell` is one of those that the line of sight between `from` and `to` needs free; none of the three are the same.
#[inline(always)]
pub(crate) fn touches(from: Cell, to: Cell, cell: Cell) -> bool {
    let offset = |a: u32, b: u32| i64::from(a as i32 - b as i32);
    let (total_x, total_z) = (offset(to.x, from.x), offset(to.z, from.z));
    let (x, z) = (offset(cell.x, from.x), offset(cell.z, from.z));
    let cross = x * total_z - z * total_x;
    // Near the line, and between its ends in both coordinates: as far from one as it is not from the other.
    2 * cross.abs() <= total_x.abs() + total_z.abs()
        && x.abs() + (total_x - x).abs() == total_x.abs()
        && z.abs() + (total_z - z).abs() == total_z.abs()
}
