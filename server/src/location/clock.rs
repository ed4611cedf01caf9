//! When a turn is due (spec 4.1): arithmetic on microseconds, no clock of its own.

/// A turn that is late by more than this many ticks is not caught up: the base moves.
pub(crate) const CATCH_UP_TICKS_MAX: u64 = 5;

/// Turn t is due at `base_us + floor((t − base_tick) × 1,000,000 / tick_rate)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TickClock {
    base_tick: u64,
    base_us: u64,
    tick_rate: u16,
}

impl TickClock {
    /// `tick` is due at `now_us`.
    pub(crate) fn starting(tick: u64, now_us: u64, tick_rate: u16) -> Self {
        Self {
            base_tick: tick,
            base_us: now_us,
            tick_rate,
        }
    }

    /// The tick that the others are counted from.
    pub(crate) fn base_tick(&self) -> u64 {
        self.base_tick
    }

    /// When that tick is due, microseconds of the server's monotonic clock.
    pub(crate) fn base_us(&self) -> u64 {
        self.base_us
    }

    /// When `tick` is due, microseconds of the server's monotonic clock; `tick` is not before the base.
    pub(crate) fn due_us(&self, tick: u64) -> u64 {
        let ticks = u128::from(tick - self.base_tick);
        let after_us = ticks * 1_000_000 / u128::from(self.tick_rate);
        self.base_us
            .saturating_add(u64::try_from(after_us).unwrap_or(u64::MAX))
    }

    /// Gives up the ticks that cannot be caught up any more: if `next_tick` is late by more than
    /// [`CATCH_UP_TICKS_MAX`] ticks, it becomes due now. Returns how many ticks were given up.
    pub(crate) fn slip(&mut self, next_tick: u64, now_us: u64) -> u64 {
        if now_us <= self.due_us(next_tick + CATCH_UP_TICKS_MAX) {
            return 0;
        }
        let late_us = now_us - self.due_us(next_tick);
        *self = Self::starting(next_tick, now_us, self.tick_rate);
        late_us.saturating_mul(u64::from(self.tick_rate)) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::TickClock;

    #[test]
    fn due_times_do_not_drift() {
        let clock = TickClock::starting(7, 1_000, 30);
        let check = |tick: u64, expected: u64| {
            assert_eq!(clock.due_us(tick), expected, "tick {tick} at 30 Hz from 7");
        };
        check(7, 1_000);
        check(8, 34_333);
        check(9, 67_666);
        check(10, 101_000);
        check(7 + 30 * 3600 * 24 * 365, 1_000 + 1_000_000 * 3600 * 24 * 365);
    }

    #[test]
    fn five_late_ticks_are_caught_up_and_more_are_given_up() {
        let check = |now_us: u64, given_up: u64, next_due_us: u64| {
            let mut clock = TickClock::starting(0, 0, 10);
            assert_eq!(clock.slip(20, now_us), given_up, "ticks given up at {now_us} µs");
            assert_eq!(
                clock.due_us(20),
                next_due_us,
                "next tick due, asked at {now_us} µs"
            );
        };
        check(1_999_999, 0, 2_000_000); // early
        check(2_000_000, 0, 2_000_000);
        check(2_500_000, 0, 2_000_000); // five late
        check(2_500_001, 5, 2_500_001); // more than five
        check(12_000_000, 100, 12_000_000); // stopped for ten seconds
    }
}
