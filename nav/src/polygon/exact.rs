//! Exact numbers of the polygon planner: directions, points that need not be raw, fractions and squared distances.
//!
//! Bounds. Coordinates lie within the world limit L = 16000 × 65536 < 2^29.97; an octagon's corner may lie 200 m farther
//! out. A difference of two is below 2^30.98, a cross product of two differences below 2^62.96: it fits `i64`. Two edges
//! cross at parameters n/d with |n| ≤ d < 2^62.94, so a [`Spot`] has w < 2^63.94 (the mediant of two) and lies within the
//! world: |x| and |z| < 2^94. The cross product of a difference with a spot minus a point, times w, is below 2^126.9: it
//! fits `i128`. Where more is needed ([`SquaredDistance`]) the product is written out in 64-bit limbs.

use std::cmp::Ordering;
use std::ops::{Add, Neg};

use crate::Point;

/// A difference of points, raw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vector {
    pub(super) x: i64,
    pub(super) z: i64,
}

impl Vector {
    pub(super) const fn new(x: i64, z: i64) -> Self {
        Self { x, z }
    }

    /// From one point to another.
    pub(super) const fn between(from: Point, to: Point) -> Self {
        Self {
            x: to.x.wide() - from.x.wide(),
            z: to.z.wide() - from.z.wide(),
        }
    }

    /// Positive if `other` points to the left of this one (x to the right, z up).
    pub(super) const fn cross(self, other: Self) -> i64 {
        self.x * other.z - self.z * other.x
    }

    /// As `cross`, of longer vectors.
    pub(super) const fn wide_cross(self, other: Self) -> i128 {
        self.x as i128 * other.z as i128 - self.z as i128 * other.x as i128
    }

    pub(super) const fn dot(self, other: Self) -> i64 {
        self.x * other.x + self.z * other.z
    }

    pub(super) const fn is_zero(self) -> bool {
        self.x == 0 && self.z == 0
    }

    /// A quarter turn to the left.
    pub(super) const fn left(self) -> Self {
        Self {
            x: -self.z,
            z: self.x,
        }
    }

    /// The shortest vector of integers in this direction: the same for every edge on a line.
    pub(super) fn primitive(self) -> Self {
        let divisor = greatest_common_divisor(self.x.unsigned_abs(), self.z.unsigned_abs());
        if divisor == 0 {
            return self;
        }
        Self {
            x: self.x / divisor as i64,
            z: self.z / divisor as i64,
        }
    }

    /// Order by angle, counter-clockwise from +x; parallel vectors of one direction are equal.
    pub(super) fn compare_angle(self, other: Self) -> Ordering {
        let half = |vector: Self| vector.z < 0 || (vector.z == 0 && vector.x < 0);
        half(self)
            .cmp(&half(other))
            .then_with(|| 0.cmp(&self.cross(other)))
    }
}

impl Neg for Vector {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            x: -self.x,
            z: -self.z,
        }
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            x: self.x + other.x,
            z: self.z + other.z,
        }
    }
}

/// Directions from `from` counter-clockwise to `to`, both included; more than 0 and less than 360 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sector {
    pub(super) from: Vector,
    pub(super) to: Vector,
}

impl Sector {
    #[inline]
    pub(super) const fn contains(self, direction: Vector) -> bool {
        // PERF: in `i64`, every node is asked by every start (bench polyanya).
        let after_from = self.from.cross(direction) >= 0;
        let before_to = direction.cross(self.to) >= 0;
        if after_from == before_to {
            // Of 180 degrees: always.
            return after_from;
        }
        // Not strictly in what is left out, if that is the smaller part.
        self.is_reflex()
    }

    /// As `contains`, of a sum of two differences.
    pub(super) const fn contains_sum(self, direction: Vector) -> bool {
        let after_from = self.from.wide_cross(direction) >= 0;
        let before_to = direction.wide_cross(self.to) >= 0;
        match self.from.cross(self.to) {
            1.. => after_from && before_to,
            0 => after_from,
            ..0 => after_from || before_to,
        }
    }

