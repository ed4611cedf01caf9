//! What waits for one peer, within its bounds: what is taken in, what is dropped, what goes out next.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::Code;

use super::{Batch, End, Parcel, TOO_SLOW};

/// Bytes of turns or states that may wait for a peer.
pub(crate) const QUEUE_BYTES_MAX: usize = 256 * 1024;
/// How long the oldest of them may wait.
pub(crate) const QUEUE_AGE_MAX: Duration = Duration::from_secs(10);
/// Answers that may wait for a peer.
pub(crate) const ANSWERS_MAX: usize = 256;
/// Bytes of control messages that may wait for a peer, beside the largest of them: a few replies, not as many as it can ask
/// for, and the Desync of a large World.
pub(crate) const CONTROL_BYTES_MAX: usize = 128 * 1024;
/// Parts of a definition or snapshot that are given out before turns have their chance again.
const PARTS_AT_ONCE: usize = 2;
/// Turns, states and answers given out at once; what was given out cannot be dropped any more.
const BATCH_BYTES_MAX: usize = 32 * 1024;

const _: () = assert!(BATCH_BYTES_MAX < QUEUE_BYTES_MAX);

/// See [the module above](super).
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) control: VecDeque<Bytes>,
    pub(super) control_bytes: usize,
    /// Parts of the definition: nothing else can be used without them, so they are never dropped.
    pub(super) definition: VecDeque<Bytes>,
    pub(super) snapshot: Option<Progress>,
    /// Turns, states and answers.
    pub(super) items: VecDeque<Item>,
    pub(super) feed_bytes: usize,
    /// Answers that may leave only when a snapshot or a whole state has come.
    pub(super) held: VecDeque<Bytes>,
    /// What comes after a Welcome that has not come yet; as much as a location may be ahead of its journal.
    pub(super) early: Vec<Parcel>,
    /// Turns are wanted; else they are dropped until a snapshot (or a whole state) starts anew.
    pub(super) following: bool,
    pub(super) dropped: bool,
    pub(super) end: Option<End>,
}

#[derive(Debug)]
pub(super) struct Progress {
    tick: u64,
    parts: VecDeque<Bytes>,
}

#[derive(Debug)]
pub(super) struct Item {
    tick: u64,
    kind: ItemKind,
    queued: Instant,
    frame: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Answer,
    /// A turn, or a state that builds on the one before.
    Step,
    /// A state that stands by itself; not counted among the bytes that may wait, since there is one at most.
    Start,
}

impl Item {
    /// Bytes that count against [`QUEUE_BYTES_MAX`].
    fn feed_bytes(&self) -> usize {
        match self.kind {
            ItemKind::Step => self.frame.len(),
            ItemKind::Answer | ItemKind::Start => 0,
        }
    }

    fn is_answer(&self) -> bool {
        self.kind == ItemKind::Answer
    }
}

impl Queue {
    pub(super) fn push(&mut self, parcel: Parcel, now: Instant) {
        if self.end.is_some() {
            return;
        }
        match parcel {
            Parcel::Welcome { frame, .. }
            | Parcel::Control(frame)
            | Parcel::Redirect(frame)
            | Parcel::Clock(frame) => {
                self.push_control(frame);
            }
            Parcel::Reject { code, message } => self.finish(End::Reject(code, message)),
            Parcel::Close { code, message } => self.finish(End::Close(code, message)),
            Parcel::Answer { tick, frame } => self.push_answer(tick, frame, now),
            Parcel::Follow { missed } => {
                self.following = true;
                for (tick, frame) in missed {
                    self.push_feed(ItemKind::Step, tick, frame, now);
                }
            }
            Parcel::Definition(frames) => self.definition.extend(frames.iter().cloned()),
            Parcel::Snapshot { tick, frames } => self.start(tick, &frames),
            Parcel::Hold => self.hold(),
            Parcel::Turn { tick, frame } => self.push_feed(ItemKind::Step, tick, frame, now),
            Parcel::State { tick, whole, frames } => {
                let waits = self.items.iter().any(|item| item.kind == ItemKind::Start);
                let kind = if whole && !waits {
                    ItemKind::Start
                } else {
                    ItemKind::Step
                };
                self.following |= whole;
                self.push_feed(kind, tick, frames, now);
                if self.following {
                    for frame in std::mem::take(&mut self.held) {
                        self.push_answer(tick, frame, now);
                    }
                }
            }
        }
    }

    /// Keeps what belongs behind the Welcome.
    pub(super) fn push_early(&mut self, parcel: Parcel) {
        if matches!(parcel, Parcel::Clock(_)) {
            if self.early.is_empty() {
                return; // the Welcome comes with the clock of its time
            }
            self.early.retain(|early| !matches!(early, Parcel::Clock(_)));
        }
        self.early.push(parcel);
    }

