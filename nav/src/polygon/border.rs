//! The free space as its border: pieces with the free space on their left, the places where they meet, the parts they bound.
//!
//! All questions are answered exactly, from the border alone: does a point lie in the free space, and in which part; does a
//! segment between two raw points stay in it. A segment that begins in the free space can leave it only at a contact with
//! the border: through the inside of a piece, or at a place, where both directions of the segment have to lie in one sector
//! of free directions. So two parts that meet in one point, or two obstacles that touch in one, are no passage.

mod build;

use std::cmp::Ordering;

use super::arrangement::Place;
use super::cells::Cells;
use super::exact::{Sector, Spot, Vector, compare_fractions};
use crate::Point;

/// The part of what has no raw point inside.
pub(super) const NO_PART: u32 = u32::MAX;

/// The border of a free space.
#[derive(Clone, Debug, Default)]
pub(super) struct Border {
    pub(super) edges: Vec<Edge>,
    pub(super) vertices: Vec<Vertex>,
    pub(super) sectors: Vec<VertexSector>,
    cells: Cells,
    /// Per cell where it lies, if no edge touches it; of another it says nothing.
    empty_cells: Vec<Location>,
}

/// A straight piece of the border, the free space on its left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// A raw point on its line.
    pub(super) start: Point,
    /// The primitive direction of its line.
    pub(super) along: Vector,
    /// Vertices.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Of the free space on its left.
    pub(super) part: u32,
    /// Its ends, if both are raw points.
    ///
    /// PERF: line of sight need not look them up (bench polyanya).
    ends: Option<[Point; 2]>,
}

/// Where edges meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) place: Place,
    /// The position, rounded down.
    pub(super) floor: Point,
    /// Its z, rounded up.
    ceiling_z: i32,
    /// Its sectors: `sectors[first..first + count]`.
    first: u32,
    count: u32,
}

/// Free directions from a vertex, between two edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexSector {
    pub(super) sector: Sector,
    /// The edge that begins here, along `sector.from`.
    pub(super) outgoing: u32,
    /// The edge that ends here, along `sector.to` reversed.
    pub(super) incoming: u32,
}

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Outside,
    /// In the inside of a part.
    Inside(u32),
    OnEdge(u32),
    AtVertex(u32),
}

/// Edges that blocked the view of one point last: where it is blocked again it is often by one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Witnesses {
    edges: [u32; 4],
    count: u8,
    next: u8,
}

impl Witnesses {
    /// One of them blocks the segment from a, which is free, to b.
    #[inline]
    pub(super) fn block(&self, border: &Border, a: Point, b: Point) -> bool {
        let direction = Vector::between(a, b);
        let mut edges = self.edges[..usize::from(self.count)].iter();
        edges.any(|&index| border.blocks(&border.edges[index as usize], a, b, direction))
    }

    /// As [`Border::sees`].
    pub(super) fn sees(&mut self, border: &Border, a: Point, b: Point) -> bool {
        let direction = Vector::between(a, b);
        if direction.is_zero() {
            return true;
        }
        !self.block(border, a, b) && self.sees_beyond(border, a, b)
    }

    /// As [`Border::sees`], where none of them blocks.
    pub(super) fn sees_beyond(&mut self, border: &Border, a: Point, b: Point) -> bool {
        let direction = Vector::between(a, b);
        if direction.is_zero() {
            return true;
        }
        let Some(index) = border.blocking_edge(a, b, direction) else {
            return true;
        };
        self.edges[usize::from(self.next)] = index;
        self.next = (self.next + 1) % self.edges.len() as u8;
        self.count = (self.count + 1).min(self.edges.len() as u8);
        false
    }
}

