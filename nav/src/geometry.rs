//! Exact predicates on points, segments and simple polygons (spec 1, "Predicates"): no epsilon, no rounding but where the
//! spec itself rounds.
//!
//! Bounds: vertices lie within the world limit, so edge vectors are at most 32,000 m a coordinate; cell centres reach
//! [`GRID_REACH`], 500 m farther. Products of two such differences and sums of two products fit `i64`; where two squared
//! lengths meet, `i128` is used.

use std::cmp::Ordering;

use serde::Serialize;

use crate::{Fixed, Point, WORLD_LIMIT};

/// Largest |coordinate| of a grid's far corner, metres: the world limit, a margin of 2 × 100 + 100 + 100 m, and the rest of
/// the last cell, at most 100 m.
pub const GRID_REACH: Fixed = Fixed::from_int(16_500);

/// Most vertices of one polygon.
pub const POLYGON_VERTICES_MAX: usize = 16_384;

// The largest sum of two products: an edge vector times a vector from a vertex to a cell centre, both coordinates.
const _: () = {
    let edge = 2 * WORLD_LIMIT.wide();
    let to_centre = WORLD_LIMIT.wide() + GRID_REACH.wide();
    assert!(2 * edge as i128 * to_centre as i128 <= i64::MAX as i128);
    assert!(2 * to_centre as i128 * to_centre as i128 <= i64::MAX as i128);
    // A squared sum of two products against a squared length times a squared radius.
    assert!((2 * edge as i128 * to_centre as i128).checked_pow(2).is_some());
};

/// A closed rectangle along the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Least x and z.
    pub min: Point,
    /// Greatest x and z.
    pub max: Point,
}

impl Bounds {
    /// The smallest rectangle around these points; `None` without any.
    pub fn around(points: impl IntoIterator<Item = Point>) -> Option<Self> {
        let mut points = points.into_iter();
        let first = points.next()?;
        let start = Self {
            min: first,
            max: first,
        };
        Some(points.fold(start, |bounds, point| {
            bounds.union(Self {
                min: point,
                max: point,
            })
        }))
    }

    /// The smallest rectangle around both.
    pub fn union(self, other: Self) -> Self {
        Self {
            min: Point::new(self.min.x.min(other.min.x), self.min.z.min(other.min.z)),
            max: Point::new(self.max.x.max(other.max.x), self.max.z.max(other.max.z)),
        }
    }

    /// Its middle, rounded down to raw.
    pub fn centre(&self) -> Point {
        let middle = |min: Fixed, max: Fixed| Fixed::from_raw(((min.wide() + max.wide()) >> 1) as i32);
        Point::new(middle(self.min.x, self.max.x), middle(self.min.z, self.max.z))
    }

    /// Extent in x, metres; at most the greatest [`Fixed`].
    pub fn width(&self) -> Fixed {
        Fixed::from_raw(i32::try_from(self.max.x.wide() - self.min.x.wide()).unwrap_or(i32::MAX))
    }

    /// The point lies inside or on the border, the rectangle grown by `margin` raw on each side.
    pub const fn contains_within(&self, point: Point, margin: i64) -> bool {
        self.min.x.wide() - margin <= point.x.wide()
            && point.x.wide() <= self.max.x.wide() + margin
            && self.min.z.wide() - margin <= point.z.wide()
            && point.z.wide() <= self.max.z.wide() + margin
    }

    /// The two share a point when one is grown by `margin` raw on each side.
    pub const fn meets_within(&self, other: &Self, margin: i64) -> bool {
        self.min.x.wide() - margin <= other.max.x.wide()
            && other.min.x.wide() <= self.max.x.wide() + margin
            && self.min.z.wide() - margin <= other.max.z.wide()
            && other.min.z.wide() <= self.max.z.wide() + margin
    }
}

/// A straight line between two different points, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// One end.
    pub a: Point,
    /// The other end.
    pub b: Point,
}

impl Segment {
    /// From one point to another.
    pub const fn new(a: Point, b: Point) -> Self {
        Self { a, b }
    }

    /// The rectangle around it.
    pub fn bounds(self) -> Bounds {
        Bounds {
            min: Point::new(self.a.x.min(self.b.x), self.a.z.min(self.b.z)),
            max: Point::new(self.a.x.max(self.b.x), self.a.z.max(self.b.z)),
        }
    }

    /// Squared length, raw².
    pub const fn squared_length(self) -> i64 {
        self.a.squared_distance(self.b)
    }

