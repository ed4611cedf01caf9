//! The nodes of a graph near the straight way: those in the rectangle around all points through which a way from the start to
//! the end within a bound can go.
//!
//! PERF: the nodes are in the order of x, so a search looks at some of them only (bench polyanya).

use std::ops::Range;

use super::exact::Vector;
use super::graph::{Graph, length_at_least};
use crate::Point;

/// Of a node outside of the rectangle; above every length.
pub(super) const FAR_AWAY: u32 = u32::MAX;

/// The nodes near one straight way, with lower bounds of their distances to the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Near {
    first: u32,
    /// Of the nodes from `first` on; [`FAR_AWAY`] if it is too far up or down.
    to_end: Vec<u32>,
}

impl Near {
    /// Takes the nodes through which a way from start to end of at most `bound` raw can go, each link rounded up and the
    /// last one rounded down.
    pub(super) fn take(&mut self, graph: &Graph, (start, end): (Point, Point), bound: i64) {
        let along = Vector::between(start, end);
        let reach = |across: i64| reach(bound, across);
        let x_reach = reach(along.z).map(|reach| (start.x.wide() + end.x.wide(), reach));
        let z_reach = reach(along.x).map(|reach| (start.z.wide() + end.z.wide(), reach));
        let nodes = match x_reach {
            None => 0..graph.nodes.len(),
            Some((doubled_middle, reach)) => {
                // A node is pushed away from its corner by the inset at most.
                let push = graph.inset.wide();
                let low = graph
                    .nodes
                    .partition_point(|node| 2 * (node.corner.x.wide() + push) < doubled_middle - reach);
                let high = graph
                    .nodes
                    .partition_point(|node| 2 * (node.corner.x.wide() - push) <= doubled_middle + reach);
                low..high
            }
        };
        self.first = nodes.start as u32;
        self.to_end.clear();
        self.to_end.extend(graph.nodes[nodes].iter().map(|node| {
            let is_near = z_reach.is_none_or(|(doubled_middle, reach)| {
                (2 * node.position.z.wide() - doubled_middle).abs() <= reach
            });
            if is_near {
                least_length(node.position, end)
            } else {
                FAR_AWAY
            }
        }));
    }

    /// Numbers from the first to the last of them; some between may be [`FAR_AWAY`].
    pub(super) fn nodes(&self) -> Range<u32> {
        self.first..self.first + self.to_end.len() as u32
    }

    /// A lower bound of a node's distance to the end; [`FAR_AWAY`] or `None` if no way within the bound goes through it.
    #[inline]
    pub(super) fn least_to_end(&self, node: u32) -> Option<u32> {
        self.to_end.get(node.wrapping_sub(self.first) as usize).copied()
    }
}

/// A lower bound of the distance of two points of the world.
pub(super) fn least_length(from: Point, to: Point) -> u32 {
    // At most the extent of the world, 32000 × √2 m.
    length_at_least(Vector::between(from, to)) as u32
}

/// Points of which the distances to two others add up to less than `bound` + 1 fill an ellipse; this is its extent along one
/// axis, if the two are `across` apart along the other axis. `None`: as good as no limit.
fn reach(bound: i64, across: i64) -> Option<i64> {
    let sum = u32::try_from(bound.checked_add(1)?).ok()?;
    let square = u64::from(sum).pow(2).saturating_sub(across.unsigned_abs().pow(2));
    Some(super::exact::root_up(square) as i64)
}
