//! Who can reach whom: a flood from both sides, 64 cells at a time, that can pause.
//!
//! A diagonal move needs both cardinal cells, so what the moves of spec 2.4 reach is what the four cardinal ones reach.
//! The smaller side decides: whichever region is filled first without meeting the other is cut off. So a character in a
//! ring of people, or a target in one, costs the ring's inside and never the map.

use std::collections::VecDeque;

use super::lines::WORD;
use super::{Cell, Lines};

/// Whose flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the start.
    Start,
    /// From the target.
    Target,
}

/// Where the floods stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The words granted to this call are used up.
    Undecided,
    /// The two regions are one.
    Joined,
    /// The region of this side is filled and does not hold the other's seed.
    CutOff(Side),
}

/// One word of cells: what each side has reached of it.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    generation: u32,
    bits: [u64; 2],
    queued: [bool; 2],
}

/// The scratch of the floods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flood {
    words: Vec<Reached>,
    generation: u32,
    queues: [VecDeque<u32>; 2],
    /// Words with a cell that the start reaches.
    of_start: Vec<u32>,
    joined: bool,
}

impl Flood {
    /// Makes room for grids with so many words of rows.
    pub(crate) fn resize(&mut self, words: usize) {
        self.words.resize(words, Reached::default());
    }

    /// Begins anew from `start`.
    pub(crate) fn begin(&mut self, rows: &Lines, start: Cell) {
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            self.words.fill(Reached::default());
            1
        });
        self.queues[Side::Start as usize].clear();
        self.of_start.clear();
        self.joined = false;
        self.seed(rows, Side::Start, start);
        self.queues[Side::Target as usize].clear();
    }

    /// Sets the target's side off from `target`. What earlier targets filled stays marked: see `is_closed`.
    pub(crate) fn aim(&mut self, rows: &Lines, target: Cell) {
        self.seed(rows, Side::Target, target);
    }

    /// The cell lies in a region that an earlier target filled.
    pub(crate) fn is_closed(&self, rows: &Lines, cell: Cell) -> bool {
        let word = self.words[rows.first_word(cell.z) + (cell.x / WORD) as usize];
        word.generation == self.generation && word.bits[Side::Target as usize] >> (cell.x % WORD) & 1 == 1
    }

    /// Goes on for about `grant` words on each of `sides`.
    pub(crate) fn advance(&mut self, rows: &Lines, sides: &[Side], grant: u32) -> Reach {
        for _ in 0..grant {
            for side in sides.iter().copied() {
                if self.joined {
                    return Reach::Joined;
                }
                let Some(word) = self.queues[side as usize].pop_front() else {
                    return Reach::CutOff(side);
                };
                self.spread(rows, side, word);
            }
        }
        if self.joined {
            Reach::Joined
        } else {
            Reach::Undecided
        }
    }

    /// After `CutOff(Start)`: of the cells that the start reaches, the nearest to `requested` (squared grid distance, then
    /// index).
    pub(crate) fn nearest_to(&self, rows: &Lines, requested: Cell) -> Option<Cell> {
        let mut best: Option<(u64, Cell)> = None;
        let square = |a: u32, b: u32| {
            let difference = u64::from(a.abs_diff(b));
            difference * difference
        };
        for index in &self.of_start {
            let (z, base) = rows.place_of(*index as usize);
            let across = square(z, requested.z);
            if best.is_some_and(|(distance, _)| across > distance) {
                continue;
            }
            let bits = self.words[*index as usize].bits[Side::Start as usize];
            // The nearest on either side of the requested column.
            let below = if requested.x >= base + WORD {
                bits
            } else if requested.x < base {
                0
            } else {
                bits & (!0 >> (WORD - 1 - (requested.x - base)))
            };
            let above = bits & !below;
            let last = (below != 0).then(|| WORD - 1 - below.leading_zeros());
            let first = (above != 0).then(|| above.trailing_zeros());
            for x in [last, first].into_iter().flatten().map(|bit| base + bit) {
                let distance = across + square(x, requested.x);
                if best.is_none_or(|(nearest, found)| (distance, z, x) < (nearest, found.z, found.x)) {
                    best = Some((distance, Cell { x, z }));
                }
            }
        }
        best.map(|(_, cell)| cell)
    }

    fn seed(&mut self, rows: &Lines, side: Side, cell: Cell) {
        let index = rows.first_word(cell.z) + (cell.x / WORD) as usize;
        self.reach(side, index, 1 << (cell.x % WORD));
    }

    /// Marks free cells of a word as reached.
    fn reach(&mut self, side: Side, index: usize, bits: u64) {
        let word = &mut self.words[index];
        if word.generation != self.generation {
            *word = Reached {
                generation: self.generation,
                ..Reached::default()
            };
        }
        let new = bits & !word.bits[side as usize];
        if new == 0 {
            return;
        }
        if side == Side::Start && word.bits[side as usize] == 0 {
            self.of_start.push(index as u32);
        }
        word.bits[side as usize] |= new;
        self.joined |= word.bits[0] & word.bits[1] != 0;
        if !word.queued[side as usize] {
            word.queued[side as usize] = true;
            self.queues[side as usize].push_back(index as u32);
        }
    }

    /// Fills a word along its row and hands the result on to the words around it. The frame of zeros around the rows
    /// ends the flood at the grid's sides.
    fn spread(&mut self, rows: &Lines, side: Side, index: u32) {
        let index = index as usize;
        let free = rows.words()[index];
        let word = &mut self.words[index];
        word.queued[side as usize] = false;
        let filled = fill(word.bits[side as usize], free);
        word.bits[side as usize] = filled;
        self.joined |= word.bits[0] & word.bits[1] != 0;
        let stride = rows.stride();
        for (next, bits) in [
            (index - stride, filled),
            (index + stride, filled),
            (index - 1, filled << 63),
            (index + 1, filled >> 63),
        ] {
            let bits = bits & rows.words()[next];
            if bits != 0 {
                self.reach(side, next, bits);
            }
        }
    }
}

/// The runs of set bits of `free` that hold a seed; all seeds are free.
fn fill(seeds: u64, free: u64) -> u64 {
    // A carry runs from the lowest seed of a run to the run's end.
    let upward = |seeds: u64, free: u64| (free ^ free.wrapping_add(seeds)) & free | seeds;
    let up = upward(seeds, free);
    upward(up.reverse_bits(), free.reverse_bits()).reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn a_fill_takes_whole_runs() {
        let check = |seeds: u64, free: u64, filled: u64| {
            assert_eq!(fill(seeds, free), filled, "{seeds:b} in {free:b}")
        };
        check(0b0000_0000, 0b0111_0110, 0b0000_0000);
        check(0b0010_0000, 0b0111_0110, 0b0111_0000);
        check(0b0101_0010, 0b0111_0110, 0b0111_0110);
        check(0b0111_0000, 0b0111_0110, 0b0111_0000);
        check(1 << 63, !0, !0);
        check(1, !0, !0);
        check(1 << 20 | 1 << 40, !0, !0);
        check(1 << 20 | 1 << 40, !(1 << 30), !(1 << 30));
    }
}
