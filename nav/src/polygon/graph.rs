//! Nodes and the links between those in sight of each other.

use super::border::{Border, Witnesses};
use super::exact::{Vector, root_up};
use super::nodes::{Corner, Node, pushed};
use crate::geometry::Bounds;
use crate::{Fixed, Point};

/// The nodes of one inset with their links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    /// How far the nodes are pushed, at most.
    pub(super) inset: Fixed,
    /// In the order of their corners.
    pub(super) nodes: Vec<Node>,
    /// Links of node i: `links[starts[i]..starts[i + 1]]`, by node.
    starts: Vec<u32>,
    links: Vec<Link>,
}

/// A node in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) node: u32,
    /// The distance, rounded up; at most 32000 × √2 m.
    pub(super) length: u32,
}

impl Graph {
    /// The graph of a free space that differs from this one's within `changes` only (`None`: anywhere): every link is
    /// taken over that does not come near. Together with the number of pairs of nodes whose sight was asked.
    pub(super) fn changed(
        &self,
        border: &Border,
        corners: &[Corner],
        inset: Fixed,
        changes: Option<&[Bounds]>,
    ) -> (Self, u64) {
        let nodes: Vec<Node> = corners
            .iter()
            .map(|corner| pushed(border, corner, inset))
            .collect();
        let known = match changes {
            None => vec![None; nodes.len()],
            Some(_) => self.find_again(&nodes),
        };
        let changes = changes.unwrap_or_default();
        let mut asked = 0;
        let mut rows: Vec<Vec<Link>> = vec![Vec::new(); nodes.len()];
        for (i, one) in nodes.iter().enumerate() {
            let mut witnesses = Witnesses::default();
            let mut old = known[i].map(|number| self.links_of(number).iter().peekable());
            for (j, other) in nodes.iter().enumerate().skip(i + 1) {
                // The old links are in the order of the old numbers, which the new ones keep.
                let was_linked = old.as_mut().zip(known[j]).map(|(old, number)| {
                    while old.next_if(|link| link.node < number).is_some() {}
                    old.next_if(|link| link.node == number).is_some()
                });
                if one.part != other.part {
                    continue;
                }
                let is_linked = match was_linked {
                    Some(was_linked)
                        if !changes
                            .iter()
                            .any(|bounds| meets(bounds, one.position, other.position)) =>
                    {
                        was_linked
                    }
                    _ => {
                        asked += 1;
                        see_each_other(border, one, other, &mut witnesses)
                    }
                };
                if is_linked {
                    let length = length(one.position, other.position);
                    rows[i].push(Link {
                        node: j as u32,
                        length,
                    });
                    rows[j].push(Link {
                        node: i as u32,
                        length,
                    });
                }
            }
        }
        let mut graph = Self {
            inset,
            nodes,
            starts: vec![0],
            links: Vec::with_capacity(rows.iter().map(Vec::len).sum()),
        };
        for row in rows {
            graph.links.extend(row);
            graph.starts.push(graph.links.len() as u32);
        }
        (graph, asked)
    }

    /// The nodes in sight of a node.
    pub(super) fn links_of(&self, node: u32) -> &[Link] {
        &self.links[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// The nodes in sight of a node, from a number on.
    pub(super) fn links_from(&self, node: u32, first: u32) -> &[Link] {
        let links = self.links_of(node);
        &links[links.partition_point(|link| link.node < first)..]
    }

    /// How many links there are, each counted from both ends.
    pub(super) fn link_count(&self) -> usize {
        self.links.len()
    }

    /// For each of some nodes the number here of a node that is the same but for its part's number.
    fn find_again(&self, nodes: &[Node]) -> Vec<Option<u32>> {
        let mut next = 0;
        nodes
            .iter()
            .map(|node| {
                while next < self.nodes.len() && self.nodes[next].corner < node.corner {
                    next += 1;
                }
                // Few share a corner's raw point; each old one is taken at most once, in order.
                let same = self.nodes[next..]
                    .iter()
                    .take_while(|old| old.corner == node.corner)
                    .position(|old| old.position == node.position && old.gate == node.gate)?;
                next += same + 1;
                Some(next as u32 - 1)
            })
            .collect()
    }
}

/// The distance of two points, rounded up.
pub(super) fn length(one: Point, other: Point) -> u32 {
    root_up(one.squared_distance(other) as u64) as u32
}

/// A lower bound of a vector's length, at most 2 % below it and without a root.
#[inline]
pub(super) fn length_at_least(vector: Vector) -> i64 {
    // Along an axis, at 22.5 and at 45 degrees to it: dot products with vectors of length 1 (in 16 bits) at most.
    const BITS: u32 = 16;
    const COSINE: i64 = 60_547;
    const SINE: i64 = 25_079;
    const HALF: i64 = 46_340;
    const {
        assert!(COSINE * COSINE + SINE * SINE <= 1 << (2 * BITS));
        assert!(2 * HALF * HALF <= 1 << (2 * BITS));
    }
    let (x, z) = (vector.x.abs(), vector.z.abs());
    let (long, short) = (x.max(z), x.min(z));
    let between = (long * COSINE + short * SINE) >> BITS;
    long.max(between).max(((long + short) * HALF) >> BITS)
}

/// `witnesses`: of the view from the first.
fn see_each_other(border: &Border, one: &Node, other: &Node, witnesses: &mut Witnesses) -> bool {
    let direction = Vector::between(one.position, other.position);
    may_leave(one, direction)
        && may_leave(other, -direction)
        && witnesses.sees(border, one.position, other.position)
}

/// The node's own free directions have this one.
#[inline]
pub(super) fn may_leave(node: &Node, direction: Vector) -> bool {
    direction.is_zero() || node.gate.is_none_or(|gate| gate.contains(direction))
}

/// The segment from a to b touches the rectangle.
fn meets(bounds: &Bounds, a: Point, b: Point) -> bool {
    let apart = |a: Fixed, b: Fixed, low: Fixed, high: Fixed| a.max(b) < low || a.min(b) > high;
    if apart(a.x, b.x, bounds.min.x, bounds.max.x) || apart(a.z, b.z, bounds.min.z, bounds.max.z) {
        return false;
    }
    // The corners of the rectangle lie on both sides of the line.
    let direction = Vector::between(a, b);
    let (low, high) = (Vector::between(a, bounds.min), Vector::between(a, bounds.max));
    let (x, z) = (
        [direction.z * low.x, direction.z * high.x],
        [direction.x * low.z, direction.x * high.z],
    );
    z[0].min(z[1]) <= x[0].max(x[1]) && z[0].max(z[1]) >= x[0].min(x[1])
}
