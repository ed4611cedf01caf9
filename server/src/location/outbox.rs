//! What a connection is about to be sent (spec 4.5): filled by the location's side without waiting, emptied by the
//! connection's task, bounded whatever the peer does.
//!
//! Control messages go first, then parts of a snapshot two at a time, then turns (or states) and answers in their order.
//! When the peer does not keep up the turns that were not begun are dropped; answers are kept until the snapshot that
//! contains them has left. Before its Welcome a peer gets nothing: the Welcome may have to wait for the disk longer than
//! what comes after it, so that is kept until then. A whole state is to those who watch what a snapshot is to those who simulate, so it may be
//! larger than the bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::{Code, ServerMessage, frame};
use sim::CharacterId;
use tokio::sync::Notify;

/// Bytes of turns or states that may wait for a peer.
pub(crate) const QUEUE_BYTES_MAX: usize = 256 * 1024;
/// How long the oldest of them may wait.
pub(crate) const QUEUE_AGE_MAX: Duration = Duration::from_secs(10);
/// Answers that may wait for a peer.
pub(crate) const ANSWERS_MAX: usize = 256;
/// Bytes of control messages that may wait for a peer: a few replies, not as many as it can ask for.
pub(crate) const CONTROL_BYTES_MAX: usize = 128 * 1024;
/// Parts of a snapshot that are given out before turns have their chance again.
const PARTS_AT_ONCE: usize = 2;
/// Turns, states and answers given out at once; what was given out cannot be dropped any more.
const BATCH_BYTES_MAX: usize = 32 * 1024;

const _: () = assert!(BATCH_BYTES_MAX < QUEUE_BYTES_MAX);

/// A definition, a snapshot, or both, as frames that many connections share.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    /// The snapshot's tick: turns before it are not wanted any more. `None`: a definition alone.
    pub(crate) snapshot_tick: Option<u64>,
    /// The frames of the definition, if it is wanted.
    pub(crate) definition: Option<Arc<[Bytes]>>,
    /// The frames of the snapshot.
    pub(crate) snapshot: Arc<[Bytes]>,
}

/// One thing for one connection.
#[derive(Clone, Debug)]
pub(crate) enum Parcel {
    /// Admitted, with these characters: the connection may speak from now on.
    Welcome {
        /// The frame.
        frame: Bytes,
        /// Its own characters.
        characters: Vec<CharacterId>,
    },
    /// Not admitted: the last frame.
    Reject {
        /// Why.
        code: Code,
        /// For people.
        message: &'static str,
    },
    /// Never dropped, of no particular order among turns.
    Control(Bytes),
    /// The clock has changed; of no use before the Welcome, which comes with the clock of its time.
    Clock(Bytes),
    /// Never dropped; not before the turn or snapshot that contains the command.
    Answer {
        /// The tick in which the command ran.
        tick: u64,
        /// The frame.
        frame: Bytes,
    },
    /// From the next turn on it follows; these are the ones it missed, in order.
    Follow {
        /// Tick and frame of each.
        missed: Vec<(u64, Bytes)>,
    },
    /// A large thing in parts; with a snapshot the turns from its tick on follow.
    Download(Download),
    /// A turn.
    Turn {
        /// Its tick.
        tick: u64,
        /// The frame.
        frame: Bytes,
    },
    /// A state and the events of its step.
    State {
        /// The step after which it is.
        tick: u64,
        /// It needs no other state before it.
        whole: bool,
        /// The frames, one after the other.
        frames: Bytes,
    },
    /// The last frame, after all that waits.
    Close {
        /// Why.
        code: Code,
        /// For people.
        message: &'static str,
    },
}

/// What the connection's task shall write next.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Frames in order.
    pub(crate) frames: VecDeque<Bytes>,
    /// The turns that waited have been dropped since the last batch.
    pub(crate) dropped: bool,
    /// With these frames the last part of the snapshot of this tick has been given out.
    pub(crate) downloaded: Option<u64>,
    /// After these frames the connection ends, for this reason.
    pub(crate) end: Option<End>,
}