impl Border {
    /// Where a spot with w ≤ 2 lies.
    pub(super) fn locate(&self, spot: &Spot) -> Location {
        let mut on_border = None;
        let mut nearest: Option<u32> = None;
        let mut is_own_cell = true;
        self.cells.leftward(spot.floor(), |list, _, least_x| {
            for &index in list {
                let edge = &self.edges[index as usize];
                let side = spot.side(edge.start, edge.along);
                if is_own_cell && side.is_eq() {
                    on_border = self.on_edge(index, spot);
                    if on_border.is_some() {
                        return true;
                    }
                }
                // To the right of what goes up, to the left of what goes down: the edge lies to the left of the spot.
                let is_left = if edge.along.z > 0 {
                    side.is_lt()
                } else {
                    side.is_gt()
                };
                if is_left
                    && self.spans(index, spot)
                    && nearest.is_none_or(|other| self.compare_crossings(other, index, spot).is_lt())
                {
                    nearest = Some(index);
                }
            }
            is_own_cell = false;
            nearest.is_some_and(|index| {
                let (x, scale) = self.crossing(index, spot);
                x >= i128::from(least_x) * scale
            })
        });
        if let Some(location) = on_border {
            return location;
        }
        match nearest.map(|index| &self.edges[index as usize]) {
            Some(edge) if edge.along.z < 0 => Location::Inside(edge.part),
            _ => Location::Outside,
        }
    }

    /// As [`Border::locate`], of a raw point.
    ///
    /// PERF: in `i64`; every query asks for its start and its end (bench polyanya).
    pub(super) fn locate_point(&self, point: Point) -> Location {
        let mut on_border = None;
        let mut nearest: Option<(i64, u32)> = None;
        let mut is_own_cell = true;
        let spot = Spot::from(point);
        let mut around = None;
        self.cells.leftward(point, |list, cell, least_x| {
            if list.is_empty() && nearest.is_none() {
                around = self.empty_cells.get(cell).copied();
                is_own_cell = false;
                return around.is_some();
            }
            for &index in list {
                let edge = &self.edges[index as usize];
                let side = edge.along.cross(Vector::between(edge.start, point));
                if is_own_cell && side == 0 {
                    on_border = self.on_edge(index, &spot);
                    if on_border.is_some() {
                        return true;
                    }
                }
                let is_above = |vertex: u32| self.vertices[vertex as usize].ceiling_z > point.z.raw();
                let is_left = if edge.along.z > 0 { side < 0 } else { side > 0 };
                if !is_left || is_above(edge.from) == is_above(edge.to) {
                    continue;
                }
                let rise = (point.z.wide() - edge.start.z.wide()) * edge.along.z.signum();
                let x = edge.start.x.wide() + (rise * edge.along.x).div_euclid(edge.along.z.abs());
                let is_nearer = nearest.is_none_or(|(other_x, other)| {
                    x > other_x || (x == other_x && self.compare_crossings(other, index, &spot).is_lt())
                });
                if is_nearer {
                    nearest = Some((x, index));
                }
            }
            is_own_cell = false;
            nearest.is_some_and(|(x, _)| x >= least_x)
        });
        if let Some(location) = on_border {
            return location;
        }
        if let Some(location) = around {
            return location;
        }
        match nearest.map(|(_, index)| &self.edges[index as usize]) {
            Some(edge) if edge.along.z < 0 => Location::Inside(edge.part),
            _ => Location::Outside,
        }
    }

    /// A raw point lies in the free space.
    pub(super) fn contains(&self, point: Point) -> bool {
        self.locate_point(point) != Location::Outside
    }

    /// A point at this location belongs to this part (a point where parts meet: to each).
    pub(super) fn is_in_part(&self, location: Location, part: u32) -> bool {
        match location {
            Location::Outside => false,
            Location::Inside(own) => own == part,
            Location::OnEdge(edge) => self.edges[edge as usize].part == part,
            Location::AtVertex(vertex) => self
                .sectors_of(vertex)
                .iter()
                .any(|sector| self.part_of(sector) == part),
        }
    }

    /// The part of a sector.
    pub(super) fn part_of(&self, sector: &VertexSector) -> u32 {
        self.edges[sector.outgoing as usize].part
    }

