//! Snapshots for those who join, resume or resynchronise: fixed at their tick, shared by all who want one then, few at
//! a time and not for long (spec 4.5).

use std::collections::BTreeSet;
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
}

#[derive(Debug)]
struct Shared {
    tick: u64,
    made_us: u64,
    frames: Arc<[Bytes]>,
    takers: BTreeSet<ConnectionId>,
}

impl Downloads {
    /// This connection wants a snapshot; one that it is still being sent is not of use any more.
    pub(crate) fn want(&mut self, connection: ConnectionId) {
        self.forget(connection);
        self.waiting.insert(connection);
    }

    /// This connection wants none any more.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.waiting.remove(&connection);
        for shared in &mut self.alive {
            shared.takers.remove(&connection);
        }
        self.alive.retain(|shared| !shared.takers.is_empty());
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

    /// Those who have not taken theirs in time; they are forgotten.
    pub(crate) fn expire(&mut self, now_us: u64) -> Vec<ConnectionId> {
        let (late, alive) = std::mem::take(&mut self.alive)
            .into_iter()
            .partition(|shared: &Shared| now_us.saturating_sub(shared.made_us) > SNAPSHOT_LIFE_US);
        self.alive = alive;
        late.into_iter().flat_map(|shared| shared.takers).collect()
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
                    takers: BTreeSet::new(),
                });
                self.alive.len() - 1
            }
        };
        let takers = std::mem::take(&mut self.waiting);
        let shared = &mut self.alive[index];
        shared.takers.extend(&takers);
        Some((Arc::clone(&shared.frames), takers))
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
    use super::{ConnectionId, Downloads, SNAPSHOT_LIFE_US, snapshot_frames};

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
        assert_eq!(
            downloads.expire(3_001 + SNAPSHOT_LIFE_US),
            [connection(20), connection(30)],
        );
        downloads.want(connection(60));
        assert_eq!(give(&mut downloads, 6), 1);
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
