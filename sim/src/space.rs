//! Space as the simulation asks about it: a flat plane without borders. Maps that wrap around or have storeys (spec 7)
//! change this type and nothing else.

use nav::{Fixed, Point};

/// The space of a location.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Space;

/// From one position to another, raw; each part fits 33 bits, and 32 within the world limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) x: i64,
    pub(crate) z: i64,
}

impl Space {
    /// The way from `from` to `to`.
    pub(crate) fn delta(self, from: Point, to: Point) -> Delta {
        Delta {
            x: to.x.wide() - from.x.wide(),
            z: to.z.wide() - from.z.wide(),
        }
    }

    /// Where `delta` leads from `point`; it leads toward a point of the world, so the sum fits.
    pub(crate) fn moved(self, point: Point, delta: Delta) -> Point {
        let sum = |a: Fixed, b: i64| i32::try_from(a.wide() + b).expect("between two points of the world");
        Point::from_raw(sum(point.x, delta.x), sum(point.z, delta.z))
    }

    /// Whether two characters can touch each other at all.
    pub(crate) fn share_level(self, one: u8, other: u8) -> bool {
        one == other
    }

    /// `a` is within `distance` of `b`: at most so far away.
    pub(crate) fn within(self, a: Point, b: Point, distance: Fixed) -> bool {
        self.delta(a, b).squared() <= distance.wide() * distance.wide()
    }

    /// One tick's displacement toward a point at speed `step` (spec 1, "step toward").
    pub(crate) fn step_toward(self, from: Point, to: Point, step: Fixed) -> Delta {
        let delta = self.delta(from, to);
        let (squared, step) = (delta.squared(), step.wide());
        if squared <= step * step {
            return delta;
        }
        // Along an axis the length is known without a root, and the result is the same.
        let length = match (delta.x, delta.z) {
            (along, 0) | (0, along) => along.abs(),
            _ => squared.isqrt(),
        };
        Delta {
            x: delta.x * step / length,
            z: delta.z * step / length,
        }
    }
}

impl Delta {
    /// Squared length, raw² (2⁻³² m²).
    pub(crate) fn squared(self) -> i64 {
        self.x * self.x + self.z * self.z
    }

    pub(crate) fn dot(self, other: Self) -> i64 {
        self.x * other.x + self.z * other.z
    }

    pub(crate) fn cross(self, other: Self) -> i64 {
        self.x * other.z - self.z * other.x
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            x: self.x - other.x,
            z: self.z - other.z,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.x == 0 && self.z == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_on_the_point_or_are_truncated_toward_zero() {
        let check = |to: (i32, i32), step: i32, expected: (i64, i64)| {
            let delta = Space.step_toward(
                Point::default(),
                Point::from_raw(to.0, to.1),
                Fixed::from_raw(step),
            );
            assert_eq!((delta.x, delta.z), expected, "toward {to:?} by {step}");
        };
        check((3, 4), 5, (3, 4));
        check((3, 4), 4, (2, 3));
        check((-3, -4), 4, (-2, -3));
        check((0, 0), 1, (0, 0));
        check((1000, 1000), 1, (0, 0));
        check((0, -1000), 7, (0, -7));
        let far = nav::WORLD_LIMIT.raw();
        check((far, 0), 65536, (65536, 0));
        let corner = Point::from_raw(-far, -far);
        let delta = Space.step_toward(corner, Point::from_raw(far, far), Fixed::from_int(1000));
        assert_eq!((delta.x, delta.z), (46_340_950, 46_340_950));
    }
}