    /// The free directions at a vertex; more than one sector where parts or walls meet in a point.
    pub(super) fn sectors_of(&self, vertex: u32) -> &[VertexSector] {
        let Vertex { first, count, .. } = self.vertices[vertex as usize];
        &self.sectors[first as usize..(first + count) as usize]
    }

    /// The segment between two raw points lies in the free space; `a` does.
    pub(super) fn sees(&self, a: Point, b: Point) -> bool {
        let direction = Vector::between(a, b);
        if direction.is_zero() {
            return true;
        }
        self.blocking_edge(a, b, direction).is_none()
    }

    /// An edge at which the segment from a, which is free, to b leaves the free space.
    fn blocking_edge(&self, a: Point, b: Point, direction: Vector) -> Option<u32> {
        let mut found = None;
        self.cells.any_along(a, b, |list| {
            let mut list = list.iter().copied();
            found = list.find(|&index| self.blocks(&self.edges[index as usize], a, b, direction));
            found.is_some()
        });
        found
    }

    /// Calls `visit` with each edge that may touch the segment from a to b, some more than once, until it returns true;
    /// whether it did.
    pub(super) fn any_edge_along(&self, a: Point, b: Point, mut visit: impl FnMut(&Edge) -> bool) -> bool {
        self.cells.any_along(a, b, |list| {
            list.iter().any(|&index| visit(&self.edges[index as usize]))
        })
    }

    /// The side of a vertex from the line through `a` along `direction`: `Greater` is left.
    #[inline]
    pub(super) fn side_of_vertex(&self, a: Point, direction: Vector, vertex: u32) -> Ordering {
        let Vertex { place, floor, .. } = &self.vertices[vertex as usize];
        match place {
            Place::Raw(_) => direction.cross(Vector::between(a, *floor)).cmp(&0),
            Place::Between(spot) => spot.side(a, direction),
        }
    }

    /// A vertex on the line through a and b lies on the segment; how: `Less` at a, `Greater` at b, `Equal` between.
    pub(super) fn on_segment(&self, a: Point, b: Point, vertex: u32) -> Option<Ordering> {
        let Vertex { place, floor, .. } = &self.vertices[vertex as usize];
        if let Place::Raw(point) = place {
            if *point == a {
                return Some(Ordering::Less);
            }
            if *point == b {
                return Some(Ordering::Greater);
            }
        }
        let between = |low: i32, floor: i32, high: i32| low.min(high) <= floor && floor <= low.max(high);
        let is_between = match place {
            Place::Raw(_) => {
                between(a.x.raw(), floor.x.raw(), b.x.raw()) && between(a.z.raw(), floor.z.raw(), b.z.raw())
            }
            Place::Between(spot) => {
                let inside = |one: i32, value: i128, other: i32| {
                    let (one, other) = (i128::from(one) * spot.w, i128::from(other) * spot.w);
                    one.min(other) <= value && value <= one.max(other)
                };
                inside(a.x.raw(), spot.x, b.x.raw()) && inside(a.z.raw(), spot.z, b.z.raw())
            }
        };
        is_between.then_some(Ordering::Equal)
    }

    /// The sector at a vertex in which a segment passes through it.
    pub(super) fn passage(&self, vertex: u32, direction: Vector) -> Option<&VertexSector> {
        self.sectors_of(vertex)
            .iter()
            .find(|own| own.sector.contains(direction) && own.sector.contains(-direction))
    }

