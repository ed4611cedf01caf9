//! Units of people into units of the simulation, exactly, once, at the edge (spec 1): the bits of an f64 are taken apart,
//! no float is ever calculated with.

use nav::Fixed;

/// Default walking speed, metres per second (spec 3.1).
pub(crate) const WALK_SPEED: f64 = 1.4;
/// Default rotation speed, radians per second.
pub(crate) const ROTATION_SPEED: f64 = 10.0;

/// round_half_even(value × 65536 / tick rate): a speed per second as a speed per tick; `None` if it is no number, negative
/// or over 2³¹ raws.
pub(crate) fn per_tick(per_second: f64, tick_rate: u16) -> Option<Fixed> {
    let (numerator, denominator) = ratio(per_second, 1 << 16, tick_rate.into())?;
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let up = 2 * rest > denominator || (2 * rest == denominator && quotient & 1 == 1);
    i32::try_from(quotient + u128::from(up)).ok().map(Fixed::from_raw)
}

/// max(1, round_half_up(ms × tick rate / 1000)); negative times count as 0. `None` if it is no number or over 2³² ticks.
pub(crate) fn ticks_of_milliseconds(milliseconds: f64, tick_rate: u16) -> Option<u32> {
    if milliseconds.is_sign_negative() && milliseconds.is_finite() {
        return Some(1);
    }
    let (numerator, denominator) = ratio(milliseconds, tick_rate.into(), 1000)?;
    let ticks = (2 * numerator + denominator) / (2 * denominator);
    u32::try_from(ticks).ok().map(|ticks| ticks.max(1))
}

/// value × multiplier / divisor as an exact fraction; `None` outside 0 to 2³². Both parts stay below 2¹²⁰.
fn ratio(value: f64, multiplier: u128, divisor: u128) -> Option<(u128, u128)> {
    if !(0.0..=4_294_967_296.0).contains(&value) {
        return None;
    }
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let mantissa = u128::from(bits & ((1 << 52) - 1)) | u128::from(exponent != 0) << 52;
    // value = mantissa × 2^(exponent − 1075), at most 2³², so the exponent is negative. Below 2⁻³⁸ it is as good as 0.
    let shift = 1075 - exponent;
    if shift > 90 {
        return Some((0, divisor));
    }
    Some((mantissa * multiplier, divisor << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_round_half_even() {
        let check = |speed: f64, rate: u16, expected: Option<i32>| {
            assert_eq!(
                per_tick(speed, rate).map(Fixed::raw),
                expected,
                "{speed} at {rate} Hz"
            );
        };
        check(1.4, 10, Some(9175));
        check(1.4, 128, Some(717));
        check(10.0, 10, Some(65536));
        check(0.0, 10, Some(0));
        check(-0.0, 10, Some(0));
        // Half a raw: 2.5 and 3.5 raws.
        check(2.5 / 65536.0, 1, Some(2));
        check(3.5 / 65536.0, 1, Some(4));
        check(5.0 / 65536.0, 2, Some(2));
        check(1e-300, 1, Some(0));
        check(32_767.0, 1, Some(32_767 << 16));
        check(32_768.0, 1, None);
        check(-1.0, 10, None);
        check(f64::NAN, 10, None);
        check(f64::INFINITY, 10, None);
    }

    #[test]
    fn milliseconds_round_half_up_and_are_at_least_a_tick() {
        let check = |milliseconds: f64, rate: u16, expected: Option<u32>| {
            assert_eq!(
                ticks_of_milliseconds(milliseconds, rate),
                expected,
                "{milliseconds} ms at {rate} Hz"
            );
        };
        check(200.0, 10, Some(2));
        check(349.0, 10, Some(3));
        check(350.0, 10, Some(4));
        check(1250.0, 10, Some(13));
        check(1.0, 10, Some(1));
        check(0.0, 10, Some(1));
        check(-5.0, 10, Some(1));
        check(250.0, 10, Some(3));
        check(249.999_999, 10, Some(2));
        check(4e9, 128, Some(512_000_000));
        check(5e9, 1, None);
        check(f64::NAN, 10, None);
    }
}