    /// Which side of the line through a and b the point lies on: `Greater` is where +z lies of +x (counter-clockwise with x
    /// to the right and z up), `Equal` on the line.
    pub fn side_of(self, point: Point) -> Ordering {
        cross(self.a, self.b, point).cmp(&0)
    }

    /// The point lies on the segment, ends included.
    pub fn contains(self, point: Point) -> bool {
        self.side_of(point) == Ordering::Equal && self.bounds().contains_within(point, 0)
    }

    /// The two segments share a point.
    pub fn meets(self, other: Self) -> bool {
        if !self.bounds().meets_within(&other.bounds(), 0) {
            return false;
        }
        let (a, b) = (self.side_of(other.a), self.side_of(other.b));
        let (c, d) = (other.side_of(self.a), other.side_of(self.b));
        // On one line the rectangles decide, and they do meet.
        a != b && c != d || a == Ordering::Equal && b == Ordering::Equal
    }

    /// The two cross in one inner point of both: neither touches the other with an end.
    pub fn crosses(self, other: Self) -> bool {
        let opposite = |one: Ordering, two: Ordering| one != Ordering::Equal && one == two.reverse();
        opposite(self.side_of(other.a), self.side_of(other.b))
            && opposite(other.side_of(self.a), other.side_of(self.b))
    }

    /// Compares the distance to a point with `radius` raw ≥ 0, exactly.
    pub fn compare_distance(self, point: Point, radius: i64) -> Ordering {
        let length = self.squared_length();
        let along = dot(self.a, self.b, point);
        let end = if along <= 0 {
            self.a
        } else if along >= length {
            self.b
        } else {
            // distance² = cross² / length².
            let cross = i128::from(cross(self.a, self.b, point));
            let radius = i128::from(radius);
            return (cross * cross).cmp(&(radius * radius * i128::from(length)));
        };
        i128::from(end.squared_distance(point)).cmp(&(i128::from(radius) * i128::from(radius)))
    }

    /// The nearest point of the segment, each coordinate's offset from a rounded half-even to raw (spec 2.3, rule 3).
    pub fn nearest(self, point: Point) -> Point {
        let length = self.squared_length();
        let along = dot(self.a, self.b, point);
        if along <= 0 {
            self.a
        } else if along >= length {
            self.b
        } else {
            let offset = |from: Fixed, to: Fixed| {
                let product = i128::from(to.wide() - from.wide()) * i128::from(along);
                // Between 0 and the edge's own extent, so between two coordinates.
                Fixed::from_raw((from.wide() + divide_half_even(product, length.into()) as i64) as i32)
            };
            Point::new(offset(self.a.x, self.b.x), offset(self.a.z, self.b.z))
        }
    }
}

/// Why a list of points is no polygon (spec 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolygonError {
    /// A coordinate is over the world limit.
    #[error("coordinate outside the world limit")]
    OutsideWorld,
    /// Over [`POLYGON_VERTICES_MAX`].
    #[error("more than {POLYGON_VERTICES_MAX} vertices")]
    TooManyVertices,
    /// Two points and fewer have no inside.
    #[error("fewer than 3 distinct vertices")]
    TooFewVertices,
    /// All vertices lie on one line.
    #[error("zero area")]
    ZeroArea,
    /// Two edges share a point that is not the vertex between them, or more than it; the edges by the index of their first
    /// vertex in the list.
    #[error("self-intersecting outline (the edges after vertices {0} and {1})")]
    SelfIntersecting(usize, usize),
}

/// A simple polygon within the world limit; it may be concave, and of either winding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polygon {
    vertices: Vec<Point>,
    bounds: Bounds,
}

