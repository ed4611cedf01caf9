//! Snapshots for those who join, resume or resynchronise: fixed at their tick, shared by all who want one then, few at
//! a time and not for long (spec 4.5).
//!
//! A definition is downloaded before the snapshot and may take longer than a snapshot lives. Then the snapshot is given up
//! without a reproach, and a newer one follows once the definition has left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use protocol::message::PART_BYTES_MAX;
use protocol::{Blob, ServerMessage, frame};

use super::ConnectionId;

/// Snapshots that are alive at once.
pub(crate) const SNAPSHOTS_MAX: usize = 4;
/// How long one may be alive, µs.
pub(crate) const SNAPSHOT_LIFE_US: u64 = 60_000_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Downloads {
    alive: Vec<Shared>,
    /// They get the next one.
    waiting: BTreeSet<ConnectionId>,
    /// Those whose definition has not left yet, and whether they want a snapshot when it has.
    defining: BTreeMap<ConnectionId, bool>,
}

#[derive(Debug)]
struct Shared {
    tick: u64,
    made_us: u64,
    frames: Arc<[Bytes]>,
    /// Each with whether a definition stands before it, or stood.
    takers: BTreeMap<ConnectionId, bool>,
}

/// Who has not taken a snapshot in time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Late {
    /// They were sent nothing else; they are forgotten.
    pub(crate) slow: Vec<ConnectionId>,
    /// They were busy with the definition; they get a newer one.
    pub(crate) excused: Vec<ConnectionId>,
}

impl Downloads {
    /// This connection wants a snapshot; one that it is still being sent is not of use any more. While its definition is
    /// under way it waits for that.
    pub(crate) fn want(&mut self, connection: ConnectionId) {
        self.take_from(connection);
        match self.defining.get_mut(&connection) {
            Some(wants) => *wants = true,
            None => {
                self.waiting.insert(connection);
            }
        }
    }

    /// This connection wants none any more.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.take_from(connection);
        self.defining.remove(&connection);
    }

    /// This connection is sent the definition; a snapshot that it was given comes after it.
    pub(crate) fn define(&mut self, connection: ConnectionId) {
        self.defining.insert(connection, false);
        for shared in &mut self.alive {
            shared
                .takers
                .entry(connection)
                .and_modify(|behind| *behind = true);
        }
    }

    /// The definition has left to this connection.
    pub(crate) fn defined(&mut self, connection: ConnectionId) {
        if self.defining.remove(&connection) == Some(true) {
            self.waiting.insert(connection);
        }
    }

    /// Whether the definition is under way to this connection.
    pub(crate) fn is_defining(&self, connection: ConnectionId) -> bool {
        self.defining.contains_key(&connection)
    }

    /// The snapshot of `tick` has left to this connection.
    pub(crate) fn finished(&mut self, connection: ConnectionId, tick: u64) {
        if let Some(shared) = self.alive.iter_mut().find(|shared| shared.tick == tick) {
            shared.takers.remove(&connection);
        }
        self.alive.retain(|shared| !shared.takers.is_empty());
    }

    /// Nothing could be sent for so long.
    pub(crate) fn extend(&mut self, by_us: u64) {
        for shared in &mut self.alive {
            shared.made_us += by_us;
        }
    }

    /// Those who have not taken theirs in time.
    pub(crate) fn expire(&mut self, now_us: u64) -> Late {
        let (old, alive): (Vec<Shared>, Vec<Shared>) = std::mem::take(&mut self.alive)
            .into_iter()
            .partition(|shared| now_us.saturating_sub(shared.made_us) > SNAPSHOT_LIFE_US);
        self.alive = alive;
        let mut late = Late::default();
        for (connection, behind) in old.into_iter().flat_map(|shared| shared.takers) {
            if behind {
                self.want(connection);
                late.excused.push(connection);
            } else {
                late.slow.push(connection);
            }
        }
        late
    }

    /// Gives all that wait the snapshot at `tick`; they go on waiting while too many others are alive. `snapshot` makes it.
    pub(crate) fn give(
        &mut self,
        tick: u64,
        now_us: u64,
        snapshot: impl FnOnce() -> Vec<u8>,
    ) -> Option<(Arc<[Bytes]>, BTreeSet<ConnectionId>)> {
        if self.waiting.is_empty() {
            return None;
        }
        let there = self.alive.iter().position(|shared| shared.tick == tick);
        let index = match there {
            Some(index) => index,
            None if self.alive.len() >= SNAPSHOTS_MAX => return None,
            None => {
                self.alive.push(Shared {
                    tick,
                    made_us: now_us,
                    frames: snapshot_frames(tick, snapshot()),
                    takers: BTreeMap::new(),
                });
                self.alive.len() - 1
            }
        };
        let takers = std::mem::take(&mut self.waiting);
        let shared = &mut self.alive[index];
        shared.takers.extend(takers.iter().map(|taker| (*taker, false)));
        Some((Arc::clone(&shared.frames), takers))
    }

    /// This connection neither waits for a snapshot nor is it sent one.
    fn take_from(&mut self, connection: ConnectionId) {
        self.waiting.remove(&connection);
        for shared in &mut self.alive {
            shared.takers.remove(&connection);
        }
        self.alive.retain(|shared| !shared.takers.is_empty());
    }
}

