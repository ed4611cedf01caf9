//! What waits for the journal, and how it leaves then; the table of [`super`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use protocol::Code;

use super::micros;
use crate::location::ConnectionId;
use crate::location::operator::{Reply, ReplyTo};
use crate::location::outbox::{Outbox, Parcel};

/// What waits for the journal.
#[derive(Default)]
pub(super) struct Release {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) mark: Mark,
}

/// How far the location is known to be when something has left.
#[derive(Default)]
pub(super) enum Mark {
    #[default]
    None,
    /// This turn has been shown to everybody; how long it took up to the journal.
    Shown { tick: u64, took: Duration },
    /// The answers of this turn have left.
    Answered { tick: u64 },
}

pub(super) enum Delivery {
    One(Arc<Outbox>, Parcel),
    Reply(ReplyTo, Reply),
    All {
        to: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
        tick: u64,
        frame: Bytes,
    },
}

/// When something may leave; see the module.
pub(super) enum Leaves {
    AtOnce,
    WithWrite,
    WithSync,
}

pub(super) fn leaves(parcel: &Parcel) -> Leaves {
    match parcel {
        Parcel::Reject { .. } | Parcel::Control(_) | Parcel::Clock(_) => Leaves::AtOnce,
        Parcel::Turn { .. }
        | Parcel::State { .. }
        | Parcel::Follow { .. }
        | Parcel::Definition(_)
        | Parcel::Snapshot { .. }
        | Parcel::Hold => Leaves::WithWrite,
        Parcel::Answer { .. } | Parcel::Welcome { .. } | Parcel::Redirect(_) | Parcel::Close { .. } => {
            Leaves::WithSync
        }
    }
}

/// Nothing more can be told of the World; not to leave people waiting is no promise.
pub(super) fn give_up<'a>(outboxes: impl Iterator<Item = &'a Arc<Outbox>>, message: &'static str) {
    for outbox in outboxes {
        let parcel = match outbox.characters() {
            Some(_) => Parcel::Close {
                code: Code::CLOSE_LOCATION_FAILED,
                message,
            },
            None => Parcel::Reject {
                code: Code::REJECT_STORAGE,
                message,
            },
        };
        outbox.push(parcel, Instant::now());
    }
}

/// What the journal's thread knows.
pub(super) struct Delivered {
    /// The turn that is shown next.
    pub(super) shown: AtomicU64,
    /// The turn whose answers leave next.
    pub(super) answered: AtomicU64,
    pub(super) times: Mutex<Times>,
    pub(super) period_us: u64,
}

pub(super) struct Times {
    pub(super) overruns: u64,
    pub(super) tick_us: Histogram<u64>,
}

impl Delivered {
    /// What waited may leave.
    pub(super) fn deliver(&self, release: Release) {
        let started = Instant::now();
        for delivery in release.deliveries {
            match delivery {
                Delivery::One(outbox, parcel) => outbox.push(parcel, started),
                Delivery::Reply(reply_to, reply) => {
                    // Whoever asked may have gone.
                    let _ = reply_to.0.send(reply);
                }
                Delivery::All { to, tick, frame } => {
                    for (_, outbox) in to.iter() {
                        let frame = frame.clone();
                        outbox.push(Parcel::Turn { tick, frame }, started);
                    }
                }
            }
        }
        match release.mark {
            Mark::None => {}
            Mark::Answered { tick } => self.answered.store(tick + 1, Ordering::Relaxed),
            Mark::Shown { tick, took } => {
                self.shown.store(tick + 1, Ordering::Relaxed);
                let took_us = micros(took + started.elapsed());
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                times.overruns += u64::from(took_us > self.period_us);
                times.tick_us.saturating_record(took_us);
            }
        }
    }
}