impl Polygon {
    /// Checks a list of points against the rules of spec 2.2, after merging equal neighbours (also last = first).
    ///
    /// # Errors
    /// The first rule that is broken, in the order of [`PolygonError`].
    pub fn new(points: &[Point]) -> Result<Self, PolygonError> {
        if !points.iter().all(|point| point.in_world()) {
            return Err(PolygonError::OutsideWorld);
        }
        let mut corners: Vec<(usize, Point)> = points.iter().copied().enumerate().collect();
        corners.dedup_by_key(|corner| corner.1);
        while let [first, .., last] = corners[..]
            && first.1 == last.1
        {
            corners.pop();
        }
        let vertices: Vec<Point> = corners.iter().map(|corner| corner.1).collect();
        if vertices.len() > POLYGON_VERTICES_MAX {
            return Err(PolygonError::TooManyVertices);
        }
        let mut distinct = vertices.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let bounds = Bounds::around(vertices.iter().copied()).ok_or(PolygonError::TooFewVertices)?;
        if distinct.len() < 3 {
            return Err(PolygonError::TooFewVertices);
        }
        let line = Segment::new(distinct[0], distinct[1]);
        if distinct
            .iter()
            .all(|point| line.side_of(*point) == Ordering::Equal)
        {
            return Err(PolygonError::ZeroArea);
        }
        if let Some((one, other)) = self_intersection(&vertices) {
            return Err(PolygonError::SelfIntersecting(corners[one].0, corners[other].0));
        }
        Ok(Self { vertices, bounds })
    }

    /// The corners in the order given; no two neighbours are equal.
    pub fn vertices(&self) -> &[Point] {
        &self.vertices
    }

    /// The edges: from each vertex to the next, the last one back to the first.
    pub fn edges(&self) -> impl Iterator<Item = Segment> + '_ {
        let next = self.vertices.iter().cycle().skip(1);
        self.vertices.iter().zip(next).map(|(a, b)| Segment::new(*a, *b))
    }

    /// The rectangle around it.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Inside by the even-odd rule, half-open (spec 2.3, rule 2): each point of the plane lies in exactly one of two
    /// polygons with a common edge.
    pub fn contains(&self, point: Point) -> bool {
        if !self.bounds.contains_within(point, 0) {
            return false;
        }
        let (x, z) = (point.x.wide(), point.z.wide());
        let crossings = self.edges().filter(|edge| {
            let (xi, zi, xj, zj) = (edge.a.x.wide(), edge.a.z.wide(), edge.b.x.wide(), edge.b.z.wide());
            if (zi > z) == (zj > z) {
                return false;
            }
            let (left, right) = ((x - xi) * (zj - zi), (xj - xi) * (z - zi));
            if zj > zi { left < right } else { left > right }
        });
        crossings.count() % 2 == 1
    }

    /// Some edge is at most `radius` raw away.
    pub fn border_within(&self, point: Point, radius: i64) -> bool {
        self.bounds.contains_within(point, radius)
            && self
                .edges()
                .any(|edge| edge.compare_distance(point, radius) != Ordering::Greater)
    }

    /// Twice the signed area, raw²: positive if counter-clockwise with x to the right and z up.
    pub fn doubled_area(&self) -> i128 {
        let parts = self.edges().map(|edge| {
            i128::from(edge.a.x.wide()) * i128::from(edge.b.z.wide())
                - i128::from(edge.b.x.wide()) * i128::from(edge.a.z.wide())
        });
        parts.sum()
    }
}

/// (b − a) × (c − a); a and b within the world limit, c within [`GRID_REACH`].
pub fn cross(a: Point, b: Point, c: Point) -> i64 {
    (b.x.wide() - a.x.wide()) * (c.z.wide() - a.z.wide())
        - (b.z.wide() - a.z.wide()) * (c.x.wide() - a.x.wide())
}

/// (b − a) · (c − a); a and b within the world limit, c within [`GRID_REACH`].
pub fn dot(a: Point, b: Point, c: Point) -> i64 {
    (b.x.wide() - a.x.wide()) * (c.x.wide() - a.x.wide())
        + (b.z.wide() - a.z.wide()) * (c.z.wide() - a.z.wide())
}

/// The quotient rounded to the nearest integer, ties to the even one; `divisor` > 0.
pub fn divide_half_even(dividend: i128, divisor: i128) -> i128 {
    let (floor, rest) = (dividend.div_euclid(divisor), dividend.rem_euclid(divisor));
    match (2 * rest).cmp(&divisor) {
        Ordering::Less => floor,
        Ordering::Greater => floor + 1,
        Ordering::Equal => floor + (floor & 1),
    }
}

