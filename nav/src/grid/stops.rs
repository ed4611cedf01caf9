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
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    is_fresh: bool,
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
        }
    }

    /// All free cells may have changed.
    pub(crate) fn touch_all(&mut self) {
        self.words.fill(Word::default());
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
                word.is_fresh = false;
            }
            line += self.stride;
        }
    }

    /// The jump toward higher positions: the first position after `position` that is the goal or has a forced neighbour,
    /// before any that is not free. `goal`: the goal's position if it lies on this line, else −1.
    ///
    /// PERF: 64 cells a step; `peers * search`.
    #[inline]
    pub(crate) fn jump_up(&mut self, lines: &Lines, line: u32, position: u32, goal: i32) -> Option<u32> {
        let mut index = lines.first_word(line) + (position / WORD) as usize;
        let mut base = position / WORD * WORD;
        let mut ahead = !1 << (position % WORD);
        loop {
            let word = self.word(lines, index);
            let stop = word.up & ahead;
            if stop != 0 {
                let bit = stop.trailing_zeros();
                let end = base + bit;
                if (position as i32) < goal && goal < end as i32 {
                    return Some(goal as u32);
                }
                return (word.free >> bit & 1 == 1).then_some(end);
            }
            ahead = !0;
            index += 1;
            base += WORD;
        }
    }

    /// The jump toward lower positions; see `jump_up`.
    #[inline]
    pub(crate) fn jump_down(&mut self, lines: &Lines, line: u32, position: u32, goal: i32) -> Option<u32> {
        let mut index = lines.first_word(line) + (position / WORD) as usize;
        let mut base = (position / WORD * WORD) as i32;
        let mut ahead = (1 << (position % WORD)) - 1;
        loop {
            let word = self.word(lines, index);
            let stop = word.down & ahead;
            if stop != 0 {
                let bit = WORD - 1 - stop.leading_zeros();
                // At the least −1: before position 0 lies the zero bit that ends the line before.
                let end = base + bit as i32;
                if end < goal && goal < position as i32 {
                    return Some(goal as u32);
                }
                return (word.free >> bit & 1 == 1).then_some(end as u32);
            }
            ahead = !0;
            index -= 1;
            base -= WORD as i32;
        }
    }

    #[inline]
    fn word(&mut self, lines: &Lines, index: usize) -> Word {
        let word = self.words[index];
        if word.is_fresh {
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
            is_fresh: true,
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
