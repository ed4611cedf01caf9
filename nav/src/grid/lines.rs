//! Rows or columns of cells as bits in words, with a frame of zeros around them.

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// Parallel lines of bits: the rows of a grid (line z, position x) or its columns (line x, position z).
///
/// Before the first line and after the last there is a line of zeros, and after each line at least one zero bit: a scan
/// ends there by itself and a step off the grid reads "not free", so that no loop compares with the sides.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Words of one line.
    stride: usize,
    words: Vec<u64>,
}

impl Lines {
    /// `count` lines of `length` bits, all 0.
    pub(crate) fn new(length: u32, count: u32) -> Self {
        let stride = length as usize / WORD + 1;
        Self {
            stride,
            words: vec![0; stride * (count as usize + 2) + 2],
        }
    }

    /// Where the bit of a line's position 0 is; positions follow it.
    fn address(&self, line: u32, position: u32) -> usize {
        (line as usize + 1) * self.stride * WORD + position as usize
    }

    pub(crate) fn get(&self, line: u32, position: u32) -> bool {
        let address = self.address(line, position);
        self.words[address / WORD] >> (address % WORD) & 1 == 1
    }

    /// As `get`, from one step outside to one step outside on every side.
    pub(crate) fn get_signed(&self, line: i32, position: i32) -> bool {
        line >= 0 && position >= 0 && self.get(line as u32, position as u32)
    }

    pub(crate) fn set(&mut self, line: u32, position: u32) {
        let address = self.address(line, position);
        self.words[address / WORD] |= 1 << (address % WORD);
    }
}
