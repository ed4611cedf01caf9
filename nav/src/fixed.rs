//! Q16.16 numbers and points: everything a decision is made of (spec 1).
//!
//! A newtype of our own rather than a fixed-point library: the rules for reading and printing decimals, for rounding
//! and for where `i64` takes over are part of the contract, and nothing else of such a library would be used.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use bincode::{Decode, Encode};
use serde::{Serialize, Serializer};

/// A length, coordinate, angle or speed: raw = value × 65536. Metres, radians, metres or radians per tick.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode)]
pub struct Fixed(i32);

/// Fraction bits of a [`Fixed`].
pub const FRACTION_BITS: u32 = 16;

/// Largest |coordinate| that a map, a location or a command may name, metres (spec 1, "World limit").
pub const WORLD_LIMIT: Fixed = Fixed::from_int(16_000);

/// Largest |coordinate| of a grid's own corner: its margin lies outside the world limit.
pub const GRID_ORIGIN_LIMIT: Fixed = Fixed::from_int(16_400);

/// Why a decimal number is no [`Fixed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixedError {
    /// NaN or an infinity, or text that is no number.
    #[error("not a number")]
    NotANumber,
    /// Outside the reader's range.
    #[error("out of range")]
    OutOfRange,
}

impl Fixed {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// 1.
    pub const ONE: Self = Self(1 << FRACTION_BITS);

    /// The number with this raw value.
    #[inline]
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// A whole number; |value| ≤ 32767.
    pub const fn from_int(value: i32) -> Self {
        // Checked for overflow, as a shift would not be.
        Self(value * (1 << FRACTION_BITS))
    }

    /// Raw value: the number × 65536.
    #[inline]
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Raw value widened for products and sums.
    #[inline]
    pub const fn wide(self) -> i64 {
        self.0 as i64
    }

    /// (a × b) >> 16 in `i64`, floor.
    ///
    /// # Panics
    /// If the product does not fit; inputs are bounded so that it does.
    pub fn mul_floor(self, other: Self) -> Self {
        Self(i32::try_from((self.wide() * other.wide()) >> FRACTION_BITS).expect("bounded inputs"))
    }

    /// (a << 16) / b in `i64`, truncated toward zero; `other` is not 0.
    ///
    /// # Panics
    /// If the quotient does not fit or `other` is 0; inputs are bounded so that neither happens.
    pub fn div_trunc(self, other: Self) -> Self {
        Self(i32::try_from((self.wide() << FRACTION_BITS) / other.wide()).expect("bounded inputs"))
    }

    /// The nearest raw to an f64, ties to even, for |value| ≤ 16000. No float arithmetic: the bits are shifted.
    ///
    /// # Errors
    /// NaN, infinities and larger magnitudes.
    pub fn from_f64(value: f64) -> Result<Self, FixedError> {
        Self::from_f64_in(value, Self(-WORLD_LIMIT.0)..=WORLD_LIMIT)
    }

    /// As [`Fixed::from_f64`] with a range of its own. The value itself has to lie in it, not only what it is rounded to:
    /// 16000.000001 is no coordinate although the nearest raw is one.
    ///
    /// # Errors
    /// NaN, infinities and values outside the range.
    pub fn from_f64_in(value: f64, range: RangeInclusive<Self>) -> Result<Self, FixedError> {
        if !value.is_finite() {
            return Err(FixedError::NotANumber);
        }
        let fixed = Self::nearest(value).ok_or(FixedError::OutOfRange)?;
        let (min, max) = range.into_inner();
        // Only at the ends can rounding hide that the value lies outside.
        let below = fixed < min || (fixed == min && value < min.decimal());
        let above = fixed > max || (fixed == max && value > max.decimal());
        if below || above {
            Err(FixedError::OutOfRange)
        } else {
            Ok(fixed)
        }
    }