    fn push_control(&mut self, frame: Bytes) {
        self.control_bytes += frame.len();
        self.control.push_back(frame);
        let largest = || self.control.iter().map(Bytes::len).max().unwrap_or_default();
        if self.control_bytes > CONTROL_BYTES_MAX && self.control_bytes - largest() > CONTROL_BYTES_MAX {
            self.finish(TOO_SLOW);
        }
    }

    fn push_answer(&mut self, tick: u64, frame: Bytes, now: Instant) {
        let in_snapshot = self
            .snapshot
            .as_ref()
            .is_some_and(|snapshot| tick < snapshot.tick);
        if in_snapshot || !self.following {
            self.held.push_back(frame);
        } else {
            self.items.push_back(Item {
                tick,
                kind: ItemKind::Answer,
                queued: now,
                frame,
            });
        }
        if self.held.len() + self.items.iter().filter(|item| item.is_answer()).count() > ANSWERS_MAX {
            self.finish(TOO_SLOW);
        }
    }

    fn push_feed(&mut self, kind: ItemKind, tick: u64, frame: Bytes, now: Instant) {
        if !self.following {
            return;
        }
        let item = Item {
            tick,
            kind,
            queued: now,
            frame,
        };
        let oldest = self.items.iter().find(|item| !item.is_answer());
        let too_old = oldest.is_some_and(|item| now.saturating_duration_since(item.queued) > QUEUE_AGE_MAX);
        // A single one is taken whatever its size: else nothing would ever come of it.
        let too_much = self.feed_bytes > 0 && self.feed_bytes + item.feed_bytes() > QUEUE_BYTES_MAX;
        if too_old || too_much {
            self.dropped = true;
            self.hold();
            return;
        }
        self.feed_bytes += item.feed_bytes();
        self.items.push_back(item);
    }

    /// Drops the turns that were not begun, and the snapshot that they belong to; none are taken until the next.
    fn hold(&mut self) {
        self.following = false;
        self.feed_bytes = 0;
        self.snapshot = None;
        let items = std::mem::take(&mut self.items);
        self.held
            .extend(items.into_iter().filter(Item::is_answer).map(|item| item.frame));
    }

    fn start(&mut self, tick: u64, frames: &[Bytes]) {
        self.following = true;
        for item in std::mem::take(&mut self.items) {
            if item.tick >= tick {
                self.items.push_back(item);
            } else if item.is_answer() {
                self.held.push_back(item.frame);
            } else {
                self.feed_bytes -= item.feed_bytes();
            }
        }
        let parts = frames.iter().cloned().collect();
        self.snapshot = Some(Progress { tick, parts });
    }

    /// Bytes of all that waits.
    pub(super) fn bytes(&self) -> usize {
        let parts = self.snapshot.iter().flat_map(|snapshot| &snapshot.parts);
        let items = self.items.iter().map(|item| &item.frame);
        let frames = self.definition.iter().chain(parts).chain(items).chain(&self.held);
        self.control_bytes + frames.map(Bytes::len).sum::<usize>()
    }

    /// What waits is the last that is sent.
    fn finish(&mut self, end: End) {
        self.end = Some(end);
    }

    pub(super) fn batch(&mut self) -> Option<Batch> {
        let mut batch = Batch {
            dropped: std::mem::take(&mut self.dropped),
            ..Batch::default()
        };
        batch.frames.extend(self.control.drain(..));
        self.control_bytes = 0;
        let mut room = PARTS_AT_ONCE;
        if !self.definition.is_empty() {
            let count = room.min(self.definition.len());
            batch.frames.extend(self.definition.drain(..count));
            batch.defined = self.definition.is_empty();
            room -= count;
        }
        if let Some(snapshot) = self.snapshot.as_mut().filter(|_| self.definition.is_empty()) {
            let count = room.min(snapshot.parts.len());
            batch.frames.extend(snapshot.parts.drain(..count));
            if snapshot.parts.is_empty() {
                batch.downloaded = Some(snapshot.tick);
                self.snapshot = None;
                batch.frames.extend(self.held.drain(..));
            }
        }
        let mut bytes = 0;
        while bytes < BATCH_BYTES_MAX
            && let Some(item) = self.items.pop_front()
        {
            bytes += item.frame.len();
            self.feed_bytes -= item.feed_bytes();
            batch.frames.push_back(item.frame);
        }
        if self.items.is_empty() {
            batch.end = self.end;
            if let Some(End::Close(Code::CLOSE_GOODBYE, _)) = self.end {
                // No snapshot comes any more that they would have to wait for, and nobody comes back for them.
                batch.frames.extend(self.held.drain(..));
            }
        }
        let something = batch.dropped || batch.end.is_some() || !batch.frames.is_empty();
        something.then_some(batch)
    }
}
