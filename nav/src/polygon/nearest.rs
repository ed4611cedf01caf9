//! The nearest point of the free space, or of a reachable part of it, to a point that lies elsewhere.
//!
//! It lies on the border or on an octagon: it is the projection of the point on an edge, an end of an edge, or a place where
//! an octagon's edge crosses another edge. Such candidates are compared by exact distance, from the nearest on, and the
//! first that has a raw point beside it is taken, rounded to that point (spec 7.1).

use std::cmp::Ordering;

use super::border::{Border, Edge, Location};
use super::exact::{Sector, Spot, SquaredDistance, Vector};
use super::ground::{Ground, Octagon};
use super::nodes::{Verdict, nearest_raw};
use crate::Point;

/// The first radius to look within, raw; four times as far each time.
const RADIUS_FIRST: i64 = 1 << 16;
/// Farther than any two points of the world.
const RADIUS_LAST: i64 = 1 << 32;

/// Which parts of the free space count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parts<'a> {
    Any,
    These(&'a [u32]),
}

impl Parts<'_> {
    fn contain(self, part: u32) -> bool {
        match self {
            Self::Any => true,
            Self::These(parts) => parts.contains(&part),
        }
    }

    /// A point at this location lies in one of them.
    pub(super) fn contain_location(self, border: &Border, location: Location) -> bool {
        match self {
            Self::Any => location != Location::Outside,
            Self::These(parts) => parts.iter().any(|&part| border.is_in_part(location, part)),
        }
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    /// The raw point.
    pub(super) point: Option<Point>,
    /// Nearer free points were refused.
    pub(super) skipped: bool,
}

/// Scratch of the search for a nearest point.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    octagons: Vec<Octagon>,
    sides: Vec<Side>,
    near: Vec<(i128, i32, i32)>,
    sectors: Vec<Sector>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    distance: SquaredDistance,
    spot: Spot,
}

/// An edge of an octagon, or one of the border.
#[derive(Clone, Copy, Debug)]
struct Side {
    start: Point,
    /// Primitive.
    along: Vector,
    ends: [Spot; 2],
    /// A rectangle around it, a raw wider at most.
    low: Vector,
    high: Vector,
    /// It is on the border of the free space.
    is_border: bool,
}

impl Side {
    fn new(start: Point, along: Vector, ends: [Spot; 2], is_border: bool) -> Self {
        let floors =
            [ends[0].floor(), ends[1].floor()].map(|point| Vector::new(point.x.wide(), point.z.wide()));
        let [a, b] = floors;
        Self {
            start,
            along,
            ends,
            low: Vector::new(a.x.min(b.x), a.z.min(b.z)),
            high: Vector::new(a.x.max(b.x) + 1, a.z.max(b.z) + 1),
            is_border,
        }
    }
}

impl Candidates {
    /// The nearest point to `target` of the free space in these parts, at most `distance_max` raw away, unless `accept`
    /// refuses it. `target` itself is none.
    pub(super) fn nearest(
        &mut self,
        ground: Ground<'_>,
        parts: Parts<'_>,
        target: Point,
        distance_max: Option<i64>,
        mut accept: impl FnMut(Point) -> bool,
    ) -> Nearest {
        let limit = distance_max.unwrap_or(RADIUS_LAST);
        let mut found = Nearest {
            point: None,
            skipped: false,
        };
        let mut radius = RADIUS_FIRST.min(limit);
        let mut done = 0;
        loop {
            self.collect(ground, parts, target, radius);
            // Those of the last radius come first again, and were refused.
            for index in done..self.list.len() {
                let spot = self.list[index].spot;
                match self.round(ground, parts, &spot, &mut accept) {
                    Some(point) => {
                        found.point = Some(point);
                        return found;
                    }
                    None => found.skipped = true,
                }
            }
            if radius >= limit {
                return found;
            }
            done = self.list.len();
            radius = (4 * radius).min(limit);
        }
    }

    /// The raw point for a candidate.
    fn round(
        &mut self,
        ground: Ground<'_>,
        parts: Parts<'_>,
        spot: &Spot,
        accept: &mut impl FnMut(Point) -> bool,
    ) -> Option<Point> {
        let sectors = &mut self.sectors;
        nearest_raw(spot, &mut self.near, |point| {
            let location = ground.border.locate_point(point);
            if !parts.contain_location(ground.border, location) || !ground.is_open(point, location, sectors) {
                Verdict::Passed
            } else if accept(point) {
                Verdict::Taken
            } else {
                Verdict::Refused
            }
        })
    }

