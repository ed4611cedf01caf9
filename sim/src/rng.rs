//! The two small generators (spec 1 and 3.1): SplitMix64 makes seeds and shuffles, PCG32 is drawn from by behaviours.

use bincode::{Decode, Encode};
use serde::Serialize;

/// PCG32 (XSH-RR 64/32, O'Neill 2014); its state is part of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Pcg32 {
    /// State of the congruential generator.
    pub state: u64,
    /// Its increment, odd.
    pub increment: u64,
}

impl Pcg32 {
    /// The generator of a character (spec 3.4): SplitMix64 seeded with id + 2³²; state = its first output, increment = its second | 1.
    pub fn of_character(id: u32) -> Self {
        let mut seeds = SplitMix64::new(u64::from(id) + (1 << 32));
        Self {
            state: seeds.next_u64(),
            increment: seeds.next_u64() | 1,
        }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(self.increment);
        // XSH-RR: xorshift high bits, then a rotation by the highest five; truncation keeps the low 32.
        let shifted = (((old >> 18) ^ old) >> 27) as u32;
        shifted.rotate_right((old >> 59) as u32)
    }

    /// A number below `bound` by multiply and shift; `bound` 0 gives 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included; `low` ≤ `high`.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        // The full range of 2³² has no bound in u32; there the draw itself is the number.
        match (high - low).checked_add(1) {
            Some(bound) => low + self.below(bound),
            None => self.next_u32(),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` by the high half of the 128-bit product.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Fisher–Yates from the last element down to the second, drawn from SplitMix64 seeded with the id (spec 3.1).
pub(crate) fn shuffle(values: &mut [u32], id: u32) {
    let mut draws = SplitMix64::new(u64::from(id));
    for last in (1..values.len()).rev() {
        let other = draws.below(last as u64 + 1) as usize;
        values.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcg32_gives_the_published_numbers() {
        // pcg32-demo of the reference implementation: pcg32_srandom(42, 54), first round.
        let mut rng = Pcg32 {
            state: 0,
            increment: (54 << 1) | 1,
        };
        rng.next_u32();
        rng.state = rng.state.wrapping_add(42);
        rng.next_u32();
        let drawn: Vec<u32> = (0..6).map(|_| rng.next_u32()).collect();
        assert_eq!(
            drawn,
            [
                0xa15c_02b7,
                0x7b47_f409,
                0xba1d_3330,
                0x83d2_f293,
                0xbfa4_784b,
                0xcbed_606e
            ]
        );
    }

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut rng = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn bounds_are_kept_at_their_ends() {
        let mut rng = Pcg32::of_character(7);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert_eq!(rng.between(5, 5), 5);
        rng.between(0, u32::MAX);
        let drawn: Vec<u32> = (0..1000).map(|_| rng.between(3, 6)).collect();
        assert!(drawn.iter().all(|value| (3..=6).contains(value)));
        assert!((3..=6).all(|value| drawn.contains(&value)));
    }
}
