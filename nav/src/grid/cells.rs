//! A rectangle of cells as bits, and spans of columns in it.

use std::ops::Range;

use super::Lines;

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// One bit per cell, row by row; each row begins a new word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    width: u32,
    depth: u32,
    words_per_row: usize,
    words: Vec<u64>,
}

/// Some columns of some rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Columns (x).
    pub columns: Range<u32>,
    /// Rows (z).
    pub rows: Range<u32>,
}

impl Window {
    /// No cell lies in it.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty() || self.rows.is_empty()
    }

    /// The smallest window around both; an empty one adds nothing.
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        let around = |one: &Range<u32>, two: &Range<u32>| one.start.min(two.start)..one.end.max(two.end);
        Self {
            columns: around(&self.columns, &other.columns),
            rows: around(&self.rows, &other.rows),
        }
    }

    /// What lies in both.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let both = |one: &Range<u32>, two: &Range<u32>| one.start.max(two.start)..one.end.min(two.end);
        Self {
            columns: both(&self.columns, &other.columns),
            rows: both(&self.rows, &other.rows),
        }
    }
}

impl Cells {
    /// width × depth cells, all 0.
    pub fn new(width: u32, depth: u32) -> Self {
        let words_per_row = width.div_ceil(WORD) as usize;
        Self {
            width,
            depth,
            words_per_row,
            words: vec![0; words_per_row * depth as usize],
        }
    }

    /// Number of columns.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of rows.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The bit of a cell; `x` < width, `z` < depth.
    pub fn get(&self, x: u32, z: u32) -> bool {
        debug_assert!(x < self.width);
        self.words[self.word(x, z)] >> (x % WORD) & 1 == 1
    }

