//! What must not happen too often: how often it has lately.

use std::collections::VecDeque;

/// When something happened, on any clock that does not go back.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<u64>);

impl Recent {
    /// Adds one; returns how many there were in the window that ends now.
    pub(super) fn add(&mut self, now: u64, window: u64) -> usize {
        self.0.push_back(now);
        self.count(now, window)
    }

    /// Adds one unless there are `most` in the window that ends now; whether it did.
    pub(super) fn add_below(&mut self, most: usize, now: u64, window: u64) -> bool {
        let fits = self.count(now, window) < most;
        if fits {
            self.0.push_back(now);
        }
        fits
    }

    fn count(&mut self, now: u64, window: u64) -> usize {
        while self.0.front().is_some_and(|at| at + window < now) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn only_what_is_recent_counts() {
        let mut recent = Recent::default();
        let added = [0, 0, 5, 10, 11, 21].map(|now| recent.add(now, 10));
        assert_eq!(added, [1, 2, 3, 4, 3, 2]);
    }

    #[test]
    fn what_does_not_fit_does_not_count() {
        let mut recent = Recent::default();
        let fits = [0, 5, 6, 10, 11, 12, 16].map(|now| recent.add_below(2, now, 10));
        assert_eq!(fits, [true, true, false, false, true, false, true]);
    }
}
