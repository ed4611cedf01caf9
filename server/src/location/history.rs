//! What has just happened: turns for those who missed them, digests to compare with, snapshots to find a difference
//! from (spec 4.5).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

/// How long turns are kept for those who resume: the grace and what a slow reconnect takes.
const TURNS_KEPT_SECONDS: u64 = 60;
/// Bytes of turns that are kept.
const TURNS_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of missed turns that are sent; a snapshot is better than more.
const MISSED_BYTES_MAX: usize = 128 * 1024;
/// How long a digest can be compared.
const DIGESTS_COMPARED_SECONDS: u64 = 10;

const _: () = assert!(MISSED_BYTES_MAX <= TURNS_KEPT_BYTES_MAX);
const _: () = assert!(MISSED_BYTES_MAX < super::outbox::QUEUE_BYTES_MAX);
const _: () = assert!(DIGESTS_COMPARED_SECONDS <= TURNS_KEPT_SECONDS);

/// What the digests of a World's parts at an earlier tick are computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recomputation {
    /// The step after which the parts are wanted.
    pub(crate) tick: u64,
    /// A snapshot from before it.
    pub(crate) snapshot: Arc<[u8]>,
    /// The frames of the turns from the snapshot's tick to `tick`.
    pub(crate) turns: Vec<Bytes>,
    /// The World there is to be kept as a report.
    pub(crate) keep: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct History {
    tick_rate: u64,
    /// The turn that comes next; the others are counted back from it.
    next_tick: u64,
    /// Frames of the last turns.
    turns: VecDeque<Bytes>,
    turns_bytes: usize,
    /// Digests of the last ticks; at a start also that of the World found.
    digests: VecDeque<u64>,
    /// Snapshots, one a second, by their tick.
    snapshots: VecDeque<(u64, Arc<[u8]>)>,
}

impl History {
    /// Begins with the World in which step `next_tick` runs next; `digest` is its digest.
    pub(crate) fn starting(next_tick: u64, digest: u64, snapshot: Vec<u8>, tick_rate: u16) -> Self {
        Self {
            tick_rate: u64::from(tick_rate),
            next_tick,
            turns: VecDeque::new(),
            turns_bytes: 0,
            digests: if next_tick > 0 {
                VecDeque::from([digest])
            } else {
                VecDeque::new()
            },
            snapshots: VecDeque::from([(next_tick, snapshot.into())]),
        }
    }

    /// Adds the turn that has just run.
    pub(crate) fn push(&mut self, frame: Bytes, digest: u64) {
        self.next_tick += 1;
        self.turns_bytes += frame.len();
        self.turns.push_back(frame);
        self.digests.push_back(digest);
        let kept = (TURNS_KEPT_SECONDS * self.tick_rate) as usize;
        while self.turns.len() > kept || self.turns_bytes > TURNS_KEPT_BYTES_MAX {
            let Some(frame) = self.turns.pop_front() else {
                break;
            };
            self.turns_bytes -= frame.len();
        }
        while self.digests.len() > kept {
            self.digests.pop_front();
        }
    }

    /// Whether it is time for [`History::push_snapshot`].
    pub(crate) fn wants_snapshot(&self) -> bool {
        self.next_tick.is_multiple_of(self.tick_rate)
    }

    /// Adds a snapshot of the World in which the next step runs.
    pub(crate) fn push_snapshot(&mut self, snapshot: Vec<u8>) {
        self.snapshots.push_back((self.next_tick, snapshot.into()));
        let compared = DIGESTS_COMPARED_SECONDS * self.tick_rate;
        // The oldest is needed until the second oldest is old enough.
        while self
            .snapshots
            .get(1)
            .is_some_and(|(tick, _)| tick + compared <= self.next_tick)
        {
            self.snapshots.pop_front();
        }
    }

    /// The digest after step `tick`, if it is recent enough to be compared.
    pub(crate) fn digest_to_compare(&self, tick: u64) -> Option<u64> {
        let compared = DIGESTS_COMPARED_SECONDS * self.tick_rate;
        if tick.saturating_add(compared) < self.next_tick {
            None
        } else {
            self.digest(tick)
        }
    }