    /// The segment from a to b, which begins in the free space, leaves it at this edge.
    #[inline]
    fn blocks(&self, edge: &Edge, a: Point, b: Point, direction: Vector) -> bool {
        // PERF: rejects nearly all edges with two products each (bench polyanya).
        let side_of_a = edge.along.cross(Vector::between(edge.start, a));
        let side_of_b = edge.along.cross(Vector::between(edge.start, b));
        if (side_of_a > 0 && side_of_b > 0) || (side_of_a < 0 && side_of_b < 0) {
            return false;
        }
        let (side_of_from, side_of_to) = match edge.ends {
            Some([from, to]) => (
                direction.cross(Vector::between(a, from)).cmp(&0),
                direction.cross(Vector::between(a, to)).cmp(&0),
            ),
            None => (
                self.side_of_vertex(a, direction, edge.from),
                self.side_of_vertex(a, direction, edge.to),
            ),
        };
        if side_of_from == side_of_to && side_of_from.is_ne() {
            return false;
        }
        if side_of_from == side_of_to.reverse() && side_of_from.is_ne() {
            // The line of the segment meets the inside of the edge, from the free side or beginning or ending on it.
            return side_of_a < 0 || side_of_b < 0;
        }
        let is_stuck = |side: Ordering, vertex: u32| {
            side.is_eq()
                && match self.on_segment(a, b, vertex) {
                    None => false,
                    Some(Ordering::Equal) => self.passage(vertex, direction).is_none(),
                    Some(Ordering::Less) => !self.leads_out(vertex, direction),
                    Some(Ordering::Greater) => !self.leads_out(vertex, -direction),
                }
        };
        is_stuck(side_of_from, edge.from) || is_stuck(side_of_to, edge.to)
    }

    fn leads_out(&self, vertex: u32, direction: Vector) -> bool {
        let mut sectors = self.sectors_of(vertex).iter();
        sectors.any(|own| own.sector.contains(direction))
    }

    /// Where on an edge a spot of its line lies, if it does.
    fn on_edge(&self, index: u32, spot: &Spot) -> Option<Location> {
        let edge = &self.edges[index as usize];
        let along = |spot: &Spot| {
            if edge.along.x != 0 {
                (spot.x * i128::from(edge.along.x.signum()), spot.w)
            } else {
                (spot.z * i128::from(edge.along.z.signum()), spot.w)
            }
        };
        let at = along(spot);
        let compare = |vertex: u32| compare_fractions(along(&self.spot(vertex)), at);
        match (compare(edge.from), compare(edge.to)) {
            (Ordering::Equal, _) => Some(Location::AtVertex(edge.from)),
            (_, Ordering::Equal) => Some(Location::AtVertex(edge.to)),
            (Ordering::Less, Ordering::Greater) => Some(Location::OnEdge(index)),
            _ => None,
        }
    }

    /// The position of a vertex.
    pub(super) fn spot(&self, vertex: u32) -> Spot {
        match self.vertices[vertex as usize].place {
            Place::Raw(point) => point.into(),
            Place::Between(spot) => spot,
        }
    }

    /// The edge crosses the horizontal line a trifle above the spot.
    fn spans(&self, index: u32, spot: &Spot) -> bool {
        let edge = &self.edges[index as usize];
        let is_above = |vertex: u32| {
            let place = &self.vertices[vertex as usize];
            match &place.place {
                Place::Raw(point) => i128::from(point.z.wide()) * spot.w > spot.z,
                Place::Between(other) => compare_fractions((other.z, other.w), (spot.z, spot.w)).is_gt(),
            }
        };
        is_above(edge.from) != is_above(edge.to)
    }

    /// Compares where two edges cross the horizontal line a trifle above a spot with w ≤ 2.
    fn compare_crossings(&self, one: u32, other: u32, spot: &Spot) -> Ordering {
        compare_fractions(self.crossing(one, spot), self.crossing(other, spot)).then_with(|| {
            let slope = |index: u32| {
                let Vector { x, z } = self.edges[index as usize].along;
                (i128::from(x * z.signum()), i128::from(z.abs()))
            };
            compare_fractions(slope(one), slope(other))
        })
    }

    /// Where the line of an edge crosses the horizontal line through a spot with w ≤ 2: x as a fraction.
    fn crossing(&self, index: u32, spot: &Spot) -> (i128, i128) {
        let Edge { start, along, .. } = &self.edges[index as usize];
        let sign = i128::from(along.z.signum());
        let denominator = i128::from(along.z.abs()) * spot.w;
        let rise = spot.z - i128::from(start.z.wide()) * spot.w;
        (
            i128::from(start.x.wide()) * denominator + rise * i128::from(along.x) * sign,
            denominator,
        )
    }
}
