//! Cells by number: z × width + x.

use super::{CELLS_MAX, Cell};

/// Bits that the reciprocal is scaled by. With indices and widths of at most 2²⁴ its error stays below one index.
const SCALE: u32 = 48;

const _: () = assert!(CELLS_MAX <= 1 << (SCALE / 2));

/// The numbers of the cells of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    width: u32,
    /// 2⁴⁸ / width, rounded up.
    reciprocal: u64,
}

impl Numbering {
    /// Rows of `width` cells, 1 to [`CELLS_MAX`].
    pub(crate) fn new(width: u32) -> Self {
        Self {
            width,
            reciprocal: (1u64 << SCALE).div_ceil(u64::from(width)),
        }
    }

    /// Below [`CELLS_MAX`] for a cell of the grid, so that nothing wraps.
    #[inline]
    pub(crate) fn index_of(self, cell: Cell) -> u32 {
        cell.z.wrapping_mul(self.width).wrapping_add(cell.x)
    }

    /// PERF: a division by multiplication, for every node expanded; `peers * search`.
    #[inline]
    pub(crate) fn cell_at(self, index: u32) -> Cell {
        let z = ((u128::from(index) * u128::from(self.reciprocal)) >> SCALE) as u32;
        Cell {
            x: index.wrapping_sub(z.wrapping_mul(self.width)),
            z,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_divides_exactly() {
        let greatest = CELLS_MAX as u32 - 1;
        for width in (1..2_000).chain([4_095, 4_096, 4_097, 65_521, 1 << 20, greatest, greatest + 1]) {
            let numbering = Numbering::new(width);
            let rows = greatest / width;
            let near_rows = [0, 1, rows / 2, rows.saturating_sub(1), rows].map(|row| row * width);
            for index in near_rows
                .into_iter()
                .flat_map(|index| [index, index.saturating_sub(1), index + 1])
            {
                let index = index.min(greatest);
                let cell = numbering.cell_at(index);
                assert_eq!(
                    (cell.x, cell.z),
                    (index % width, index / width),
                    "{index} by {width}"
                );
                assert_eq!(numbering.index_of(cell), index);
            }
        }
    }
}