    /// A decimal number as JSON writes it, read as the nearest f64, within a range.
    ///
    /// # Errors
    /// No number (`inf`, `nan` and hexadecimal are none), or outside the range.
    pub fn parse_in(text: &str, range: RangeInclusive<Self>) -> Result<Self, FixedError> {
        let plain = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
        if !text.bytes().all(plain) {
            return Err(FixedError::NotANumber);
        }
        let value: f64 = text.parse().map_err(|_| FixedError::NotANumber)?;
        if value.is_infinite() {
            // Too large even for an f64.
            return Err(FixedError::OutOfRange);
        }
        Self::from_f64_in(value, range)
    }

    /// The nearest raw to a finite f64, ties to even, if its magnitude is below 2^31.
    fn nearest(value: f64) -> Option<Self> {
        const MANTISSA_BITS: i32 = 52;
        let bits = value.to_bits();
        let exponent = ((bits >> MANTISSA_BITS) & 0x7ff) as i32;
        if exponent == 0 {
            // 0, or a subnormal: far below half a raw.
            return Some(Self::ZERO);
        }
        let mantissa = (bits & ((1 << MANTISSA_BITS) - 1)) | (1 << MANTISSA_BITS);
        // value = mantissa × 2^(exponent − 1075), raw = value × 2^16 = mantissa / 2^shift.
        let shift = 1075 - exponent - FRACTION_BITS as i32;
        if shift < 22 {
            // At least 2^52 / 2^21 = 2^31.
            return None;
        }
        let magnitude = if shift > 60 {
            0
        } else {
            let floor = mantissa >> shift;
            let rest = mantissa & ((1 << shift) - 1);
            let half = 1u64 << (shift - 1);
            floor + u64::from(rest > half || (rest == half && floor & 1 == 1))
        };
        let magnitude = i32::try_from(magnitude).ok()?;
        Some(Self(if value.is_sign_negative() {
            -magnitude
        } else {
            magnitude
        }))
    }

    /// The f64 nearest to the decimal that [`Display`](fmt::Display) writes; reading it gives this number back.
    fn decimal(self) -> f64 {
        self.to_string().parse().expect("Display writes a number")
    }
}

impl FromStr for Fixed {
    type Err = FixedError;

    /// A decimal number as JSON writes it, read as the nearest f64, within the world limit.
    fn from_str(text: &str) -> Result<Self, FixedError> {
        Self::parse_in(text, Self(-WORLD_LIMIT.0)..=WORLD_LIMIT)
    }
}

impl fmt::Display for Fixed {
    /// The fewest decimal places (0 to 5) that read back to the same raw; of those the nearest to the exact value, ties to
    /// the even last digit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = u64::from(self.0.unsigned_abs());
        let mut scale = 1u64;
        for places in 0..=5usize {
            // The decimal with this many places nearest to magnitude / 65536.
            let scaled = magnitude * scale;
            let (floor, rest) = (scaled >> FRACTION_BITS, scaled & 0xffff);
            let decimal = floor + u64::from(rest > 0x8000 || (rest == 0x8000 && floor & 1 == 1));
            // Reading back: decimal / scale × 65536, to the nearest raw, ties to even.
            let numerator = decimal << FRACTION_BITS;
            let (quotient, remainder) = (numerator / scale, numerator % scale);
            let raw =
                quotient + u64::from(2 * remainder > scale || (2 * remainder == scale && quotient & 1 == 1));
            if raw == magnitude {
                let sign = if self.0 < 0 { "-" } else { "" };
                let whole = decimal / scale;
                return if places == 0 {
                    write!(f, "{sign}{whole}")
                } else {
                    write!(f, "{sign}{whole}.{:0places$}", decimal % scale)
                };
            }
            scale *= 10;
        }
        unreachable!("five places resolve 2^-16")
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fixed {
    /// A JSON number with the digits of `Display`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 & 0xffff == 0 {
            serializer.serialize_i32(self.0 >> FRACTION_BITS)
        } else {
            // The shortest text that reads back to this f64 is the decimal it was parsed from.
            serializer.serialize_f64(self.decimal())
        }
    }
}

