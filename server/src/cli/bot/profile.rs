//! Which of the bots behave, and how the others do not.

use clap::{Args, ValueEnum};

/// Commands that a flooding bot gives in a second: some fifty times what a location takes at 10 Hz.
pub(super) const FLOOD_RATE: f64 = 1_000.0;
/// Seconds in which `--profile ramp` lets its bots connect, unless `--ramp` says otherwise: half of their time.
const RAMP_SHARE: f64 = 0.5;

/// What a load test is made of.
#[derive(Args)]
pub(super) struct ProfileArguments {
    /// A load with a name; the shares below change it
    #[arg(long, value_name = "NAME")]
    profile: Option<Profile>,
    /// Connect one after the other within S seconds instead of all at once
    #[arg(long, value_name = "S", value_parser = seconds)]
    ramp: Option<f64>,
    /// Part of the bots that command far above the rate, 0 to 1; what becomes of them is no error
    #[arg(long, value_name = "SHARE", value_parser = share)]
    flood_share: Option<f64>,
    /// Part of the bots that are let in and then read nothing, every second of them 4 KiB a second, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    slow_share: Option<f64>,
    /// Part of the bots that are let in and then say nothing, without closing, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    half_open_share: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// All behave; they come during the first half of the time
    Ramp,
    /// All command far above the rate
    Flood,
    /// All read too slowly or not at all
    Slow,
    /// All fall silent without closing
    HalfOpen,
}

/// How a bot behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Good,
    Flood,
    NeverReads,
    RarelyReads,
    HalfOpen,
}

impl ProfileArguments {
    /// Seconds during which the bots connect.
    pub(super) fn ramp_seconds(&self, seconds: u64) -> f64 {
        let default = if self.profile == Some(Profile::Ramp) {
            RAMP_SHARE * seconds as f64
        } else {
            0.0
        };
        self.ramp.unwrap_or(default).min(seconds as f64)
    }

    /// How each of `count` bots behaves. Those that do not are spread evenly among the others, so that a ramp mixes them.
    ///
    /// # Errors
    /// The shares are more than all.
    pub(super) fn manners(&self, count: u32) -> Result<Vec<Manner>, &'static str> {
        let of = |share: Option<f64>, profile: Profile| {
            let default = if self.profile == Some(profile) { 1.0 } else { 0.0 };
            share.unwrap_or(default)
        };
        let shares = [
            (of(self.flood_share, Profile::Flood), Manner::Flood),
            (of(self.slow_share, Profile::Slow), Manner::NeverReads),
            (of(self.half_open_share, Profile::HalfOpen), Manner::HalfOpen),
        ];
        let mut manners = vec![Manner::Good; count as usize];
        let all: u32 = shares.iter().map(|(share, _)| number(*share, count)).sum();
        if all > count {
            return Err("the shares are more than all bots");
        }
        let ill = shares
            .iter()
            .flat_map(|(share, manner)| (0..number(*share, count)).map(|index| (index, *manner)));
        for (place, (index, manner)) in (0..all).zip(ill) {
            // The last of each stretch, so that the first bot, which brings the definition for all, behaves if any does.
            let at = (u64::from(place + 1) * u64::from(count)).div_ceil(u64::from(all)) - 1;
            manners[at as usize] = match manner {
                Manner::NeverReads if index % 2 == 1 => Manner::RarelyReads,
                manner => manner,
            };
        }
        Ok(manners)
    }
}

fn number(share: f64, count: u32) -> u32 {
    (share * f64::from(count)).round() as u32
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0 to 86400".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_spread_and_add_up() {
        let check = |profile,
                     [flood, slow, half_open]: [Option<f64>; 3],
                     count: u32,
                     expected: Result<[usize; 5], ()>| {
            let arguments = ProfileArguments {
                profile,
                ramp: None,
                flood_share: flood,
                slow_share: slow,
                half_open_share: half_open,
            };
            let found = arguments.manners(count).map_err(|_| ()).map(|manners| {
                use Manner::{Flood, Good, HalfOpen, NeverReads, RarelyReads};
                let of = |wanted: Manner| manners.iter().filter(|manner| **manner == wanted).count();
                [Good, Flood, NeverReads, RarelyReads, HalfOpen].map(of)
            });
            assert_eq!(found, expected, "{profile:?} of {count}");
        };
        check(None, [None; 3], 3, Ok([3, 0, 0, 0, 0]));
        check(Some(Profile::Ramp), [None; 3], 3, Ok([3, 0, 0, 0, 0]));
        check(Some(Profile::Flood), [None; 3], 3, Ok([0, 3, 0, 0, 0]));
        check(Some(Profile::Slow), [None; 3], 5, Ok([0, 0, 3, 2, 0]));
        check(
            Some(Profile::HalfOpen),
            [None, None, Some(0.5)],
            4,
            Ok([2, 0, 0, 0, 2]),
        );
        check(
            None,
            [Some(0.1), Some(0.1), Some(0.1)],
            1_000,
            Ok([700, 100, 50, 50, 100]),
        );
        check(None, [Some(0.6), Some(0.6), None], 10, Err(()));
    }
}
