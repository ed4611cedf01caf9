//! A* over the links of a graph, and over links that nobody has tested yet.
//!
//! The order is the grid's: smaller f, then larger g, then the smaller node (by corner position, then number); a node is
//! entered for a strictly smaller g only, so of equal ways the first stays. Costs are lengths in raw, each link rounded up,
//! added in `i64`; the shared A* with its 32-bit costs does not fit, and it would have to know all links.
//!
//! Start, end and the corners of octagons have no links prepared, and under octagons a prepared link may be blocked. Such a
//! link is put into the queue untested and tested when it is taken out, and most never are. This changes nothing but the
//! time: the heuristic is consistent, so the first entry of a node whose link holds has its final g, and of entries with
//! equal g the one of the node expanded first comes first.
//!
//! For the same reason entries far from the straight way need not be made: a round makes those with f up to a bound, and
//! when they are used up, the next one those up to a larger bound. Most rounds are the first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::border::Location;
use super::exact::{Sector, Vector};
use super::graph::{Graph, length, length_at_least, may_leave};
use super::ground::{Around, Ground, View};
use super::near::{FAR_AWAY, Near, least_length};
use super::nodes::Node;
use crate::{Point, SearchStats};

/// The start of a search, as a node.
const START: u32 = u32::MAX;
/// The end of a search, as a node.
const END: u32 = u32::MAX - 1;

/// What a search walks on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) graph: &'a Graph,
    /// The octagons' corners; their numbers follow the graph's. Those that are not free are no nodes.
    pub(super) corners: &'a [Point],
}

impl Field<'_> {
    pub(super) fn position(&self, node: u32) -> Point {
        let graph = &self.graph.nodes;
        match graph.get(node as usize) {
            Some(node) => node.position,
            None => self.corners[node as usize - graph.len()],
        }
    }

    fn corner(&self, node: u32) -> Point {
        let graph = &self.graph.nodes;
        match graph.get(node as usize) {
            Some(node) => node.corner,
            None => self.corners[node as usize - graph.len()],
        }
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Arrived,
    /// Everything that can be reached was.
    Exhausted,
    /// The end is far, or cannot be reached; `resume` finds out, at a price if not.
    Far,
    /// The limit on expanded nodes is reached.
    Limited,
}

/// The scratch of a search and, after it, its result.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    queue: BinaryHeap<Entry>,
    nodes: Vec<Reached>,
    generation: u32,
    stats: SearchStats,
    start: Point,
    end: Point,
    /// Of start and end, rounded down.
    distance: i64,
    expanded_max: u32,
    /// It stops once with `Far`.
    asks: bool,
    /// The nodes that were expanded, in order, the start first, with their g.
    expanded: Vec<(u32, i64)>,
    /// The nodes of the graph through which a way within the bound can go.
    near: Near,
    /// Per octagon's corner a lower bound of its distance to the end.
    corners_to_end: Vec<u32>,
    /// Per node of the graph a lower bound of the way from the start through it, or [`NOT_ASKED`], or [`NO_WAY`] if it is
    /// known not to be in sight.
    least_from_start: Vec<i64>,
    /// Every way with f up to this was put into the queue; not above the best known way to the end.
    bound: i64,
    /// How many bounds there have been.
    round: usize,
    /// What blocked the view of the start and of the end last.
    seen_from_start: View,
    seen_from_end: View,
    /// The best known way to the end: g and the node before it.
    arrival: Option<(i64, u32)>,
    /// Of the nodes taken from the queue the one nearest to the end: distance, g, corner, number.
    best: (i64, i64, u64, u32),
    /// The nodes' free directions under octagons; scratch.
    sectors: Vec<Sector>,
}

/// What a search knows of a node; of another generation: nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    generation: u32,
    state: State,
    /// Where it was reached from, once it is closed.
    parent: u32,
    /// Of the best way that needs no test, or, once it is closed, of the best way.
    g: i64,
    heuristic: i64,
    gate: Option<Sector>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not looked at closely.
    #[default]
    Open,
    /// Free, with its gate known.
    Usable,
    /// Under an octagon.
    Blocked,
    /// Reached, and taken from the queue.
    Closed,
}

