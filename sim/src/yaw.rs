//! Angles: atan2 by CORDIC in integers, and turning the short way round (spec 1 and 3.3 f).
//!
//! CORDIC in vectoring mode (Volder 1959) rotates the vector onto the axis by ± atan(2⁻ⁱ) and adds up what it rotated by.
//! The vector is scaled to 40 bits first, so that short steps are as exact as long ones; angles are summed with 32 fraction
//! bits. 18 rotations leave less than 2⁻¹⁷ rad, rounding to Q16.16 adds as much: the error is below 2⁻¹⁶ rad in all (the
//! bound of the spec is 2⁻¹³).

use nav::Fixed;

use crate::space::Delta;

/// π in Q16.16, the largest yaw.
pub const PI: Fixed = Fixed::from_raw(205_887);

/// A whole turn; twice [`PI`], so that no yaw has two values.
const TURN: i32 = 2 * PI.raw();

/// atan(2⁻ⁱ) with 32 fraction bits.
const ANGLES: [i64; 18] = [
    3_373_259_426,
    1_991_351_318,
    1_052_175_346,
    534_100_635,
    268_086_748,
    134_174_063,
    67_103_403,
    33_553_749,
    16_777_131,
    8_388_597,
    4_194_303,
    2_097_152,
    1_048_576,
    524_288,
    262_144,
    131_072,
    65_536,
    32_768,
];

/// π with 32 fraction bits.
const PI_LONG: i64 = 13_493_037_705;

/// The yaw that looks along `direction`: atan2(x, z), radians in (−π, π]; `None` for no direction at all.
pub(crate) fn yaw_of(direction: Delta) -> Option<Fixed> {
    if direction.is_zero() {
        return None;
    }
    // The angle from the +Z axis toward +X: z is the abscissa here and x the ordinate.
    let (mut along, mut across) = scaled(direction.z, direction.x);
    let start = match (along < 0, across < 0) {
        (false, _) => 0,
        (true, false) => PI_LONG,
        (true, true) => -PI_LONG,
    };
    if along < 0 {
        (along, across) = (-along, -across);
    }
    let mut angle = start;
    // PERF: `benches/tick.rs`, movement: the sign is as good as random, so it is a mask and not a branch.
    for (shift, atan) in ANGLES.iter().enumerate() {
        let (a, b) = (along >> shift, across >> shift);
        let mask = -i64::from(across <= 0);
        along += (b ^ mask) - mask;
        across -= (a ^ mask) - mask;
        angle += (atan ^ mask) - mask;
    }
    Some(wrapped(((angle + (1 << 15)) >> 16) as i32))
}

/// `yaw` turned toward `target` by at most `speed`, the short way round; if that is straight behind, the way that yaw grows.
pub(crate) fn turned(yaw: Fixed, target: Fixed, speed: Fixed) -> Fixed {
    let difference = wrapped(target.raw() - yaw.raw()).raw();
    if difference.abs() <= speed.raw() {
        target
    } else {
        wrapped(yaw.raw() + difference.signum() * speed.raw())
    }
}

/// An angle less than a turn outside of (−π, π] brought into it.
fn wrapped(raw: i32) -> Fixed {
    Fixed::from_raw(if raw > PI.raw() {
        raw - TURN
    } else if raw <= -PI.raw() {
        raw + TURN
    } else {
        raw
    })
}

/// The vector with its longer part shifted to 40 bits: the gain of CORDIC (1.65) still leaves room.
fn scaled(along: i64, across: i64) -> (i64, i64) {
    let longest = along.unsigned_abs().max(across.unsigned_abs());
    let bits = 64 - longest.leading_zeros();
    let shift = 40u32.saturating_sub(bits);
    (along << shift, across << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::float_arithmetic)] // angles are written down as people know them
    fn check(x: i64, z: i64, expected: f64) {
        let yaw = yaw_of(Delta { x, z }).expect("a direction");
        let raw = (expected * 65536.0).round() as i32;
        let error = (yaw.raw() - raw).abs();
        assert!(error <= 1, "atan2({x}, {z}) = {yaw}, not {expected}");
        assert!(yaw.raw() > -PI.raw() && yaw.raw() <= PI.raw());
    }

    #[test]
    fn known_angles() {
        use std::f64::consts;
        assert_eq!(yaw_of(Delta { x: 0, z: 0 }), None);
        check(0, 1, 0.0);
        check(1, 0, consts::FRAC_PI_2);
        check(-1, 0, -consts::FRAC_PI_2);
        check(0, -1, consts::PI);
        check(5, 5, consts::FRAC_PI_4);
        check(-5, -5, -3.0 * consts::FRAC_PI_4);
        check(3, 4, 0.643_501_108_793_284_4);
        check(1 << 31, 1, consts::FRAC_PI_2);
        check(1, -(1 << 31), consts::PI);
        let far = 2 * i64::from(nav::WORLD_LIMIT.raw());
        check(-far, far, -consts::FRAC_PI_4);
    }

    #[test]
    #[allow(clippy::float_arithmetic)] // the library function that the integers are compared with
    fn the_error_is_within_the_bound_all_round() {
        let mut rng = crate::Pcg32::of_character(1);
        for _ in 0..100_000 {
            let bits = rng.below(32);
            let mut part = || (i64::from(rng.next_u32()) - (1 << 31)) >> bits;
            let (x, z) = (part(), part());
            if let Some(yaw) = yaw_of(Delta { x, z }) {
                let exact = (x as f64).atan2(z as f64) * 65536.0;
                let error = (f64::from(yaw.raw()) - exact).abs();
                let error = error.min((error - f64::from(TURN)).abs());
                // 2⁻¹³ rad is 8 raws; this is what the doc comment promises.
                assert!(error < 1.01, "atan2({x}, {z}): {error} raws off");
            }
        }
    }

    #[test]
    fn turns_go_the_short_way_round() {
        let check = |yaw: i32, target: i32, speed: i32, expected: i32| {
            let found = turned(
                Fixed::from_raw(yaw),
                Fixed::from_raw(target),
                Fixed::from_raw(speed),
            );
            assert_eq!(found.raw(), expected, "from {yaw} to {target} by {speed}");
        };
        let pi = PI.raw();
        check(0, 1000, 400, 400);
        check(0, -1000, 400, -400);
        check(0, 300, 400, 300);
        check(pi - 100, -pi + 101, 400, -pi + 101);
        check(pi - 100, -pi + 500, 300, -pi + 200);
        check(-pi + 100, pi - 500, 300, pi - 200);
        check(0, pi, 400, 400);
        check(pi, 0, 400, -pi + 400);
    }
}