    /// The turns from `next_tick` on, for a client whose World is in that state with this digest; `None`: it needs a
    /// snapshot. Each with its tick.
    pub(crate) fn missed(&self, next_tick: u64, digest: u64) -> Option<Vec<(u64, Bytes)>> {
        let known = next_tick.checked_sub(1).and_then(|tick| self.digest(tick));
        let count = usize::try_from(self.next_tick.checked_sub(next_tick)?).ok()?;
        let first = self.turns.len().checked_sub(count)?;
        if known != Some(digest) {
            return None;
        }
        let missed = self.turns.iter().skip(first);
        if missed.clone().map(Bytes::len).sum::<usize>() > MISSED_BYTES_MAX {
            return None;
        }
        Some((next_tick..).zip(missed.cloned()).collect())
    }

    /// What the parts after step `tick` can be computed from.
    pub(crate) fn recomputation(&self, tick: u64) -> Option<Recomputation> {
        let (from, snapshot) = self.snapshots.iter().rev().find(|(from, _)| *from <= tick)?;
        let first_kept = self.next_tick - self.turns.len() as u64;
        let skipped = usize::try_from(from.checked_sub(first_kept)?).ok()?;
        let count = usize::try_from(tick + 1 - from).ok()?;
        let turns: Vec<Bytes> = self.turns.iter().skip(skipped).take(count).cloned().collect();
        (turns.len() == count).then(|| Recomputation {
            tick,
            snapshot: Arc::clone(snapshot),
            turns,
            keep: false,
        })
    }

    fn digest(&self, tick: u64) -> Option<u64> {
        let back = usize::try_from(self.next_tick.checked_sub(tick)?).ok()?;
        let index = self.digests.len().checked_sub(back)?;
        self.digests.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::History;
    use bytes::Bytes;

    /// Ten ticks from 100 on at 2 Hz; turn t has the frame `[t]` and the digest t × 10; a snapshot each second.
    fn history() -> History {
        let mut history = History::starting(100, 990, vec![100], 2);
        for tick in 100..110_u8 {
            history.push(Bytes::from(vec![tick]), u64::from(tick) * 10);
            if history.wants_snapshot() {
                history.push_snapshot(vec![tick + 1]);
            }
        }
        history
    }

    #[test]
    fn missed_turns_need_the_same_past() {
        let history = history();
        let check = |next_tick: u64, digest: u64, expected: Option<Vec<u64>>| {
            let missed = history
                .missed(next_tick, digest)
                .map(|turns| turns.iter().map(|(tick, _)| *tick).collect::<Vec<_>>());
            assert_eq!(missed, expected, "a client at {next_tick} with digest {digest}");
        };
        check(108, 1_070, Some(vec![108, 109]));
        check(110, 1_090, Some(vec![]));
        check(100, 990, Some((100..110).collect())); // the state found at the start
        check(99, 980, None); // before it
        check(108, 1_071, None); // another past
        check(111, 1_100, None); // ahead
        check(0, 0, None); // it has no World
        check(u64::MAX, 0, None);
    }

    #[test]
    fn digests_are_compared_for_ten_seconds() {
        let mut history = history();
        for tick in 110..140_u64 {
            history.push(Bytes::new(), tick * 10);
        }
        let check = |tick: u64, expected: Option<u64>| {
            assert_eq!(history.digest_to_compare(tick), expected, "tick {tick}");
        };
        check(139, Some(1_390));
        check(120, Some(1_200));
        check(119, None);
        check(140, None);
        check(u64::MAX, None);
    }

    #[test]
    fn parts_are_computed_from_the_snapshot_before() {
        let history = history();
        let check = |tick: u64, expected: Option<(u8, Vec<u8>)>| {
            let found = history.recomputation(tick).map(|recomputation| {
                let turns = recomputation.turns.iter().map(|frame| frame[0]).collect();
                (recomputation.snapshot[0], turns)
            });
            assert_eq!(found, expected, "after tick {tick}");
        };
        check(100, Some((100, vec![100])));
        check(102, Some((102, vec![102])));
        check(103, Some((102, vec![102, 103])));
        check(109, Some((108, vec![108, 109])));
        check(110, None);
        check(99, None);
    }
}
