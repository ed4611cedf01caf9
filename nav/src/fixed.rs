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
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// A whole number; |value| ≤ 32767.
    pub const fn from_int(value: i32) -> Self {
        // Checked for overflow, as a shift would not be.
        Self(value * (1 << FRACTION_BITS))
    }

    /// Raw value: the number × 65536.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Raw value widened for products and sums.
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
    pub const fn new(x: Fixed, z: Fixed) -> Self {
        Self { x, z }
    }

    /// The point with these raw coordinates.
    pub const fn from_raw(x: i32, z: i32) -> Self {
        Self {
            x: Fixed::from_raw(x),
            z: Fixed::from_raw(z),
        }
    }

    /// |x| and |z| ≤ [`WORLD_LIMIT`].
    pub const fn in_world(self) -> bool {
        self.x.0.unsigned_abs() <= WORLD_LIMIT.0 as u32 && self.z.0.unsigned_abs() <= WORLD_LIMIT.0 as u32
    }

    /// Squared distance in raw², 2⁻³² m²; both points within the world limit (or a grid's margin).
    pub const fn squared_distance(self, other: Self) -> i64 {
        let dx = self.x.wide() - other.x.wide();
        let dz = self.z.wide() - other.z.wide();
        dx * dx + dz * dz
    }
}