/// A snapshot as frames.
fn snapshot_frames(tick: u64, snapshot: Vec<u8>) -> Arc<[Bytes]> {
    frames(snapshot, |part, parts, bytes| ServerMessage::Snapshot {
        tick,
        part,
        parts,
        bytes,
    })
}

/// A definition as frames.
pub(crate) fn definition_frames(bundle: Vec<u8>) -> Arc<[Bytes]> {
    frames(bundle, |part, parts, bytes| ServerMessage::Definition {
        part,
        parts,
        bytes,
    })
}

fn frames(bytes: Vec<u8>, message: impl Fn(u32, u32, Blob<PART_BYTES_MAX>) -> ServerMessage) -> Arc<[Bytes]> {
    let bytes = Bytes::from(bytes);
    let parts = bytes.len().div_ceil(PART_BYTES_MAX).max(1);
    (0..parts)
        .map(|part| {
            let start = part * PART_BYTES_MAX;
            let bytes = bytes.slice(start..bytes.len().min(start + PART_BYTES_MAX));
            let bytes = Blob::new(bytes).expect("a part is cut to its limit");
            frame::encode_server(&message(part as u32, parts as u32, bytes))
                .expect("a part is far below the limit of a frame")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ConnectionId, Downloads, Late, SNAPSHOT_LIFE_US, snapshot_frames};

    fn connection(number: u64) -> ConnectionId {
        ConnectionId(number)
    }

    #[test]
    fn snapshots_are_shared_counted_and_given_up() {
        let mut downloads = Downloads::default();
        let made = std::cell::Cell::new(0);
        let give = |downloads: &mut Downloads, tick: u64| {
            let given = downloads.give(tick, tick * 1_000, || {
                made.set(made.get() + 1);
                vec![0; 10]
            });
            given.map_or(0, |(_, takers)| takers.len())
        };
        assert_eq!(give(&mut downloads, 1), 0, "nobody wants one");
        for (number, tick) in [(10, 1), (11, 1), (20, 2), (30, 3), (40, 4)] {
            downloads.want(connection(number));
            assert_eq!(give(&mut downloads, tick), 1);
        }
        assert_eq!(made.get(), 4, "one per tick");
        downloads.want(connection(50));
        assert_eq!(give(&mut downloads, 5), 0, "four are alive");
        downloads.finished(connection(10), 1);
        assert_eq!(give(&mut downloads, 5), 0, "somebody else takes the first");
        downloads.forget(connection(11));
        assert_eq!(give(&mut downloads, 5), 1);
        let late = downloads.expire(3_001 + SNAPSHOT_LIFE_US);
        assert_eq!(late.slow, [connection(20), connection(30)]);
        assert_eq!(late.excused, []);
        downloads.want(connection(60));
        assert_eq!(give(&mut downloads, 6), 1);
    }

    /// What becomes of a snapshot whose taker's definition leaves at this time, µs; `None`: not at all.
    #[test]
    fn whoever_is_busy_with_the_definition_gets_a_newer_one() {
        let check = |left_us: Option<u64>| {
            let (mut downloads, taker) = (Downloads::default(), connection(1));
            let give = |downloads: &mut Downloads, tick: u64, now_us: u64| {
                let given = downloads.give(tick, now_us, || vec![0; 10]);
                given.map_or(0, |(_, takers)| takers.len())
            };
            downloads.want(taker);
            assert_eq!(give(&mut downloads, 1, 0), 1);
            downloads.define(taker);
            if left_us.is_some() {
                downloads.defined(taker);
            }
            assert_eq!(downloads.expire(SNAPSHOT_LIFE_US), Late::default());
            let late = downloads.expire(SNAPSHOT_LIFE_US + 1);
            assert_eq!((late.slow.len(), late.excused), (0, vec![taker]), "{left_us:?}");
            if left_us.is_none() {
                assert_eq!(
                    give(&mut downloads, 2, SNAPSHOT_LIFE_US + 1),
                    0,
                    "not before it has left"
                );
                downloads.defined(taker);
            }
            let later_us = 2 * SNAPSHOT_LIFE_US;
            assert_eq!(give(&mut downloads, 3, later_us), 1);
            let late = downloads.expire(later_us + SNAPSHOT_LIFE_US + 1);
            assert_eq!(late.slow, [taker], "this one stands behind nothing");
        };
        check(None);
        check(Some(SNAPSHOT_LIFE_US - 1));
    }

    #[test]
    fn a_snapshot_is_cut_into_parts() {
        let check = |bytes: usize, parts: usize| {
            assert_eq!(snapshot_frames(7, vec![0; bytes]).len(), parts, "{bytes} bytes");
        };
        check(0, 1);
        check(1, 1);
        check(65_536, 1);
        check(65_537, 2);
        check(200_000, 4);
    }
}
