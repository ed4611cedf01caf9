//! A rectangle of cells as bits, and spans of columns in it.

use std::ops::Range;

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

    /// The runs of equal bits of a row, from column 0 on: their columns and their bit.
    pub fn runs(&self, z: u32) -> impl Iterator<Item = (Range<u32>, bool)> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == self.width {
                return None;
            }
            let bit = self.get(start, z);
            let end = (start..self.width)
                .find(|x| self.get(*x, z) != bit)
                .unwrap_or(self.width);
            let run = (start..end, bit);
            start = end;
            Some(run)
        })
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
