//! Whether octagons cut a point off from the start: a flood over nodes in sight of each other, from both sides.
//!
//! The nodes are those with inset 0, whose links are exactly what can be walked between (spec 7.1: nothing reachable is
//! called unreachable). The sides take turns: a pocket is small, whoever sits in it. What the start has reached, and which
//! points it cannot, is kept for the next point of the same query.

use super::exact::{Sector, Vector};
use super::graph::may_leave;
use super::ground::View;
use super::search::{Field, corner_gate, node_gate};
use crate::Point;

/// The scratch of floods on one field.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    nodes: Vec<Known>,
    generation: u32,
    /// Of the flood from the point.
    point_generation: u32,
    sides: [Side; 2],
    /// Points that the start cannot reach, the last ones.
    cut_off: Vec<Point>,
    sectors: Vec<Sector>,
}

/// Steps of the start's flood before any of a point's: most that are cut off are so in a crowd of their own.
const STEPS_FIRST: usize = 16;
/// Points cut off that are remembered.
const CUT_OFF_MAX: usize = 8;

/// What is known of a node; of another generation: nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    generation: u32,
    /// Free directions, if it is free.
    gate: Option<Option<Sector>>,
    /// Reached in this generation from the start, and of the flood from the point.
    from_start: u32,
    from_point: u32,
}

/// One of the two floods.
#[derive(Clone, Debug, Default)]
struct Side {
    seed: Point,
    /// Nodes in the order in which they were reached; the first `done` have been left in all directions, and the seed before
    /// all.
    reached: Vec<u32>,
    done: usize,
    has_left_seed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    FromStart,
    FromPoint,
}

impl Reach {
    /// Forgets everything: another query.
    pub(super) fn begin(&mut self, field: &Field<'_>, start: Point) {
        let size = field.graph.nodes.len() + field.corners.len();
        if self.nodes.len() < size {
            self.nodes.resize(size, Known::default());
        }
        self.generation = self.next_generation(self.generation);
        self.sides[Flood::FromStart as usize].restart(start);
        self.cut_off.clear();
    }

    /// A free point can be reached from the start, which is free too.
    pub(super) fn connects(&mut self, field: &Field<'_>, point: Point) -> bool {
        let start = self.sides[Flood::FromStart as usize].seed;
        if field.ground.sees(start, point) {
            return true;
        }
        // Whoever sees somebody who is cut off is so too, but on a point where two sides meet.
        let is_seen = self.cut_off.iter().any(|&other| field.ground.sees(other, point));
        if is_seen {
            let location = field.ground.border.locate_point(point);
            field.ground.around(point, location, &mut self.sectors);
            if self.sectors.len() < 2 {
                return false;
            }
        }
        let connects = self.floods_meet(field, point);
        if !connects {
            if self.cut_off.len() == CUT_OFF_MAX {
                self.cut_off.remove(0);
            }
            self.cut_off.push(point);
        }
        connects
    }

    fn floods_meet(&mut self, field: &Field<'_>, point: Point) -> bool {
        // No point's flood is going on.
        self.point_generation = self.next_generation(self.point_generation);
        while self.sides[Flood::FromStart as usize].done < STEPS_FIRST {
            if self.step(field, Flood::FromStart).is_none() {
                // All that the start can reach is known.
                let mut view = View::default();
                let count = self.sides[Flood::FromStart as usize].reached.len();
                return (0..count).any(|index| {
                    let node = self.sides[Flood::FromStart as usize].reached[index];
                    self.is_in_sight(field, &mut view, node, point)
                });
            }
        }
        self.point_generation = self.next_generation(self.point_generation);
        self.sides[Flood::FromPoint as usize].restart(point);
        loop {
            match self.step(field, Flood::FromPoint) {
                Some(true) => return true,
                Some(false) => {}
                None => return false,
            }
            match self.step(field, Flood::FromStart) {
                Some(true) => return true,
                Some(false) => {}
                // All that the start can reach is known, and the point has asked all of it.
                None => return false,
            }
        }
    }

    /// A node is free and may be left for a point that it sees; `view`: of the point.
    pub(super) fn is_in_sight(
        &mut self,
        field: &Field<'_>,
        view: &mut View,
        node: u32,
        point: Point,
    ) -> bool {
        let position = field.position(node);
        if view.is_blocked(&field.ground, point, position) {
            return false;
        }
        let Some(gate) = self.gate(field, node) else {
            return false;
        };
        let direction = Vector::between(position, point);
        (direction.is_zero() || gate.is_none_or(|gate| gate.contains(direction)))
            && view.sees(&field.ground, point, position)
    }