/// A way to a node in the queue; the greatest is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    f: Reverse<i64>,
    g: i64,
    corner: Reverse<u64>,
    node: Reverse<u32>,
    /// How many nodes were expanded before its parent.
    turn: Reverse<u32>,
    parent: u32,
    is_tested: bool,
}

/// Ways that are put into the queue together.
struct Way {
    parent: u32,
    turn: u32,
    /// They are in the queue up to this f.
    above: i64,
    is_tested: bool,
}

/// The bounds on f, one after the other: the straight distance and so many sixteenths of it more; at last none.
const BOUNDS: [i64; 5] = [1, 4, 16, 64, 256];
/// No bound lets this pass but the last, where the link is tested.
const NO_WAY: i64 = i64::MAX;
/// Below every way.
const NOT_ASKED: i64 = -1;
/// Before this bound whoever searches is asked whether the end can be reached at all.
const FAR: usize = 3;

impl Search {
    /// Searches from a point of the free space to another. `asks`: it stops once with `Far`.
    pub(super) fn run(
        &mut self,
        field: &Field<'_>,
        (start, end): (Point, Point),
        expanded_max: Option<u32>,
        asks: bool,
    ) -> Outcome {
        self.begin(field, start, end);
        self.asks = asks;
        self.expanded_max = expanded_max.unwrap_or(u32::MAX);
        if self.expanded_max == 0 {
            return Outcome::Limited;
        }
        self.expand(field, START, 0);
        self.resume(field)
    }

    /// Goes on after `Far`.
    pub(super) fn resume(&mut self, field: &Field<'_>) -> Outcome {
        loop {
            self.stats.queue_peak = self.stats.queue_peak.max(self.queue.len() as u32);
            let next = self.queue.peek().map(|entry| entry.f.0);
            if self.bound < i64::MAX && next.is_none_or(|f| f > self.bound) {
                if self.round + 1 == FAR && self.arrival.is_none() && std::mem::take(&mut self.asks) {
                    return Outcome::Far;
                }
                self.widen(field);
                continue;
            }
            let Some(entry) = self.queue.pop() else {
                return Outcome::Exhausted;
            };
            let node = entry.node.0;
            if node == END {
                // Only the best way to the end stays in the queue tested and first.
                return Outcome::Arrived;
            }
            if self.nodes[node as usize].state == State::Closed
                || !self.is_usable(field, node)
                || (!entry.is_tested && !self.holds(field, entry.parent, node))
            {
                continue;
            }
            if self.stats.expanded >= self.expanded_max {
                return Outcome::Limited;
            }
            let reached = &mut self.nodes[node as usize];
            reached.state = State::Closed;
            reached.parent = entry.parent;
            reached.g = entry.g;
            let best = (reached.heuristic, entry.g, entry.corner.0, node);
            self.best = self.best.min(best);
            self.expand(field, node, entry.g);
        }
    }

    /// What it took.
    pub(super) fn stats(&self) -> SearchStats {
        self.stats
    }

    /// The nodes' positions from the first after the start to the last before the end, after `Arrived`; otherwise to the
    /// node nearest to the end of those taken from the queue. Nothing if that is the start. Together with the length, which
    /// includes the way to the end.
    pub(super) fn way(&self, field: &Field<'_>, outcome: Outcome, waypoints: &mut Vec<Point>) -> i64 {
        let (mut node, cost) = match (outcome, self.arrival) {
            (Outcome::Arrived, Some((cost, parent))) => (parent, cost),
            _ => (self.best.3, self.best.1),
        };
        let first = waypoints.len();
        while node != START {
            waypoints.push(field.position(node));
            node = self.nodes[node as usize].parent;
        }
        waypoints[first..].reverse();
        cost
    }