    /// Changes the bit of a cell.
    pub fn set(&mut self, x: u32, z: u32, value: bool) {
        debug_assert!(x < self.width);
        let word = self.word(x, z);
        let bit = 1 << (x % WORD);
        if value {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
    }

    /// The words of a row: bit `x % 64` of word `x / 64` is column x; the bits beyond the width are 0.
    pub fn row(&self, z: u32) -> &[u64] {
        let start = z as usize * self.words_per_row;
        &self.words[start..start + self.words_per_row]
    }

    /// Every cell, row by row.
    pub fn to_bools(&self) -> Vec<bool> {
        let mut bools = Vec::with_capacity(self.width as usize * self.depth as usize);
        for z in 0..self.depth {
            let row = self.row(z);
            bools.extend((0..self.width).map(|x| row[(x / WORD) as usize] >> (x % WORD) & 1 == 1));
        }
        bools
    }

    /// The runs of 1 in a row: their columns, in order.
    pub fn runs(&self, z: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let row = self.row(z);
        let mut position = 0;
        std::iter::from_fn(move || {
            let start = next(row, position, self.width, |word| word)?;
            let end = next(row, start, self.width, |word| !word).unwrap_or(self.width);
            position = end;
            Some(start..end)
        })
    }

    /// The cells of these truths, row by row.
    ///
    /// # Panics
    /// If there are not width × depth of them.
    pub fn from_bools(width: u32, depth: u32, bools: &[bool]) -> Self {
        assert_eq!(
            bools.len(),
            width as usize * depth as usize,
            "width × depth cells"
        );
        let mut cells = Self::new(width, depth);
        for (index, _) in bools.iter().enumerate().filter(|(_, set)| **set) {
            cells.set(index as u32 % width, index as u32 / width, true);
        }
        cells
    }

    /// Line z, position x.
    pub(super) fn to_rows(&self) -> Lines {
        let mut lines = Lines::new(self.width, self.depth);
        for z in 0..self.depth {
            let first = lines.first_word(z);
            lines.words_mut()[first..first + self.words_per_row].copy_from_slice(self.row(z));
        }
        lines
    }

    /// Line x, position z: 64 × 64 cells at a time.
    pub(super) fn to_columns(&self) -> Lines {
        let mut lines = Lines::new(self.depth, self.width);
        for z in (0..self.depth).step_by(WORD as usize) {
            for word in 0..self.words_per_row {
                let mut block = [0; WORD as usize];
                for (line, z) in block.iter_mut().zip(z..self.depth) {
                    *line = self.row(z)[word];
                }
                if block == [0; WORD as usize] {
                    continue;
                }
                transpose(&mut block);
                let x = word as u32 * WORD;
                for (x, column) in (x..self.width).zip(block) {
                    let first = lines.first_word(x);
                    lines.words_mut()[first + (z / WORD) as usize] = column;
                }
            }
        }
        lines
    }

    /// Sets a span of a row to 1.
    pub(super) fn fill(&mut self, z: u32, columns: Range<u32>) {
        self.for_each_word(z, columns, |word, mask| *word |= mask);
    }

    /// Sets a window to 0.
    pub(super) fn clear(&mut self, window: &Window) {
        for z in window.rows.clone() {
            self.for_each_word(z, window.columns.clone(), |word, mask| *word &= !mask);
        }
    }

    /// In a window: `ground` where not `covered`.
    pub(super) fn subtract(&mut self, ground: &Self, covered: &Self, window: &Window) {
        for z in window.rows.clone() {
            let start = z as usize * self.words_per_row;
            let first = (window.columns.start / WORD) as usize;
            let last = window.columns.end.div_ceil(WORD) as usize;
            // Whole words: what lies beside the window is unchanged, so computing it again gives what is there.
            for index in start + first..start + last {
                self.words[index] = ground.words[index] & !covered.words[index];
            }
        }
    }

    /// Ors whole words into a row, from its word `first` on.
    pub(super) fn or_words(&mut self, z: u32, first: usize, words: impl Iterator<Item = u64>) {
        let start = z as usize * self.words_per_row + first;
        for (target, word) in self.words[start..].iter_mut().zip(words) {
            *target |= word;
        }
    }

    fn for_each_word(&mut self, z: u32, columns: Range<u32>, mut change: impl FnMut(&mut u64, u64)) {
        if columns.is_empty() {
            return;
        }
        debug_assert!(columns.end <= self.width);
        let (first, last) = (self.word(columns.start, z), self.word(columns.end - 1, z));
        let from_start = u64::MAX << (columns.start % WORD);
        let to_end = u64::MAX >> (WORD - 1 - (columns.end - 1) % WORD);
        for index in first..=last {
            let mut mask = u64::MAX;
            if index == first {
                mask &= from_start;
            }
            if index == last {
                mask &= to_end;
            }
            change(&mut self.words[index], mask);
        }
    }

    fn word(&self, x: u32, z: u32) -> usize {
        z as usize * self.words_per_row + (x / WORD) as usize
    }
}

/// The first position from `position` on, before `width`, whose bit is 1 after `change`.
fn next(row: &[u64], position: u32, width: u32, change: impl Fn(u64) -> u64) -> Option<u32> {
    let mut mask = u64::MAX << (position % WORD);
    for (index, word) in row.iter().enumerate().skip((position / WORD) as usize) {
        let bits = change(*word) & mask;
        if bits != 0 {
            let found = index as u32 * WORD + bits.trailing_zeros();
            return (found < width).then_some(found);
        }
        mask = u64::MAX;
    }
    None
}

/// Bit i of word j becomes bit j of word i: quarters of ever smaller squares change places.
fn transpose(block: &mut [u64; WORD as usize]) {
    let mut size = WORD / 2;
    let mut mask = u64::MAX >> size;
    while size > 0 {
        for index in (0..WORD).filter(|index| index & size == 0) {
            let (low, high) = (index as usize, (index + size) as usize);
            let swapped = (block[low] >> size ^ block[high]) & mask;
            block[high] ^= swapped;
            block[low] ^= swapped << size;
        }
        size /= 2;
        mask ^= mask << size;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_columns_and_runs_are_the_cells(
            width in 1..200u32,
            depth in 1..140u32,
            seeds in prop::collection::vec(any::<u64>(), 1..8),
        ) {
            let bit = |x: u32, z: u32| {
                let seed = seeds[(x / 3 + z / 2) as usize % seeds.len()];
                seed.rotate_left(x * 7 + z) & 1 == 1
            };
            let bools: Vec<bool> = (0..width * depth).map(|index| bit(index % width, index / width)).collect();
            let cells = Cells::from_bools(width, depth, &bools);
            prop_assert_eq!(cells.to_bools(), bools);
            let (mut rows, mut columns) = (Lines::new(width, depth), Lines::new(depth, width));
            for z in 0..depth {
                let mut runs = vec![false; width as usize];
                for run in cells.runs(z) {
                    prop_assert!(run.start < run.end);
                    runs[run.start as usize..run.end as usize].fill(true);
                }
                for x in 0..width {
                    prop_assert_eq!(runs[x as usize], bit(x, z));
                    if bit(x, z) {
                        rows.set(z, x);
                        columns.set(x, z);
                    }
                }
            }
            prop_assert_eq!(cells.to_rows(), rows);
            prop_assert_eq!(cells.to_columns(), columns);
        }
    }
}