    /// Leaves the next node in all directions; whether the floods have met, or `None` if there is no next.
    fn step(&mut self, field: &Field<'_>, flood: Flood) -> Option<bool> {
        let side = &mut self.sides[flood as usize];
        let node = if side.has_left_seed {
            let node = *side.reached.get(side.done)?;
            side.done += 1;
            Some(node)
        } else {
            side.has_left_seed = true;
            None
        };
        let seed = side.seed;
        let mut view = View::default();
        let fixed = field.graph.nodes.len() as u32;
        let count = fixed + field.corners.len() as u32;
        // Every way is gone, also when the floods have met: the start's is needed again.
        let mut meets = false;
        match node {
            Some(node) => {
                let mut unlinked = 0..count;
                if node < fixed {
                    for link in field.graph.links_of(node) {
                        meets |= self.enter(field, flood, &mut view, node, link.node, true);
                    }
                    unlinked = fixed..count;
                }
                for other in unlinked {
                    meets |= self.enter(field, flood, &mut view, node, other, false);
                }
            }
            None => {
                for other in 0..count {
                    if !self.is_reached(flood, other) && self.is_in_sight(field, &mut view, other, seed) {
                        meets |= self.mark(flood, other);
                    }
                }
            }
        }
        Some(meets)
    }

    /// Goes from a node to another if that is new and in sight; whether the other flood was there before. `view`: of the
    /// first.
    fn enter(
        &mut self,
        field: &Field<'_>,
        flood: Flood,
        view: &mut View,
        from: u32,
        to: u32,
        is_linked: bool,
    ) -> bool {
        if from == to || self.is_reached(flood, to) {
            return false;
        }
        let (a, b) = (field.position(from), field.position(to));
        let direction = Vector::between(a, b);
        let fixed = field.graph.nodes.len() as u32;
        // PERF: the cheap questions first; in a crowd hardly any node sees another.
        if to < fixed && !may_leave(&field.graph.nodes[to as usize], -direction)
            || view.is_blocked(&field.ground, a, b)
        {
            return false;
        }
        let mut leads = |node: u32, direction: Vector| {
            self.gate(field, node)
                .is_some_and(|gate| direction.is_zero() || gate.is_none_or(|gate| gate.contains(direction)))
        };
        let is_free = leads(to, -direction) && leads(from, direction);
        let is_in_sight = is_free
            && if is_linked {
                view.is_clear(&field.ground, a, b)
            } else {
                view.sees(&field.ground, a, b)
            };
        is_in_sight && self.mark(flood, to)
    }

    fn is_reached(&self, flood: Flood, node: u32) -> bool {
        let known = &self.nodes[node as usize];
        match flood {
            Flood::FromStart => known.from_start == self.generation,
            Flood::FromPoint => known.from_point == self.point_generation,
        }
    }

    /// The flood has reached a node; whether the other one was there before.
    fn mark(&mut self, flood: Flood, node: u32) -> bool {
        let (generation, point_generation) = (self.generation, self.point_generation);
        let known = &mut self.nodes[node as usize];
        self.sides[flood as usize].reached.push(node);
        match flood {
            Flood::FromStart => {
                known.from_start = generation;
                known.from_point == point_generation
            }
            Flood::FromPoint => {
                known.from_point = point_generation;
                known.from_start == generation
            }
        }
    }

    /// The free directions of a node, if it is free.
    fn gate(&mut self, field: &Field<'_>, node: u32) -> Option<Option<Sector>> {
        let known = &mut self.nodes[node as usize];
        if known.generation != self.generation {
            known.generation = self.generation;
            known.gate = match field.graph.nodes.get(node as usize) {
                Some(own) => node_gate(field.ground, own, &mut self.sectors),
                None => corner_gate(field.ground, field.position(node), &mut self.sectors),
            };
        }
        known.gate
    }

    fn next_generation(&mut self, generation: u32) -> u32 {
        generation.checked_add(1).unwrap_or_else(|| {
            self.nodes.fill(Known::default());
            1
        })
    }
}

impl Side {
    fn restart(&mut self, seed: Point) {
        self.seed = seed;
        self.reached.clear();
        self.done = 0;
        self.has_left_seed = false;
    }
}
