//! The one A*: a total order of the queue, scratch that is never cleared, a search that can pause.
//!
//! What a node is, and where one gets from it, is the [`Space`]'s business; nodes are numbers below its size. The queue
//! takes the smaller f first, then the LARGER g, then the smaller node (spec 2.4). A node is entered only for a strictly
//! smaller g than it has: of equal ones the first stays.

use std::collections::BinaryHeap;

use crate::SearchStats;

/// A graph to search.
pub(crate) trait Space {
    /// Lower bound of the cost from `node` to the goal; consistent.
    fn heuristic(&self, node: u32) -> u32;

    /// Hands the visitor the ways on from `node`, which was reached by `arrival`, that belong to `part`.
    ///
    /// From the start's first part returns, if there is a rest, by how much f grows at least on every way of it: the rest is
    /// asked for when the queue comes to that f. Other nodes have no rest.
    fn expand(&mut self, node: u32, arrival: u8, part: Part, visitor: &mut Visitor<'_>) -> Option<u32>;
}

/// The start is expanded in two parts, any other node in the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// At once.
    First,
    /// What was put off because it leads away from the goal.
    Rest,
}

/// In the place of g in the entry for the start's rest: it comes before every node of the same f, so that whatever it leads
/// to is there before its turn, and the nodes are expanded in the order in which they would be without it.
const REST: u32 = u32::MAX;

/// Where a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The goal was taken from the queue.
    Arrived,
    /// Nothing is left: the goal cannot be reached.
    Exhausted,
    /// The limit on expanded nodes of the whole search is reached.
    Limited,
    /// The nodes granted to this call are used up; the next call goes on.
    Paused,
}

/// When and how cheaply a node was reached: a later search above every earlier one, then the smaller g above the larger.
///
/// PERF: whether a node is entered is one comparison; `peers * search`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Mark(u64);

impl Mark {
    fn new(generation: u32, g: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(!g))
    }

    /// Of a node reached in this search.
    fn g(self) -> u32 {
        !(self.0 as u32)
    }
}

/// A parent (28 bits) and the way from it (4 bits).
#[derive(Clone, Copy, Debug, Default)]
struct Origin(u32);

impl Origin {
    fn new(parent: u32, arrival: u8) -> Self {
        Self(parent << 4 | u32::from(arrival))
    }

    fn parent(self) -> u32 {
        self.0 >> 4
    }

    fn arrival(self) -> u8 {
        (self.0 & 15) as u8
    }
}

/// The scratch of a search and, after it, its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    marks: Vec<Mark>,
    /// Of a reached node, where from.
    origins: Vec<Origin>,
    queue: Queue,
    generation: u32,
    goal: u32,
    expanded_max: u32,
    stats: SearchStats,
    /// The best node taken from the queue: smallest heuristic, then g, then number.
    best: (u32, u32, u32),
}

impl Search {
    /// Makes room for nodes 0 to `size` − 1; at most 2²⁸.
    pub(crate) fn resize(&mut self, size: usize) {
        self.marks.resize(size, Mark::default());
        self.origins.resize(size, Origin::default());
    }

