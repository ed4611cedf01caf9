//! Rows or columns of cells as bits in words, with a frame of zeros around them, and the scans along a line.

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
            // One word more in front: the word before the first line has a line before it too.
            words: vec![0; stride * (count as usize + 2) + 1],
        }
    }

    /// Index of the word that holds position 0 of a line.
    pub(crate) fn first_word(&self, line: u32) -> usize {
        (line as usize + 1) * self.stride + 1
    }

    /// Line and position of bit 0 of a word.
    pub(crate) fn place_of(&self, word: usize) -> (u32, u32) {
        let word = word - 1;
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

    /// The jump toward higher positions (spec 2.4): the first position after `position` that is the goal or has a forced
    /// neighbour, before any that is not free. `goal`: the goal's position if it lies on this line, else −1.
    ///
    /// PERF: 64 cells a step; `peers * search`.
    #[inline]
    pub(crate) fn jump_up(&self, line: u32, position: u32, goal: i32) -> Option<u32> {
        let mut index = self.first_word(line) + (position / WORD) as usize;
        let mut base = position / WORD * WORD;
        let mut ahead = !1 << (position % WORD);
        let (mut carry_before, mut carry_after) = (0, 0);
        loop {
            let own = self.words[index];
            let before = self.words[index - self.stride];
            let after = self.words[index + self.stride];
            // Free beside here, not free beside the cell one step back.
            let forced = before & !(before << 1 | carry_before) | after & !(after << 1 | carry_after);
            let stop = (forced | !own) & ahead;
            if stop != 0 {
                let bit = stop.trailing_zeros();
                let end = base + bit;
                if (position as i32) < goal && goal < end as i32 {
                    return Some(goal as u32);
                }
                return (own >> bit & 1 == 1).then_some(end);
            }
            (carry_before, carry_after) = (before >> 63, after >> 63);
            ahead = !0;
            index += 1;
            base += WORD;
        }
    }

    /// The jump toward lower positions; see `jump_up`.
    #[inline]
    pub(crate) fn jump_down(&self, line: u32, position: u32, goal: i32) -> Option<u32> {
        let mut index = self.first_word(line) + (position / WORD) as usize;
        let mut base = (position / WORD * WORD) as i32;
        let mut ahead = (1 << (position % WORD)) - 1;
        let (mut carry_before, mut carry_after) = (0, 0);
        loop {
            let own = self.words[index];
            let before = self.words[index - self.stride];
            let after = self.words[index + self.stride];
            let forced = before & !(before >> 1 | carry_before) | after & !(after >> 1 | carry_after);
            let stop = (forced | !own) & ahead;
            if stop != 0 {
                let bit = 63 - stop.leading_zeros();
                // At the least −1: before position 0 lies the zero bit that ends the line before.
                let end = base + bit as i32;
                if end < goal && goal < position as i32 {
                    return Some(goal as u32);
                }
                return (own >> bit & 1 == 1).then_some(end as u32);
            }
            (carry_before, carry_after) = (before << 63, after << 63);
            ahead = !0;
            index -= 1;
            base -= WORD as i32;
        }
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
