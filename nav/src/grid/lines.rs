//! Rows or columns of cells as bits in words, with a frame of zeros around them.

/// Bits of a word.
pub(crate) const WORD: u32 = u64::BITS;

/// Parallel lines of bits: the rows of a grid (line z, position x) or its columns (line x, position z).
///
/// Before the first line and after the last there is a line of zeros, and after each line at least one zero bit: a scan
/// ends there by itself and a step off the grid reads "not free", so that no loop compares with the sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Words of one line.
    stride: usize,
    words: Vec<u64>,
}

impl Lines {
    /// `count` lines of `length` bits, all 0.
    pub(crate) fn new(length: u32, count: u32) -> Self {
        let stride = (length / WORD + 1) as usize;
        Self {
            stride,
            // Two words more in front, one behind: the word before the first line and those beside it have neighbours too.
            words: vec![0; stride * (count as usize + 2) + 3],
        }
    }

    /// Index of the word that holds position 0 of a line.
    ///
    /// PERF: addresses wrap where they cannot overflow; a wrong one would fail at the slice. `peers * search`.
    pub(crate) fn first_word(&self, line: u32) -> usize {
        (line as usize)
            .wrapping_add(1)
            .wrapping_mul(self.stride)
            .wrapping_add(2)
    }

    /// Where a bit is; the next position of the line follows it, and one step outside the grid are bits of the frame.
    pub(crate) fn address(&self, line: u32, position: u32) -> usize {
        self.first_word(line)
            .wrapping_mul(WORD as usize)
            .wrapping_add(position as usize)
    }

    /// Addresses from one line to the next.
    pub(crate) fn line_bits(&self) -> usize {
        self.stride * WORD as usize
    }

    /// The bit at an address.
    #[inline(always)]
    pub(crate) fn get_at(&self, address: usize) -> bool {
        self.words[address / WORD as usize] >> (address % WORD as usize) & 1 == 1
    }

    /// Line and position of bit 0 of a word.
    pub(crate) fn place_of(&self, word: usize) -> (u32, u32) {
        let word = word - 2;
        (
            (word / self.stride - 1) as u32,
            (word % self.stride) as u32 * WORD,
        )
    }

    /// Words from one line to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    pub(crate) fn get(&self, line: u32, position: u32) -> bool {
        let word = self.words[self.first_word(line) + (position / WORD) as usize];
        word >> (position % WORD) & 1 == 1
    }

    /// As `get`, from one step outside to one step outside on every side.
    pub(crate) fn get_signed(&self, line: i32, position: i32) -> bool {
        line >= 0 && position >= 0 && self.get(line as u32, position as u32)
    }

    pub(crate) fn set(&mut self, line: u32, position: u32) {
        let word = self.first_word(line) + (position / WORD) as usize;
        self.words[word] |= 1 << (position % WORD);
    }

    pub(crate) fn clear(&mut self, line: u32, position: u32) {
        let word = self.first_word(line) + (position / WORD) as usize;
        self.words[word] &= !(1 << (position % WORD));
    }

    /// The first set position from `position` on.
    pub(crate) fn next_set(&self, line: u32, position: u32) -> Option<u32> {
        let first = self.first_word(line);
        let mut mask = !0 << (position % WORD);
        for word in (position / WORD) as usize..self.stride {
            let bits = self.words[first + word] & mask;
            if bits != 0 {
                return Some(word as u32 * WORD + bits.trailing_zeros());
            }
            mask = !0;
        }
        None
    }

    /// The last set position up to `position`.
    pub(crate) fn previous_set(&self, line: u32, position: u32) -> Option<u32> {
        let first = self.first_word(line);
        let mut mask = !0 >> (WORD - 1 - position % WORD);
        for word in (0..=(position / WORD) as usize).rev() {
            let bits = self.words[first + word] & mask;
            if bits != 0 {
                return Some(word as u32 * WORD + WORD - 1 - bits.leading_zeros());
            }
            mask = !0;
        }
        None
    }
}