    /// Lists the candidates, the nearest first: all within `radius`.
    fn collect(&mut self, ground: Ground<'_>, parts: Parts<'_>, target: Point, radius: i64) {
        self.list.clear();
        self.sides.clear();
        self.octagons.clear();
        let near = |octagon: &&Octagon| {
            let offset = Vector::between(octagon.centre, target);
            offset.x.abs().max(offset.z.abs()) <= octagon.reach + radius
        };
        self.octagons.extend(ground.octagons.iter().filter(near));
        for octagon in &self.octagons {
            let corners = octagon.corners();
            for (index, &one) in corners.iter().enumerate() {
                let other = corners[(index + 1) % corners.len()];
                // Octagons reach out of the world, but not out of the numbers.
                let point = |offset: Vector| {
                    let x = i32::try_from(octagon.centre.x.wide() + offset.x).ok()?;
                    let z = i32::try_from(octagon.centre.z.wide() + offset.z).ok()?;
                    Some(Point::from_raw(x, z))
                };
                if let (Some(a), Some(b)) = (point(one), point(other))
                    && a != b
                {
                    self.sides.push(Side::new(
                        a,
                        Vector::between(a, b).primitive(),
                        [a.into(), b.into()],
                        false,
                    ));
                }
            }
        }
        let octagon_sides = self.sides.len();
        for edge in &ground.border.edges {
            if !parts.contain(edge.part) || !is_near(ground.border, edge, target, radius) {
                continue;
            }
            let ends = [edge.from, edge.to].map(|vertex| ground.border.spot(vertex));
            self.sides.push(Side::new(edge.start, edge.along, ends, true));
        }
        for index in 0..self.sides.len() {
            let side = self.sides[index];
            self.offer(
                ground,
                parts,
                target,
                radius,
                nearest_on(&side, target),
                side.is_border,
            );
            if index < octagon_sides {
                for other in index + 1..self.sides.len() {
                    let other = self.sides[other];
                    if let Some(spot) = crossing(&side, &other) {
                        self.offer(ground, parts, target, radius, spot, other.is_border);
                    }
                }
            }
        }
        self.list.sort_unstable_by(|one, other| {
            one.distance
                .compare(&other.distance)
                .then_with(|| one.spot.compare(&other.spot))
        });
        self.list
            .dedup_by(|one, other| one.spot.compare(&other.spot).is_eq());
    }

    /// Takes a spot into the list if it lies within the radius and in the free space of these parts; one on an edge of
    /// theirs does but for the octagons.
    fn offer(
        &mut self,
        ground: Ground<'_>,
        parts: Parts<'_>,
        target: Point,
        radius: i64,
        spot: Spot,
        is_on_border: bool,
    ) {
        let distance = spot.squared_distance(target);
        if !distance.is_within((i128::from(radius) * i128::from(radius)).unsigned_abs()) {
            return;
        }
        if self.octagons.iter().any(|octagon| octagon.locate(&spot).is_gt()) {
            return;
        }
        if is_on_border || parts.contain_location(ground.border, ground.border.locate(&spot)) {
            self.list.push(Candidate { distance, spot });
        }
    }
}

/// The edge may come within `radius` of the target.
fn is_near(border: &Border, edge: &Edge, target: Point, radius: i64) -> bool {
    let [a, b] =
        [edge.from, edge.to].map(|vertex| Vector::between(target, border.vertices[vertex as usize].floor));
    // Floors: one more on the upper side.
    let apart = |a: i64, b: i64| a.min(b) > radius || a.max(b) + 1 < -radius;
    !apart(a.x, b.x) && !apart(a.z, b.z)
}

/// The nearest point of a side.
fn nearest_on(side: &Side, target: Point) -> Spot {
    let Vector { x, z } = side.along;
    // How far an end lies beyond the foot of the perpendicular.
    let beyond = |end: &Spot| {
        i128::from(x) * (end.x - i128::from(target.x.wide()) * end.w)
            + i128::from(z) * (end.z - i128::from(target.z.wide()) * end.w)
    };
    if beyond(&side.ends[0]) >= 0 {
        side.ends[0]
    } else if beyond(&side.ends[1]) <= 0 {
        side.ends[1]
    } else {
        let way = side.along.dot(Vector::between(side.start, target));
        let length = side.along.dot(side.along);
        Spot::on_line(side.start, side.along, way.into(), length.into())
    }
}

/// The point where an octagon's side crosses another side, ends included.
fn crossing(side: &Side, other: &Side) -> Option<Spot> {
    // PERF: in a crowd hardly any two come near each other.
    let apart = side.high.x < other.low.x
        || other.high.x < side.low.x
        || side.high.z < other.low.z
        || other.high.z < side.low.z;
    let turn = side.along.cross(other.along);
    if apart || turn == 0 {
        return None;
    }
    let offset = Vector::between(side.start, other.start);
    let way = offset.wide_cross(other.along) * i128::from(turn.signum());
    let spot = Spot::on_line(side.start, side.along, way, turn.abs().into());
    let is_on = |side: &Side| {
        let [from, to] = &side.ends;
        let (from, to) = (from.compare(&spot), to.compare(&spot));
        // On the line of both, position order is order along the line.
        from != to || from == Ordering::Equal
    };
    (is_on(side) && is_on(other)).then_some(spot)
}