/// A position in the XZ plane, metres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, Serialize)]
pub struct Point {
    /// East.
    pub x: Fixed,
    /// North (yaw 0 looks along +Z).
    pub z: Fixed,
}

impl Point {
    /// The point with these coordinates.
    #[inline]
    pub const fn new(x: Fixed, z: Fixed) -> Self {
        Self { x, z }
    }

    /// The point with these raw coordinates.
    #[inline]
    pub const fn from_raw(x: i32, z: i32) -> Self {
        Self {
            x: Fixed::from_raw(x),
            z: Fixed::from_raw(z),
        }
    }

    /// |x| and |z| ≤ [`WORLD_LIMIT`].
    #[inline]
    pub const fn in_world(self) -> bool {
        self.x.0.unsigned_abs() <= WORLD_LIMIT.0 as u32 && self.z.0.unsigned_abs() <= WORLD_LIMIT.0 as u32
    }

    /// Squared distance in raw², 2⁻³² m²; both points within the world limit, or one of them in a grid's margin. (Between
    /// two cell centres it can take more than 63 bits.)
    #[inline]
    pub const fn squared_distance(self, other: Self) -> i64 {
        let dx = self.x.wide() - other.x.wide();
        let dz = self.z.wide() - other.z.wide();
        dx * dx + dz * dz
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HALF: f64 = 1.0 / 131_072.0;

    #[test]
    fn decimals_round_half_even_within_the_limit() {
        let check = |value: f64, expected: Result<i32, FixedError>| {
            assert_eq!(Fixed::from_f64(value).map(Fixed::raw), expected, "{value:e}");
        };
        let out_of_range = Err(FixedError::OutOfRange);
        let not_a_number = Err(FixedError::NotANumber);
        check(0.0, Ok(0));
        check(-0.0, Ok(0));
        check(0.4, Ok(26_214));
        check(0.45, Ok(29_491));
        check(-0.45, Ok(-29_491));
        // Half a raw, and the f64 on either side of it.
        check(HALF, Ok(0));
        check(HALF.next_up(), Ok(1));
        check(HALF.next_down(), Ok(0));
        check(3.0 * HALF, Ok(2));
        check((3.0 * HALF).next_down(), Ok(1));
        check(-3.0 * HALF, Ok(-2));
        check(-HALF.next_up(), Ok(-1));
        check(5e-324, Ok(0));
        check(f64::MIN_POSITIVE, Ok(0));
        check(1e-300, Ok(0));
        check(16_000.0, Ok(16_000 << 16));
        check(-16_000.0, Ok(-(16_000 << 16)));
        check(16_000f64.next_up(), out_of_range);
        check(-16_000f64.next_up(), out_of_range);
        check(32_767.999_99, out_of_range);
        check(32_768.0, out_of_range);
        check(65_536.0, out_of_range);
        check(f64::MAX, out_of_range);
        check(f64::NAN, not_a_number);
        check(f64::INFINITY, not_a_number);
        check(f64::NEG_INFINITY, not_a_number);
    }

    #[test]
    fn ranges_hold_before_rounding() {
        let range = "0.01".parse().expect("a number")..=Fixed::from_int(100);
        for (text, expected) in [
            ("0.01", Ok(655)),
            ("0.0100001", Ok(655)),
            ("0.0099999", Err(FixedError::OutOfRange)),
            ("100", Ok(100 << 16)),
            ("100.000001", Err(FixedError::OutOfRange)),
            ("-1", Err(FixedError::OutOfRange)),
            ("1e2", Ok(100 << 16)),
            ("1e400", Err(FixedError::OutOfRange)),
            ("inf", Err(FixedError::NotANumber)),
            ("nan", Err(FixedError::NotANumber)),
            ("0x10", Err(FixedError::NotANumber)),
            ("", Err(FixedError::NotANumber)),
            ("1,5", Err(FixedError::NotANumber)),
            (" 1", Err(FixedError::NotANumber)),
            ("e", Err(FixedError::NotANumber)),
        ] {
            let found = Fixed::parse_in(text, range.clone()).map(Fixed::raw);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn the_fewest_digits_are_printed() {
        for (raw, expected) in [
            (0, "0"),
            (-5 << 16, "-5"),
            (1024, "0.01562"),
            (1, "0.00002"),
            (-1, "-0.00002"),
            (26_214, "0.4"),
            (655, "0.01"),
            (32_768, "0.5"),
            (i32::MAX, "32767.99998"),
            (i32::MIN, "-32768"),
            (65_535, "0.99998"),
        ] {
            assert_eq!(Fixed::from_raw(raw).to_string(), expected, "raw {raw}");
        }
    }

    #[test]
    fn products_floor_and_quotients_truncate() {
        let raw = Fixed::from_raw;
        assert_eq!(raw(-1).mul_floor(raw(1)), raw(-1));
        assert_eq!(raw(-1).div_trunc(raw(3 << 16)), raw(0));
        assert_eq!(raw(7 << 16).div_trunc(raw(-2 << 16)), raw(-(7 << 15)));
        assert_eq!(raw(1 << 15).mul_floor(raw(-3)), raw(-2));
    }

    #[test]
    fn squared_distances_fit_across_the_world() {
        let corner = |metres: i32| Point::new(Fixed::from_int(metres), Fixed::from_int(metres));
        let squared = corner(-16_000).squared_distance(corner(16_500));
        assert_eq!(squared, 2 * (32_500i64 << 16).pow(2));
    }

    /// Reading a decimal of `places` digits: exact arithmetic on the digits, not on a float.
    fn nearest_raw(digits: i64, places: u32) -> i64 {
        let scale = 10i64.pow(places);
        let numerator = digits.abs() * 65_536;
        let (floor, rest) = (numerator / scale, numerator % scale);
        let up = 2 * rest > scale || 2 * rest == scale && floor % 2 == 1;
        (floor + i64::from(up)) * digits.signum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_is_printed_reads_back(raw in any::<i32>()) {
            let text = Fixed::from_raw(raw).to_string();
            let everything = Fixed::from_raw(i32::MIN)..=Fixed::from_raw(i32::MAX);
            // i32::MIN has no positive twin and is no coordinate.
            prop_assume!(raw != i32::MIN);
            prop_assert_eq!(Fixed::parse_in(&text, everything).map(Fixed::raw), Ok(raw), "{}", text);
            prop_assert!(!text.ends_with(".0") && text != "-0");

            // No shorter decimal reads back, and no other of that length is nearer.
            let places = text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as u32);
            let digits: i64 = text.replace('.', "").parse().expect("digits");
            let error = |digits: i64| (digits * 65_536 - i64::from(raw) * 10i64.pow(places)).abs();
            prop_assert!(error(digits) <= error(digits + 1) && error(digits) <= error(digits - 1));
            if places > 0 {
                let shorter = digits / 10;
                for candidate in shorter - 1..=shorter + 1 {
                    prop_assert_ne!(nearest_raw(candidate, places - 1), i64::from(raw));
                }
            }
        }

        #[test]
        fn decimals_read_to_the_nearest_raw(digits in -1_600_000_000i64..=1_600_000_000, places in 0..=9u32) {
            let digits = digits % (15_999 * 10i64.pow(places));
            let sign = if digits < 0 { "-" } else { "" };
            let padded = format!("{:0>10}", digits.abs());
            let (whole, fraction) = padded.split_at(padded.len() - places as usize);
            let text = format!("{sign}{whole}.{fraction}0");
            let expected = nearest_raw(digits, places);
            prop_assert_eq!(text.parse::<Fixed>().map(|fixed| i64::from(fixed.raw())), Ok(expected), "{}", text);
        }

        /// JSON carries the digits of `Display`, and they read back.
        #[test]
        fn json_numbers_have_the_same_digits(raw in any::<i32>()) {
            let fixed = Fixed::from_raw(raw);
            let json = serde_json::to_string(&fixed).expect("a number");
            prop_assert_eq!(json, fixed.to_string());
        }
    }
}