    /// Its angle is more than 180 degrees.
    pub(super) const fn is_reflex(self) -> bool {
        self.from.cross(self.to) < 0
    }
}

/// A point that need not be raw: (x / w, z / w), w > 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) x: i128,
    pub(super) z: i128,
    pub(super) w: i128,
}

impl Spot {
    /// `start + along × numerator / denominator`; the denominator > 0.
    pub(super) fn on_line(start: Point, along: Vector, numerator: i128, denominator: i128) -> Self {
        Self {
            x: i128::from(start.x.wide()) * denominator + i128::from(along.x) * numerator,
            z: i128::from(start.z.wide()) * denominator + i128::from(along.z) * numerator,
            w: denominator,
        }
    }

    /// The point itself, if it is raw.
    pub(super) fn as_point(&self) -> Option<Point> {
        (self.x % self.w == 0 && self.z % self.w == 0).then(|| self.floor())
    }

    /// Both coordinates rounded down.
    pub(super) fn floor(&self) -> Point {
        let coordinate =
            |value: i128| i32::try_from(value.div_euclid(self.w)).expect("spots lie in the world");
        Point::from_raw(coordinate(self.x), coordinate(self.z))
    }

    /// The side of the line from `start` along `direction` on which the spot lies: `Greater` is left.
    pub(super) fn side(&self, start: Point, direction: Vector) -> Ordering {
        let x = self.x - i128::from(start.x.wide()) * self.w;
        let z = self.z - i128::from(start.z.wide()) * self.w;
        (i128::from(direction.x) * z).cmp(&(i128::from(direction.z) * x))
    }

    /// Position order: x, then z.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare_fractions((self.x, self.w), (other.x, other.w))
            .then_with(|| compare_fractions((self.z, self.w), (other.z, other.w)))
    }

    /// Exact squared distance to a point.
    pub(super) fn squared_distance(&self, point: Point) -> SquaredDistance {
        let x = (self.x - i128::from(point.x.wide()) * self.w).unsigned_abs();
        let z = (self.z - i128::from(point.z.wide()) * self.w).unsigned_abs();
        let mut numerator = [0; 4];
        add_product(&mut numerator, limbs(x), limbs(x));
        add_product(&mut numerator, limbs(z), limbs(z));
        let mut denominator = [0; 4];
        add_product(
            &mut denominator,
            limbs(self.w.unsigned_abs()),
            limbs(self.w.unsigned_abs()),
        );
        SquaredDistance {
            numerator,
            denominator: [denominator[0], denominator[1]],
        }
    }
}

impl From<Point> for Spot {
    fn from(point: Point) -> Self {
        Self {
            x: point.x.wide().into(),
            z: point.z.wide().into(),
            w: 1,
        }
    }
}

/// An exact squared distance, raw²: a fraction with a numerator below 2^190 and a denominator below 2^128.
#[derive(Clone, Copy, Debug)]
pub(super) struct SquaredDistance {
    /// Little-endian limbs.
    numerator: [u64; 4],
    denominator: [u64; 2],
}

impl SquaredDistance {
    /// `numerator / denominator`; the denominator > 0.
    pub(super) const fn new(numerator: u128, denominator: u128) -> Self {
        let [low, high] = limbs(numerator);
        Self {
            numerator: [low, high, 0, 0],
            denominator: limbs(denominator),
        }
    }

    /// At most `limit` raw².
    pub(super) fn is_within(&self, limit: u128) -> bool {
        self.compare(&Self::new(limit, 1)).is_le()
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let mut left = [0; 6];
        add_product(&mut left, self.numerator, other.denominator);
        let mut right = [0; 6];
        add_product(&mut right, other.numerator, self.denominator);
        left.iter().rev().cmp(right.iter().rev())
    }
}