/// Why a connection ends by the server's will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Not admitted.
    Reject(Code, &'static str),
    /// Was admitted.
    Close(Code, &'static str),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    /// Set by the Welcome.
    characters: OnceLock<Vec<CharacterId>>,
    admitted: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    control: VecDeque<Bytes>,
    control_bytes: usize,
    download: Option<Progress>,
    /// Turns, states and answers.
    items: VecDeque<Item>,
    feed_bytes: usize,
    /// Answers that may leave only when a snapshot or a whole state has come.
    held: VecDeque<Bytes>,
    /// What comes after a Welcome that has not come yet; as much as a location may be ahead of its journal.
    early: Vec<Parcel>,
    /// Turns are wanted; else they are dropped until a snapshot (or a whole state) starts anew.
    following: bool,
    dropped: bool,
    end: Option<End>,
}

#[derive(Debug)]
struct Progress {
    snapshot_tick: Option<u64>,
    parts: VecDeque<Bytes>,
}

#[derive(Debug)]
struct Item {
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

impl Outbox {
    /// An empty one; turns are not wanted yet.
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            characters: OnceLock::new(),
            admitted: Notify::new(),
        }
    }

    /// Takes a parcel, never waits.
    pub(crate) fn push(&self, parcel: Parcel, now: Instant) {
        let mut queue = self.lock();
        match &parcel {
            Parcel::Reject { .. } => queue.push(parcel, now),
            Parcel::Welcome { characters, .. } => {
                let characters = characters.clone();
                queue.push(parcel, now);
                for parcel in std::mem::take(&mut queue.early) {
                    queue.push(parcel, now);
                }
                // Whoever sees the characters finds the Welcome in the queue, and nothing gets before it.
                // A connection is admitted once; should it happen again, the first word stands.
                let _ = self.characters.set(characters);
                self.admitted.notify_one();
            }
            _ if self.characters().is_some() => queue.push(parcel, now),
            _ => queue.push_early(parcel),
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// The characters of the admitted session; `None` before the Welcome.
    pub(crate) fn characters(&self) -> Option<&[CharacterId]> {
        self.characters.get().map(Vec::as_slice)
    }

    /// Waits for the Welcome; one task only.
    pub(crate) async fn admitted(&self) {
        self.admitted.notified().await;
    }

    /// Answers a Ping; whether there is room for the answer.
    pub(crate) fn pong(&self, pong: &ServerMessage) -> bool {
        let frame = frame::encode_server(pong).expect("two numbers fit");
        self.push(Parcel::Control(frame), Instant::now());
        self.lock().end.is_none()
    }

    /// Waits until there is something to write. Cancelling it loses nothing.
    pub(crate) async fn batch(&self) -> Batch {
        loop {
            let filled = self.filled.notified();
            let batch = self.lock().batch();
            if let Some(batch) = batch {
                return batch;
            }
            filled.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, parcel: Parcel, now: Instant) {
        if self.end.is_some() {
            return;
        }
        match parcel {
            Parcel::Welcome { frame, .. } | Parcel::Control(frame) | Parcel::Clock(frame) => {
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
            Parcel::Download(download) => self.start(download),
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
    fn push_early(&mut self, parcel: Parcel) {
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
        if self.control_bytes > CONTROL_BYTES_MAX {
            self.finish(TOO_SLOW);
        }
    }

    fn push_answer(&mut self, tick: u64, frame: Bytes, now: Instant) {
        let in_snapshot = self
            .download
            .as_ref()
            .is_some_and(|progress| progress.snapshot_tick.is_some_and(|snapshot| tick < snapshot));
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
            self.drop_feed();
            return;
        }
        self.feed_bytes += item.feed_bytes();
        self.items.push_back(item);
    }

    /// Drops the turns that were not begun, and the snapshot that they belong to.
    fn drop_feed(&mut self) {
        self.following = false;
        self.dropped = true;
        self.feed_bytes = 0;
        self.download = None;
        let items = std::mem::take(&mut self.items);
        self.held
            .extend(items.into_iter().filter(Item::is_answer).map(|item| item.frame));
    }

    fn start(&mut self, download: Download) {
        let mut parts: VecDeque<Bytes> = download
            .definition
            .iter()
            .flat_map(|frames| frames.iter().cloned())
            .collect();
        parts.extend(download.snapshot.iter().cloned());
        if let Some(tick) = download.snapshot_tick {
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
        }
        self.download = Some(Progress {
            snapshot_tick: download.snapshot_tick,
            parts,
        });
    }

    /// What waits is the last that is sent.
    fn finish(&mut self, end: End) {
        self.end = Some(end);
    }

    fn batch(&mut self) -> Option<Batch> {
        let mut batch = Batch {
            dropped: std::mem::take(&mut self.dropped),
            ..Batch::default()
        };
        batch.frames.extend(self.control.drain(..));
        self.control_bytes = 0;
        if let Some(progress) = &mut self.download {
            let count = PARTS_AT_ONCE.min(progress.parts.len());
            batch.frames.extend(progress.parts.drain(..count));
            if progress.parts.is_empty() {
                batch.downloaded = progress.snapshot_tick;
                self.download = None;
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
        }
        let something = batch.dropped || batch.end.is_some() || !batch.frames.is_empty();
        something.then_some(batch)
    }
}

/// It asks for more than it reads.
pub(crate) const TOO_SLOW: End = End::Close(Code::CLOSE_SLOW, "what it is sent is not read");

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn turn(tick: u64) -> Parcel {
        let frame = frame(&format!("turn {tick}"));
        Parcel::Turn { tick, frame }
    }

    fn answer(tick: u64) -> Parcel {
        let frame = frame(&format!("answer {tick}"));
        Parcel::Answer { tick, frame }
    }

    fn download(tick: u64, parts: usize) -> Parcel {
        let part = |part| frame(&format!("snapshot {tick}.{part}"));
        Parcel::Download(Download {
            snapshot_tick: Some(tick),
            definition: None,
            snapshot: (0..parts).map(part).collect(),
        })
    }

    /// Pushes all at one time; what comes out batch by batch until nothing does.
    fn batches(queue: &mut Queue, parcels: impl IntoIterator<Item = Parcel>) -> Vec<Vec<String>> {
        let now = Instant::now();
        for parcel in parcels {
            queue.push(parcel, now);
        }
        std::iter::from_fn(|| queue.batch())
            .take_while(|batch| batch.end.is_none())
            .map(|batch| {
                let text = |frame: &Bytes| String::from_utf8_lossy(frame).into_owned();
                batch.frames.iter().map(text).collect()
            })
            .collect()
    }

    #[test]
    fn turns_go_out_between_the_parts_of_a_snapshot() {
        let mut queue = Queue::default();
        let parcels = [
            Parcel::Control(frame("welcome")),
            turn(4), // before it follows
            download(5, 5),
            turn(5),
            answer(4),
            turn(6),
            answer(6),
        ];
        assert_eq!(
            batches(&mut queue, parcels),
            [
                vec![
                    "welcome",
                    "snapshot 5.0",
                    "snapshot 5.1",
                    "turn 5",
                    "turn 6",
                    "answer 6"
                ],
                vec!["snapshot 5.2", "snapshot 5.3"],
                // What it answers is in the snapshot, so it comes after it.
                vec!["snapshot 5.4", "answer 4"],
            ]
        );
    }

    #[test]
    fn a_new_snapshot_makes_waiting_turns_superfluous() {
        let mut queue = Queue::default();
        let missed = vec![(1, frame("turn 1"))];
        let parcels = [
            Parcel::Follow { missed },
            turn(2),
            answer(2),
            download(3, 1),
            turn(3),
            answer(3),
        ];
        assert_eq!(
            batches(&mut queue, parcels),
            [["snapshot 3.0", "answer 2", "turn 3", "answer 3"]]
        );
        assert_eq!(queue.feed_bytes, 0);
    }

    #[test]
    fn a_full_queue_is_dropped_but_its_answers_are_not() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.push(Parcel::Follow { missed: Vec::new() }, now);
        queue.push(answer(0), now);
        for tick in 1..=5 {
            let frame = Bytes::from(vec![0; QUEUE_BYTES_MAX / 4]);
            queue.push(Parcel::Turn { tick, frame }, now);
        }
        assert_eq!(queue.feed_bytes, 0, "the fifth was too much");
        queue.push(turn(6), now);
        queue.push(answer(6), now);
        queue.push(Parcel::Control(frame("clock")), now);
        let batch = queue.batch().expect("a control message");
        assert!(batch.dropped, "it is told once");
        assert_eq!(batch.frames, [frame("clock")]);
        assert_eq!(
            batches(&mut queue, [download(7, 1), turn(7)]),
            [["snapshot 7.0", "answer 0", "answer 6", "turn 7"]]
        );
    }

    #[test]
    fn turns_that_waited_too_long_are_dropped() {
        let mut queue = Queue::default();
        let start = Instant::now();
        queue.push(Parcel::Follow { missed: Vec::new() }, start);
        queue.push(turn(1), start);
        queue.push(turn(2), start + QUEUE_AGE_MAX);
        assert!(!queue.dropped);
        queue.push(turn(3), start + QUEUE_AGE_MAX + Duration::from_millis(1));
        assert!(queue.dropped);
        assert!(queue.items.is_empty());
    }

    #[test]
    fn states_start_anew_with_a_whole_one() {
        let mut queue = Queue::default();
        let state = |tick: u64, whole: bool| Parcel::State {
            tick,
            whole,
            frames: frame(&format!("state {tick}")),
        };
        let parcels = [
            state(1, false),
            answer(1),
            state(2, true),
            state(3, false),
            answer(3),
        ];
        assert_eq!(
            batches(&mut queue, parcels),
            [["state 2", "answer 1", "state 3", "answer 3"]]
        );
    }

    #[test]
    fn a_large_world_can_be_watched() {
        let now = Instant::now();
        let state = |tick: u64, whole: bool, bytes: usize| Parcel::State {
            tick,
            whole,
            frames: Bytes::from(vec![0; bytes]),
        };
        let check = |states: &[Parcel], expected: usize| {
            let mut queue = Queue::default();
            for state in states {
                queue.push(state.clone(), now);
            }
            let frames = std::iter::from_fn(|| queue.batch()).map(|batch| batch.frames.len());
            assert_eq!(frames.sum::<usize>(), expected, "of {} states", states.len());
        };
        let whole = state(1, true, 4 * QUEUE_BYTES_MAX);
        check(&[whole.clone(), state(2, false, QUEUE_BYTES_MAX)], 2);
        check(&[whole.clone(), state(2, false, QUEUE_BYTES_MAX + 1)], 2);
        let more = [state(2, false, QUEUE_BYTES_MAX), state(3, false, 1)];
        check(&[&[whole.clone()][..], &more].concat(), 0);
        // Other views while the first still waits.
        let again = state(2, true, QUEUE_BYTES_MAX);
        check(&[whole.clone(), again.clone()], 2);
        check(&[whole, again.clone(), again], 0);
    }

    #[test]
    fn nothing_grows_without_end() {
        let check = |parcel: Parcel| {
            let mut queue = Queue::default();
            queue.push(Parcel::Follow { missed: Vec::new() }, Instant::now());
            for _ in 0..CONTROL_BYTES_MAX {
                queue.push(parcel.clone(), Instant::now());
            }
            assert_eq!(queue.end, Some(TOO_SLOW), "for {parcel:?}");
        };
        check(Parcel::Control(frame("pong")));
        check(answer(1));
    }

    #[test]
    fn nothing_stands_before_the_welcome_and_nothing_behind_it_is_lost() {
        let outbox = Outbox::new();
        for parcel in [
            Parcel::Clock(frame("too early")),
            Parcel::Control(frame("clock of the welcome")),
            download(7, 1),
            turn(7),
            Parcel::Clock(frame("overtaken")),
            Parcel::Clock(frame("clock")),
            turn(8),
        ] {
            outbox.push(parcel, Instant::now());
        }
        assert!(outbox.lock().batch().is_none());
        let (frame, characters) = (frame("welcome"), Vec::new());
        outbox.push(Parcel::Welcome { frame, characters }, Instant::now());
        outbox.push(answer(7), Instant::now());
        let batch = outbox.lock().batch().expect("frames");
        assert_eq!(
            batch.frames,
            [
                "welcome",
                "clock of the welcome",
                "clock",
                "snapshot 7.0",
                "turn 7",
                "turn 8",
                "answer 7"
            ]
        );
    }

    #[test]
    fn whoever_is_not_let_in_is_told_without_a_welcome() {
        let outbox = Outbox::new();
        let (code, message) = (Code::REJECT_STORAGE, "full");
        outbox.push(Parcel::Reject { code, message }, Instant::now());
        let batch = outbox.lock().batch().expect("an end");
        assert_eq!(batch.end, Some(End::Reject(code, message)));
    }

    #[test]
    fn whoever_speaks_at_once_is_answered_after_the_welcome() {
        for nonce in 0..1_000 {
            let outbox = Outbox::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while outbox.characters().is_none() {
                        std::hint::spin_loop();
                    }
                    outbox.pong(&ServerMessage::Pong { nonce, server_us: 0 });
                });
                let (frame, characters) = (frame("welcome"), Vec::new());
                outbox.push(Parcel::Welcome { frame, characters }, Instant::now());
            });
            let batch = outbox.lock().batch().expect("two frames");
            assert_eq!(batch.frames.len(), 2);
            assert_eq!(batch.frames[0], frame("welcome"));
        }
    }

    #[test]
    fn the_last_frame_comes_last() {
        let mut queue = Queue::default();
        queue.push(Parcel::Follow { missed: Vec::new() }, Instant::now());
        let (code, message) = (Code::CLOSE_STOPPING, "");
        queue.push(turn(1), Instant::now());
        queue.push(Parcel::Close { code, message }, Instant::now());
        queue.push(turn(2), Instant::now());
        let batch = queue.batch().expect("a turn and the end");
        assert_eq!(batch.frames, [frame("turn 1")]);
        assert_eq!(batch.end, Some(End::Close(code, message)));
    }
}