    fn begin(&mut self, field: &Field<'_>, start: Point, end: Point) {
        let size = field.graph.nodes.len() + field.corners.len();
        if self.nodes.len() < size {
            self.nodes.resize(size, Reached::default());
        }
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            self.nodes.fill(Reached::default());
            1
        });
        self.queue.clear();
        self.stats = SearchStats::default();
        self.start = start;
        self.end = end;
        self.arrival = None;
        self.distance = start.squared_distance(end).isqrt();
        self.best = (self.distance, 0, 0, START);
        self.expanded.clear();
        self.round = 0;
        self.bound = bound(self.distance, BOUNDS[0]);
        self.seen_from_start = View::default();
        self.seen_from_end = View::default();
        self.corners_to_end.clear();
        let to_end = |&from: &Point| least_length(from, end);
        self.corners_to_end.extend(field.corners.iter().map(to_end));
        self.least_from_start.clear();
        self.least_from_start.resize(field.graph.nodes.len(), NOT_ASKED);
    }

    /// Tries the end, and puts the ways on from a node into the queue.
    fn expand(&mut self, field: &Field<'_>, node: u32, g: i64) {
        let turn = self.stats.expanded;
        self.stats.expanded += 1;
        self.expanded.push((node, g));
        self.try_end(field, node, g);
        if node == START {
            self.near.take(field.graph, (self.start, self.end), self.bound);
        }
        self.spread(field, turn, i64::MIN);
    }

    /// Goes on to the next bound: no farther than the best way to the end that is known.
    fn widen(&mut self, field: &Field<'_>) {
        let before = self.bound;
        self.round += 1;
        self.bound = match (self.arrival, BOUNDS.get(self.round)) {
            (Some((cost, _)), _) => cost,
            (None, Some(&sixteenths)) => bound(self.distance, sixteenths),
            (None, None) => i64::MAX,
        };
        self.near.take(field.graph, (self.start, self.end), self.bound);
        for turn in 0..self.expanded.len() as u32 {
            self.spread(field, turn, before);
        }
    }

    /// Puts the ways on from an expanded node into the queue, those with f above `above` and up to the bound.
    fn spread(&mut self, field: &Field<'_>, turn: u32, above: i64) {
        let (node, g) = self.expanded[turn as usize];
        let from = self.position(field, node);
        let fixed = field.graph.nodes.len() as u32;
        let mut way = Way {
            parent: node,
            turn,
            above,
            is_tested: false,
        };
        if node < fixed {
            way.is_tested = field.ground.octagons.is_empty();
            // PERF: most ways end here; sums of 32-bit numbers need no check (bench polyanya).
            let room = (self.bound - g) as u64;
            let near = std::mem::take(&mut self.near);
            for link in field.graph.links_from(node, near.nodes().start) {
                let Some(least) = near.least_to_end(link.node) else {
                    break;
                };
                if u64::from(link.length) + u64::from(least) <= room {
                    let g = g + i64::from(link.length);
                    let reached = &self.nodes[link.node as usize];
                    if g < reached.g || reached.generation != self.generation {
                        self.enter(field, &way, link.node, g);
                    }
                }
            }
            self.near = near;
        } else if node == START {
            self.spread_from_start(field, &way);
        } else {
            for other in self.near.nodes() {
                let to = &field.graph.nodes[other as usize];
                let direction = Vector::between(to.position, from);
                let to_end = self.near.least_to_end(other).unwrap_or(FAR_AWAY);
                let least = g + length_at_least(direction) + i64::from(to_end);
                if to_end != FAR_AWAY && least <= self.bound && may_leave(to, direction) {
                    let g = g + i64::from(length(from, to.position));
                    self.enter(field, &way, other, g);
                }
            }
        }
        for (other, &to) in (fixed..).zip(field.corners) {
            let to_end = i64::from(self.corners_to_end[(other - fixed) as usize]);
            let least = g + length_at_least(Vector::between(from, to)) + to_end;
            if other != node
                && least <= self.bound
                && !(node == START && self.seen_from_start.is_blocked(&field.ground, from, to))
            {
                self.enter(field, &way, other, g + i64::from(length(from, to)));
            }
        }
    }

    /// Puts the ways from the start to the graph's nodes into the queue.
    ///
    /// PERF: most nodes turn their back to most places, or are behind what is behind already; what has been found out of
    /// them is kept for the next round (bench polyanya).
    fn spread_from_start(&mut self, field: &Field<'_>, way: &Way) {
        let start = self.start;
        for index in self.near.nodes() {
            let Some(to_end) = self.near.least_to_end(index).filter(|&least| least != FAR_AWAY) else {
                continue;
            };
            let node = &field.graph.nodes[index as usize];
            let known = &mut self.least_from_start[index as usize];
            if *known == NOT_ASKED {
                let direction = Vector::between(node.position, start);
                let least = length_at_least(direction) + i64::from(to_end);
                if least > self.bound {
                    continue;
                }
                *known = if may_leave(node, direction) { least } else { NO_WAY };
            }
            if *known > self.bound {
                continue;
            }
            if self
                .seen_from_start
                .is_blocked(&field.ground, start, node.position)
            {
                *known = NO_WAY;
            } else {
                self.enter(field, way, index, length(start, node.position).into());
            }
        }
    }

    #[inline]
    fn enter(&mut self, field: &Field<'_>, way: &Way, node: u32, g: i64) {
        self.touch(field, node);
        let reached = &mut self.nodes[node as usize];
        if matches!(reached.state, State::Closed | State::Blocked) || g >= reached.g {
            return;
        }
        let f = g + reached.heuristic;
        if f > self.bound || f <= way.above {
            return;
        }
        if way.is_tested {
            reached.g = g;
        }
        self.stats.generated += 1;
        self.queue.push(Entry {
            f: Reverse(f),
            g,
            corner: Reverse(place(field.corner(node))),
            node: Reverse(node),
            turn: Reverse(way.turn),
            parent: way.parent,
            is_tested: way.is_tested,
        });
    }

    fn position(&self, field: &Field<'_>, node: u32) -> Point {
        if node == START {
            self.start
        } else {
            field.position(node)
        }
    }

    /// Links the end to a node if that is a shorter way.
    fn try_end(&mut self, field: &Field<'_>, node: u32, g: i64) {
        let end = self.end;
        let from = self.position(field, node);
        let direction = Vector::between(from, end);
        let known = self.arrival.map_or(i64::MAX, |(cost, _)| cost);
        if g + length_at_least(direction) >= known {
            return;
        }
        let floor = if node == START {
            self.distance
        } else {
            self.nodes[node as usize].heuristic
        };
        let cost = g + floor + i64::from(floor * floor < from.squared_distance(end));
        if cost < known
            && self.leads_out(node, direction)
            && (node != START || self.seen_from_start.sees(&field.ground, from, end))
            && self.seen_from_end.sees(&field.ground, end, from)
        {
            self.arrival = Some((cost, node));
            // The end is in the queue with its cost as f and the largest g there is for that.
            self.bound = self.bound.min(cost);
            self.stats.generated += 1;
            self.queue.push(Entry {
                f: Reverse(cost),
                g: cost,
                corner: Reverse(u64::MAX),
                node: Reverse(END),
                turn: Reverse(self.stats.expanded),
                parent: node,
                is_tested: true,
            });
        }
    }

    /// The link from a closed node to a usable one holds.
    fn holds(&mut self, field: &Field<'_>, parent: u32, node: u32) -> bool {
        let fixed = field.graph.nodes.len() as u32;
        let from = self.position(field, parent);
        let to = field.position(node);
        let direction = Vector::between(from, to);
        let gate = self.nodes[node as usize].gate;
        let may = direction.is_zero() || gate.is_none_or(|gate| gate.contains(-direction));
        may && self.leads_out(parent, direction)
            && if parent == START {
                self.seen_from_start.sees(&field.ground, from, to)
            } else if parent < fixed && node < fixed {
                // The links of the graph were tested when it was built.
                field.ground.is_clear(from, to)
            } else {
                field.ground.sees(from, to)
            }
    }

    fn leads_out(&self, node: u32, direction: Vector) -> bool {
        node == START
            || direction.is_zero()
            || self.nodes[node as usize]
                .gate
                .is_none_or(|gate| gate.contains(direction))
    }

    /// Makes sure that the node's entry is of this search.
    fn touch(&mut self, field: &Field<'_>, node: u32) {
        let reached = &mut self.nodes[node as usize];
        if reached.generation != self.generation {
            *reached = Reached {
                generation: self.generation,
                state: State::Open,
                parent: START,
                g: i64::MAX,
                heuristic: field.position(node).squared_distance(self.end).isqrt(),
                gate: None,
            };
        }
    }

    /// The node is free; of a graph's node this is found out, with its gate, when it is first asked.
    fn is_usable(&mut self, field: &Field<'_>, node: u32) -> bool {
        if self.nodes[node as usize].state == State::Open {
            let gate = match field.graph.nodes.get(node as usize) {
                None => corner_gate(field.ground, field.position(node), &mut self.sectors),
                Some(own) => node_gate(field.ground, own, &mut self.sectors),
            };
            let reached = &mut self.nodes[node as usize];
            reached.state = if gate.is_some() {
                State::Usable
            } else {
                State::Blocked
            };
            reached.gate = gate.flatten();
        }
        self.nodes[node as usize].state == State::Usable
    }
}