/// Two edges (by the index of their first vertex) that share more than the vertex between them; at least 3 vertices, no two
/// neighbours equal.
fn self_intersection(vertices: &[Point]) -> Option<(usize, usize)> {
    let count = vertices.len();
    let edge = |index: usize| Segment::new(vertices[index], vertices[(index + 1) % count]);
    // Edges by where they begin along the axis on which they are shorter: only those that begin before one ends can meet it.
    // Quadratic at worst, which the limit on vertices keeps to about a second.
    let (mut along_x, mut along_z) = (0, 0);
    for index in 0..count {
        let Segment { a, b } = edge(index);
        along_x += i128::from(a.x.wide().abs_diff(b.x.wide()));
        along_z += i128::from(a.z.wide().abs_diff(b.z.wide()));
    }
    let mut order: Vec<Extent> = (0..count)
        .map(|index| {
            let Bounds { min, max } = edge(index).bounds();
            let (x, z) = ((min.x.raw(), max.x.raw()), (min.z.raw(), max.z.raw()));
            let ((start, end), (low, high)) = if along_x <= along_z { (x, z) } else { (z, x) };
            Extent {
                start,
                end,
                low,
                high,
                index,
            }
        })
        .collect();
    order.sort_unstable_by_key(|extent| (extent.start, extent.index));
    for (rank, one) in order.iter().enumerate() {
        let others = order[rank + 1..]
            .iter()
            .take_while(|other| other.start <= one.end);
        for other in others.filter(|other| other.low <= one.high && one.low <= other.high) {
            let (first, second) = (one.index.min(other.index), one.index.max(other.index));
            let share = if second == first + 1 {
                runs_back(edge(first), edge(second))
            } else if first == 0 && second == count - 1 {
                runs_back(edge(second), edge(first))
            } else {
                edge(first).meets(edge(second))
            };
            if share {
                return Some((first, second));
            }
        }
    }
    None
}

/// The rectangle around an edge: along the axis of the sweep, across it, and the edge.
struct Extent {
    start: i32,
    end: i32,
    low: i32,
    high: i32,
    index: usize,
}