    /// Begins a search from `start`, reached by `arrival`; at most `expanded_max` nodes are expanded.
    pub(crate) fn begin(
        &mut self,
        space: &impl Space,
        start: u32,
        arrival: u8,
        goal: u32,
        expanded_max: Option<u32>,
    ) {
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            self.marks.fill(Mark::default());
            1
        });
        self.goal = goal;
        self.expanded_max = expanded_max.unwrap_or(u32::MAX);
        self.queue.clear();
        self.marks[start as usize] = Mark::new(self.generation, 0);
        self.origins[start as usize] = Origin::new(start, arrival);
        let heuristic = space.heuristic(start);
        self.best = (heuristic, 0, start);
        self.queue.push(Entry::new(heuristic, 0, start));
        self.stats = SearchStats {
            expanded: 0,
            generated: 1,
            queue_peak: 1,
        };
    }

    /// Goes on for at most `grant` expanded nodes.
    pub(crate) fn advance(&mut self, space: &mut impl Space, grant: u32) -> Progress {
        let pause_at = self.stats.expanded.saturating_add(grant);
        loop {
            if self.stats.expanded >= pause_at {
                return Progress::Paused;
            }
            let Some(entry) = self.queue.pop() else {
                return Progress::Exhausted;
            };
            let (f, g, node) = entry.parts();
            let reached_g = self.marks[node as usize].g();
            let part = if g == REST { Part::Rest } else { Part::First };
            if part == Part::First {
                if g != reached_g {
                    continue;
                }
                if node == self.goal {
                    return Progress::Arrived;
                }
                if self.stats.expanded >= self.expanded_max {
                    return Progress::Limited;
                }
                self.stats.expanded += 1;
                if self.expanded_max != u32::MAX {
                    self.best = self.best.min((f - g, g, node));
                }
            }
            let arrival = self.origins[node as usize].arrival();
            let mut visitor = Visitor {
                marks: &mut self.marks,
                origins: &mut self.origins,
                queue: &mut self.queue,
                stats: &mut self.stats,
                generation: self.generation,
                node,
                g: reached_g,
                part,
            };
            if let Some(more) = space.expand(node, arrival, part, &mut visitor) {
                self.queue.push(Entry::new(f + more, REST, node));
            }
        }
    }

    /// After `Arrived` the goal, otherwise the best node so far: of those taken from the queue the one with the smallest
    /// heuristic, then the smaller g, then the smaller number.
    pub(crate) fn end(&self, progress: Progress) -> u32 {
        if progress == Progress::Arrived {
            self.goal
        } else {
            self.best.2
        }
    }

    /// Cost of a reached node.
    pub(crate) fn cost(&self, node: u32) -> u32 {
        self.marks[node as usize].g()
    }

    /// Where a reached node was reached from (the start: from itself).
    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.origins[node as usize].parent()
    }

    /// What it took.
    pub(crate) fn stats(&self) -> SearchStats {
        self.stats
    }
}

/// Takes the ways on from one node.
pub(crate) struct Visitor<'a> {
    marks: &'a mut [Mark],
    origins: &'a mut [Origin],
    queue: &'a mut Queue,
    stats: &'a mut SearchStats,
    generation: u32,
    node: u32,
    g: u32,
    part: Part,
}

impl Visitor<'_> {
    /// There is a way to `next` that costs `cost`; `arrival` is what `next` is expanded by, `heuristic` its heuristic.
    #[inline]
    pub(crate) fn visit(&mut self, next: u32, cost: u32, arrival: u8, heuristic: impl FnOnce() -> u32) {
        let g = self.g + cost;
        let mark = Mark::new(self.generation, g);
        let known = &mut self.marks[next as usize];
        if mark > *known {
            *known = mark;
            self.origins[next as usize] = Origin::new(self.node, arrival);
            self.stats.generated += 1;
            self.queue.push(Entry::new(g + heuristic(), g, next));
            self.stats.queue_peak = self.stats.queue_peak.max(self.queue.len() as u32);
        } else if mark == *known && self.part == Part::Rest {
            // Not put off, this way would have come before all others, and of equal ones the first stays.
            self.origins[next as usize] = Origin::new(self.node, arrival);
        }
    }
}

/// A heap with the greatest of the newest entries held back.
///
/// PERF: a search that gets on takes from the queue what it has just put there, and else the entry goes into the heap in
/// the place of the one taken; `peers * search`.
#[derive(Clone, Debug, Default)]
struct Queue {
    heap: BinaryHeap<Entry>,
    newest: Option<Entry>,
}

impl Queue {
    fn clear(&mut self) {
        self.heap.clear();
        self.newest = None;
    }

    fn len(&self) -> usize {
        self.heap.len() + usize::from(self.newest.is_some())
    }

    #[inline]
    fn push(&mut self, mut entry: Entry) {
        if let Some(newest) = &mut self.newest {
            if entry > *newest {
                std::mem::swap(newest, &mut entry);
            }
            self.heap.push(entry);
        } else {
            self.newest = Some(entry);
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let Some(newest) = self.newest.take() else {
            return self.heap.pop();
        };
        match self.heap.peek_mut() {
            Some(mut top) if *top > newest => Some(std::mem::replace(&mut *top, newest)),
            _ => Some(newest),
        }
    }
}

/// A queue entry as one number, greatest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(f: u32, g: u32, node: u32) -> Self {
        Self((u128::from(!f) << 64) | (u128::from(g) << 32) | u128::from(!node))
    }

    fn parts(self) -> (u32, u32, u32) {
        (!((self.0 >> 64) as u32), (self.0 >> 32) as u32, !(self.0 as u32))
    }
}
