//! What a connection is about to be sent (spec 4.5): filled by the location's side without waiting, emptied by the
//! connection's task, bounded whatever the peer does.
//!
//! Control messages go first, then parts of the definition and of a snapshot two at a time, then turns (or states) and
//! answers in their order. When the peer does not keep up the turns that were not begun are dropped, and the snapshot they
//! follow; the definition goes on, and answers are kept until the snapshot that contains them has left. Before its Welcome a
//! peer gets nothing: the Welcome may have to wait for the disk longer than what comes after it, so that is kept until then. A
//! whole state is to those who watch what a snapshot is to those who simulate, so it may be larger than the bound.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use protocol::{Code, ServerMessage, frame};
use sim::CharacterId;
use tokio::sync::Notify;

pub(crate) use self::queue::QUEUE_BYTES_MAX;
use self::queue::Queue;

/// One thing for one connection.
#[derive(Clone, Debug)]
pub(crate) enum Parcel {
    /// Admitted, with these characters: the connection may speak from now on.
    Welcome {
        /// The frame.
        frame: Bytes,
        /// The number of its session.
        session: u64,
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
    /// The way to another place; not before what the session did here is kept.
    Redirect(Bytes),
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
    /// The definition, in frames that many connections share; before any snapshot.
    Definition(Arc<[Bytes]>),
    /// A snapshot, in frames that many connections share, instead of one that has not left; the turns from its tick on
    /// follow.
    Snapshot {
        /// Turns before it are not wanted any more.
        tick: u64,
        /// The frames.
        frames: Arc<[Bytes]>,
    },
    /// The snapshot has grown old behind the definition: neither it nor turns until the next.
    Hold,
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
    /// With these frames the last part of the definition has been given out.
    pub(crate) defined: bool,
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
    session: OnceLock<u64>,
    admitted: Notify,
    recognised: Notify,
}

impl Outbox {
    /// An empty one; turns are not wanted yet.
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            characters: OnceLock::new(),
            session: OnceLock::new(),
            admitted: Notify::new(),
            recognised: Notify::new(),
        }
    }

    /// Takes a parcel, never waits.
    pub(crate) fn push(&self, parcel: Parcel, now: Instant) {
        let mut queue = self.lock();
        match &parcel {
            Parcel::Reject { .. } => queue.push(parcel, now),
            Parcel::Welcome {
                session, characters, ..
            } => {
                let (session, characters) = (*session, characters.clone());
                queue.push(parcel, now);
                for parcel in std::mem::take(&mut queue.early) {
                    queue.push(parcel, now);
                }
                // Whoever sees the characters finds the Welcome in the queue, and nothing gets before it.
                // A connection is admitted once; should it happen again, the first word stands.
                let _ = self.characters.set(characters);
                let _ = self.session.set(session);
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

    /// The number of the admitted session; `None` before the Welcome.
    pub(crate) fn session(&self) -> Option<u64> {
        self.session.get().copied()
    }

    /// Bytes that wait for the peer; a snapshot's count with every connection that it is for.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.lock().bytes() as u64
    }

    /// The Welcome has been written.
    pub(crate) fn welcomed(&self) {
        self.admitted.notify_one();
    }

    /// Waits until the Welcome has been written; one task only.
    pub(crate) async fn admitted(&self) {
        self.admitted.notified().await;
    }

    /// The location has found the session that the peer resumes; its Welcome may still have to wait.
    pub(crate) fn recognise(&self) {
        self.recognised.notify_one();
    }

    /// Waits for [`Outbox::recognise`]; one task only.
    pub(crate) async fn recognised(&self) {
        self.recognised.notified().await;
    }

    /// Answers a Ping, unless this connection ends anyway; whether it has not asked for more than it reads.
    pub(crate) fn pong(&self, pong: &ServerMessage) -> bool {
        let frame = frame::encode_server(pong).expect("two numbers fit");
        self.push(Parcel::Control(frame), Instant::now());
        self.lock().end != Some(TOO_SLOW)
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

/// It asks for more than it reads.
pub(crate) const TOO_SLOW: End = End::Close(Code::CLOSE_SLOW, "what it is sent is not read");
