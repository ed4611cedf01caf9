//! Where cardinal jumps end (spec 2.4), per word of cells, worked out when first asked for.

use super::Lines;
use super::lines::WORD;

/// Per word of lines, the cells at which a scan along the line stops: not free, or with a forced neighbour.
///
/// They follow from the free cells of the line and of the two beside it. Whoever changes those says so (`touch`); the
/// words are then worked out again by the first jump that comes by, so that a change costs a few stores.
#[derive(Clone, Debug)]
pub(crate) struct Stops {
    stride: usize,
    words: Vec<Word>,
    /// A word of another generation is to be worked out again.
    generation: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    generation: u64,
    free: u64,
    /// For jumps toward higher positions.
    up: u64,
    /// For jumps toward lower positions.
    down: u64,
}

impl Stops {
    /// For lines of the same shape; nothing is worked out yet.
    pub(crate) fn new(lines: &Lines) -> Self {
        Self {
            stride: lines.stride(),
            words: vec![Word::default(); lines.words().len()],
            generation: 1,
        }
    }

    /// All free cells may have changed.
    pub(crate) fn touch_all(&mut self) {
        self.generation += 1;
    }

    /// Cells at a range of positions of a range of lines may have changed; last ones included.
    pub(crate) fn touch(&mut self, lines: &Lines, range: (u32, u32), positions: (u32, u32)) {
        // A forced neighbour looks one line aside and one position back; the frame has room for both.
        let last = lines.first_word(range.1) + self.stride;
        let from = (positions.0.saturating_sub(1) / WORD) as usize;
        let to = (((positions.1 + 1) / WORD) as usize).min(self.stride - 1);
        let mut line = lines.first_word(range.0) - self.stride;
        while line <= last {
            for word in &mut self.words[line + from..=line + to] {
                word.generation = 0;
            }
            line += self.stride;
        }
    }

    /// Makes the goal, which is free, a place where jumps stop.
    pub(crate) fn plant(&mut self, lines: &Lines, goal: usize) {
        let index = goal / WORD as usize;
        let mut word = self.word(lines, index);
        word.up |= 1 << (goal % WORD as usize);
        word.down |= 1 << (goal % WORD as usize);
        self.words[index] = word;
    }

    /// It is none any more.
    pub(crate) fn uproot(&mut self, goal: usize) {
        self.words[goal / WORD as usize].generation = 0;
    }

    /// The jump toward higher positions from a bit's address: where it stops, and whether that is a jump point (the goal, or
    /// free with a forced neighbour) and not a cell that is not free.
    ///
    /// PERF: 64 cells a step; `peers * search`.
    #[inline(always)]
    pub(crate) fn jump_up(&mut self, lines: &Lines, from: usize) -> (usize, bool) {
        let mut index = from / WORD as usize;
        let mut ahead = !1 << (from % WORD as usize);
        loop {
            let word = self.word(lines, index);
            let stop = word.up & ahead;
            if stop != 0 {
                let bit = stop.trailing_zeros();
                let end = index * WORD as usize + bit as usize;
                return (end, word.free >> bit & 1 == 1);
            }
            ahead = !0;
            index += 1;
        }
    }

    /// The jump toward lower positions; see `jump_up`.
    #[inline(always)]
    pub(crate) fn jump_down(&mut self, lines: &Lines, from: usize) -> (usize, bool) {
        let mut index = from / WORD as usize;
        let mut ahead = (1 << (from % WORD as usize)) - 1;
        loop {
            let word = self.word(lines, index);
            let stop = word.down & ahead;
            if stop != 0 {
                let bit = WORD - 1 - stop.leading_zeros();
                let end = index * WORD as usize + bit as usize;
                return (end, word.free >> bit & 1 == 1);
            }
            ahead = !0;
            index -= 1;
        }
    }

    #[inline(always)]
    fn word(&mut self, lines: &Lines, index: usize) -> Word {
        let word = self.words[index];
        if word.generation == self.generation {
            word
        } else {
            self.refresh(lines, index)
        }
    }

    #[cold]
    #[inline(never)]
    fn refresh(&mut self, lines: &Lines, index: usize) -> Word {
        let words = lines.words();
        let free = words[index];
        let mut word = Word {
            generation: self.generation,
            free,
            up: !free,
            down: !free,
        };
        for beside in [index - self.stride, index + self.stride] {
            // Free beside here, not free beside the cell one step back.
            let here = words[beside];
            word.up |= here & !(here << 1 | words[beside - 1] >> (WORD - 1));
            word.down |= here & !(here >> 1 | words[beside + 1] << (WORD - 1));
        }
        self.words[index] = word;
        word
    }
}