/// The free directions of a graph's node (`Some(None)`: all), or `None` if octagons leave too little of them. A corner has to
/// keep more than 180 degrees; another node, which a push has put there, one sector.
pub(super) fn node_gate(
    ground: Ground<'_>,
    &Node {
        position,
        corner,
        gate,
        ..
    }: &Node,
    sectors: &mut Vec<Sector>,
) -> Option<Option<Sector>> {
    let nearest = ground
        .octagons
        .iter()
        .map(|octagon| octagon.locate_point(position))
        .max();
    match nearest.unwrap_or(Ordering::Less) {
        Ordering::Less => return Some(gate),
        Ordering::Greater => return None,
        Ordering::Equal => {}
    }
    let location = ground.border.locate_point(position);
    if location == Location::Outside || ground.around(position, location, sectors) != Around::Sectors {
        return None;
    }
    let is_corner = position == corner;
    let mut own = sectors
        .iter()
        .filter(|sector| gate.is_none_or(|gate| gate.contains(sector.from) && gate.contains(sector.to)))
        .filter(|sector| !is_corner || sector.is_reflex());
    match (own.next(), own.next()) {
        (Some(&sector), None) => Some(Some(sector)),
        _ => None,
    }
}

/// As [`node_gate`], of an octagon's corner: a node where more than 180 degrees are free.
pub(super) fn corner_gate(
    ground: Ground<'_>,
    position: Point,
    sectors: &mut Vec<Sector>,
) -> Option<Option<Sector>> {
    let covered = ground
        .octagons
        .iter()
        .any(|octagon| octagon.locate_point(position).is_gt());
    if covered {
        return None;
    }
    let location = ground.border.locate_point(position);
    if location == Location::Outside || ground.around(position, location, sectors) != Around::Sectors {
        return None;
    }
    let own = sectors.iter().find(|sector| sector.is_reflex());
    own.map(|sector| Some(*sector))
}

/// The distance and so many sixteenths more.
const fn bound(distance: i64, sixteenths: i64) -> i64 {
    distance + distance * sixteenths / 16
}

/// A point as a number, in the order of x, then z.
fn place(point: Point) -> u64 {
    let shifted = |raw: i32| u64::from(raw as u32 ^ 0x8000_0000);
    (shifted(point.x.raw()) << 32) | shifted(point.z.raw())
}