/// `second` begins where `first` ends; they share more than that point.
fn runs_back(first: Segment, second: Segment) -> bool {
    first.side_of(second.b) == Ordering::Equal && dot(first.b, first.a, second.b) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metres(x: i32, z: i32) -> Point {
        Point::new(Fixed::from_int(x), Fixed::from_int(z))
    }

    fn polygon(points: &[(i32, i32)]) -> Result<Polygon, PolygonError> {
        let points: Vec<Point> = points.iter().map(|&(x, z)| metres(x, z)).collect();
        Polygon::new(&points)
    }

    #[test]
    fn polygons_are_simple() {
        use PolygonError::*;
        let check = |points: &[(i32, i32)], expected: Result<usize, PolygonError>| {
            let found = polygon(points).map(|polygon| polygon.vertices().len());
            // Which of several pairs of edges is named does not matter here.
            let found = found.map_err(|error| match error {
                SelfIntersecting(..) => SelfIntersecting(0, 0),
                error => error,
            });
            assert_eq!(found, expected, "{points:?}");
            let reversed: Vec<_> = points.iter().rev().copied().collect();
            assert_eq!(
                polygon(&reversed).is_ok(),
                expected.is_ok(),
                "{points:?} the other way round"
            );
        };
        check(&[(0, 0), (1, 0), (0, 1)], Ok(3));
        check(&[(0, 0), (0, 0), (1, 0), (1, 0), (0, 1), (0, 0), (0, 0)], Ok(3));
        // A vertex in the middle of a side.
        check(&[(0, 0), (1, 0), (2, 0), (2, 2)], Ok(4));
        check(&[], Err(TooFewVertices));
        check(&[(0, 0), (5, 5), (0, 0), (5, 5)], Err(TooFewVertices));
        check(&[(0, 0), (2, 2), (4, 4)], Err(ZeroArea));
        check(&[(0, 0), (4, 4), (2, 2), (3, 3)], Err(ZeroArea));
        check(&[(0, 0), (6, 6), (6, 0), (0, 5)], Err(SelfIntersecting(0, 0)));
        // A vertex on another edge, a spike, a spike over the start, two vertices in one place.
        check(
            &[(0, 0), (6, 0), (6, 6), (3, 0), (0, 6)],
            Err(SelfIntersecting(0, 0)),
        );
        check(
            &[(0, 0), (6, 0), (6, 6), (6, 9), (6, 6), (0, 6)],
            Err(SelfIntersecting(0, 0)),
        );
        check(
            &[(0, 0), (6, 0), (6, 6), (0, 6), (0, -3)],
            Err(SelfIntersecting(0, 0)),
        );
        check(
            &[(0, 0), (2, 0), (2, 2), (4, 2), (4, 4), (2, 2), (0, 2)],
            Err(SelfIntersecting(0, 0)),
        );
        check(
            &[(16000, 16000), (-16000, 16000), (-16000, -16000), (16000, -16000)],
            Ok(4),
        );
        check(
            &[(16000, 16000), (-16000, -16000), (-16000, 16000), (16000, -16000)],
            Err(SelfIntersecting(0, 0)),
        );
        check(&[(0, 0), (16001, 0), (0, 1)], Err(OutsideWorld));
    }

    #[test]
    fn the_inside_is_half_open() {
        let square = polygon(&[(0, 0), (2, 0), (2, 2), (0, 2)]).expect("a square");
        for (x, z, inside) in [
            (0, 0, true),
            (1, 0, true),
            (0, 1, true),
            (2, 1, false),
            (1, 2, false),
            (2, 2, false),
            (1, 1, true),
        ] {
            assert_eq!(square.contains(metres(x, z)), inside, "({x}, {z})");
            assert!(
                x == 1 && z == 1 || square.border_within(metres(x, z), 0),
                "({x}, {z})"
            );
        }
        assert_eq!(square.doubled_area(), 8 << 32);
    }

    #[test]
    fn distances_are_exact_at_the_far_ends_of_the_world() {
        let diagonal = Segment::new(metres(-16000, -16000), metres(16000, 16000));
        let corner = Point::new(GRID_REACH, Fixed::from_int(-16_500));
        // 16500 × √2 m: 1529249439.9… raw.
        let radius = i128::from(GRID_REACH.wide()).pow(2) * 2;
        let floor = radius.isqrt() as i64;
        assert_eq!(diagonal.compare_distance(corner, floor), Ordering::Greater);
        assert_eq!(diagonal.compare_distance(corner, floor + 1), Ordering::Less);
        assert_eq!(diagonal.nearest(corner), Point::default());
        assert_eq!(diagonal.nearest(metres(16100, 16500)), metres(16000, 16000));
    }

    #[test]
    fn rounding_is_half_even() {
        for (dividend, divisor, expected) in [
            (5, 2, 2),
            (7, 2, 4),
            (-5, 2, -2),
            (-7, 2, -4),
            (-1, 2, 0),
            (8, 3, 3),
            (-8, 3, -3),
            (7, 3, 2),
        ] {
            assert_eq!(
                divide_half_even(dividend, divisor),
                expected,
                "{dividend} / {divisor}"
            );
        }
    }

    proptest::proptest! {
        /// `meets` agrees with a rational line intersection worked out another way, on a small lattice where ties abound.
        #[test]
        fn segments_meet_symmetrically(c in proptest::array::uniform8(-3i32..=3)) {
            let one = Segment::new(Point::from_raw(c[0], c[1]), Point::from_raw(c[2], c[3]));
            let two = Segment::new(Point::from_raw(c[4], c[5]), Point::from_raw(c[6], c[7]));
            proptest::prop_assume!(one.a != one.b && two.a != two.b);
            let swapped = Segment::new(two.b, two.a);
            proptest::prop_assert_eq!(one.meets(two), two.meets(one));
            proptest::prop_assert_eq!(one.meets(two), one.meets(swapped));
            // They share a point exactly if some end lies on the other or they cross inside.
            let touch = one.contains(two.a) || one.contains(two.b) || two.contains(one.a) || two.contains(one.b);
            proptest::prop_assert_eq!(one.meets(two), touch || one.crosses(two));
        }

        /// The squared distance by brute force over fractions of the segment never undercuts the exact comparison.
        #[test]
        fn nearest_is_near(c in proptest::array::uniform6(-(1i32 << 30)..=1 << 30)) {
            let segment = Segment::new(Point::from_raw(c[0], c[1]), Point::from_raw(c[2], c[3]));
            let point = Point::from_raw(c[4], c[5]);
            let limit = |p: Point| p.in_world();
            proptest::prop_assume!(limit(segment.a) && limit(segment.b) && limit(point));
            let nearest = segment.nearest(point);
            let distance = nearest.squared_distance(point).isqrt();
            // Rounding moves the nearest point by less than one raw.
            proptest::prop_assert_eq!(segment.compare_distance(point, distance + 2), Ordering::Less);
            proptest::prop_assert_eq!(segment.compare_distance(point, (distance - 2).max(0)) , if distance > 2 { Ordering::Greater } else { segment.compare_distance(point, 0) });
        }
    }
}