/// Compares a/b with c/d; b and d > 0.
pub(super) fn compare_fractions((mut a, mut b): (i128, i128), (mut c, mut d): (i128, i128)) -> Ordering {
    loop {
        if let (Some(left), Some(right)) = (a.checked_mul(d), c.checked_mul(b)) {
            return left.cmp(&right);
        }
        // The whole parts decide, or the rests do, which are compared as their reciprocals.
        let (left, right) = (a.div_euclid(b), c.div_euclid(d));
        if left != right {
            return left.cmp(&right);
        }
        let (left_rest, right_rest) = (a.rem_euclid(b), c.rem_euclid(d));
        if left_rest == 0 || right_rest == 0 {
            return left_rest.cmp(&right_rest);
        }
        (a, b, c, d) = (d, right_rest, b, left_rest);
    }
}

/// The root rounded up.
pub(super) const fn root_up(square: u64) -> u64 {
    let floor = square.isqrt();
    if floor * floor < square { floor + 1 } else { floor }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

const fn limbs(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// sum += a × b, little-endian limbs; the sum has room for the result.
fn add_product<const A: usize, const B: usize>(sum: &mut [u64], a: [u64; A], b: [u64; B]) {
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (place, limb) in sum[i..].iter_mut().enumerate() {
            let product = b.get(place).map_or(0, |&b| u128::from(a) * u128::from(b));
            let total = u128::from(*limb) + carry + u128::from(product as u64);
            *limb = total as u64;
            carry = (total >> 64) + (product >> 64);
        }
        assert!(carry == 0, "products are bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_compare_beyond_128_bits() {
        let big = i128::MAX / 3;
        let check = |left, right, expected| {
            assert_eq!(compare_fractions(left, right), expected, "{left:?} {right:?}");
            assert_eq!(
                compare_fractions(right, left),
                expected.reverse(),
                "{right:?} {left:?}"
            );
        };
        check((1, 2), (2, 3), Ordering::Less);
        check((-1, 2), (-2, 3), Ordering::Greater);
        check((big, big - 1), (big + 1, big), Ordering::Greater);
        check((-big, big - 1), (-big - 1, big), Ordering::Less);
        check((big, big), (7, 7), Ordering::Equal);
        check((2 * big, 2 * big - 2), (big, big - 1), Ordering::Equal);
    }

    #[test]
    fn squared_distances_compare_exactly() {
        // Two spots near (1/3, 0) of the largest denominators, 1 part in 2^120 apart.
        let w = (1i128 << 63) - 25;
        let spot =
            |x: i128, w: i128| Spot { x, z: 0, w }.squared_distance(Point::from_raw(-1_000_000_000, 0));
        assert_eq!(spot(w / 3, w).compare(&spot(w / 3 + 1, w)), Ordering::Less);
        assert_eq!(spot(w - 1, w).compare(&spot(w - 2, w - 1)), Ordering::Greater);
        assert_eq!(spot(w, w).compare(&spot(1, 1)), Ordering::Equal);
        assert!(spot(0, 1).is_within(1_000_000_000_000_000_000));
        assert!(!spot(1, w).is_within(1_000_000_000_000_000_000));
    }

    #[test]
    fn sectors_contain_their_ends() {
        let vector = Vector::new;
        let check = |from: (i64, i64), to: (i64, i64), inside: &[(i64, i64)], outside: &[(i64, i64)]| {
            let sector = Sector {
                from: vector(from.0, from.1),
                to: vector(to.0, to.1),
            };
            for &(x, z) in inside {
                assert!(sector.contains(vector(x, z)), "{sector:?} {x} {z}");
            }
            for &(x, z) in outside {
                assert!(!sector.contains(vector(x, z)), "{sector:?} {x} {z}");
            }
        };
        check(
            (1, 0),
            (0, 1),
            &[(2, 0), (0, 3), (1, 1)],
            &[(-1, 0), (0, -1), (-1, -1), (1, -1)],
        );
        check(
            (0, 1),
            (1, 0),
            &[(2, 0), (0, 3), (-1, 0), (0, -1), (-1, -1)],
            &[(1, 1)],
        );
        check((1, 0), (-1, 0), &[(2, 0), (0, 3), (-1, 0)], &[(0, -1), (-1, -1)]);
    }
}
