//! A location's own thread: its steady clock, its one place of waiting, and the way of what it puts out, through the
//! journal, to the connections. It waits for no socket.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use sim::Definition;
use tokio::sync::OwnedSemaphorePermit;

use super::history::Recomputation;
use super::outbox::{Outbox, Parcel};
use super::{ConnectionId, Counters, Input, Location, Output, Start, recompute};
use crate::journal::record::{CloseReason, Keyframe, Record};
use crate::journal::{Failure, JournalThread, Writer};

/// Inputs taken before the clock is looked at again.
const INPUTS_AT_ONCE: usize = 1_024;
/// How far the location may be ahead of what is written, seconds; past that its clock holds (spec 5.6).
const AHEAD_SECONDS_MAX: u64 = 2;
/// Longest time of a turn that the summary tells from longer ones, µs.
const TICK_US_MAX: u64 = 600_000_000;
/// How often a clock that holds is looked at.
const HELD_POLL: Duration = Duration::from_millis(10);

/// What a connection sends to its location.
pub(crate) struct Envelope {
    /// What happened.
    pub(crate) input: Input,
    /// With [`Input::Enter`]: where the replies go.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Given back when the location has taken the input: so a connection is read only as fast as it is understood.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// How connections reach a location.
#[derive(Clone)]
pub(crate) struct Handle {
    inputs: Sender<Envelope>,
    clock_frame: Arc<Mutex<Bytes>>,
    epoch: Instant,
}

impl Handle {
    /// Hands something over; lost if the location has ended.
    pub(crate) fn send(&self, input: Input) {
        self.send_envelope(Envelope {
            input,
            outbox: None,
            permit: None,
        });
    }

    /// Hands something over; lost if the location has ended.
    pub(crate) fn send_envelope(&self, envelope: Envelope) {
        // A location that has ended closes its connections: whoever sends will see that.
        let _ = self.inputs.send(envelope);
    }

    /// The Clock message as it is now.
    pub(crate) fn clock_frame(&self) -> Bytes {
        self.clock_frame
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A handle without a location: what is sent to it comes out of the receiver.
    #[cfg(test)]
    pub(crate) fn for_test() -> (Self, Receiver<Envelope>) {
        let (inputs, receiver) = mpsc::channel();
        let handle = Self {
            inputs,
            clock_frame: Arc::default(),
            epoch: Instant::now(),
        };
        (handle, receiver)
    }

    /// Microseconds on the daemon's monotonic clock.
    pub(crate) fn now_us(&self) -> u64 {
        micros(self.epoch.elapsed())
    }
}

/// What a location's thread needs.
pub(crate) struct Settings {
    /// The daemon's start: the zero of its monotonic clock.
    pub(crate) epoch: Instant,
    /// Stop by itself after so many ticks.
    pub(crate) ticks_max: Option<u64>,
}

/// What a location has done, for the summary.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was counted.
    pub(crate) counters: Counters,
    /// Turns whose step and broadcast took longer than the period.
    pub(crate) overruns: u64,
    /// Step and broadcast of each turn, µs.
    pub(crate) tick_us: Histogram<u64>,
    /// The last turn that ran, and the digest after it; `None`: none ever did.
    pub(crate) last_tick: Option<u64>,
    /// Digest of the World.
    pub(crate) digest: u64,
}

/// Starts the thread of a location. It ends after [`Input::Stop`], after its last tick, or when its journal cannot be
/// kept; `ended` is called then.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn spawn(
    start: Start,
    journal: Writer,
    settings: Settings,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<(Handle, JoinHandle<Result<Report, Failure>>)> {
    let (inputs, queue) = mpsc::channel();
    let definition = start.world.definition().clone();
    let period_us = 1_000_000 / u64::from(definition.tick_rate());
    let location = Location::new(start, micros(settings.epoch.elapsed()));
    let handle = Handle {
        inputs: inputs.clone(),
        clock_frame: Arc::new(Mutex::new(location.clock_frame())),
        epoch: settings.epoch,
    };
    let delivered = Arc::new(Delivered {
        next_tick: AtomicU64::new(location.next_tick()),
        times: Mutex::new(Times {
            overruns: 0,
            tick_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
        }),
        period_us,
    });
    let shared = Arc::clone(&delivered);
    let journal = JournalThread::spawn(
        journal,
        move |release: Release| shared.deliver(release),
        |failure| tracing::error!(%failure, "the journal cannot be kept"),
    )?;
    let task = Task {
        recomputer: spawn_recomputer(definition.clone(), inputs)?,
        ahead_ticks_max: AHEAD_SECONDS_MAX * u64::from(definition.tick_rate()),
        location,
        queue,
        journal,
        delivered,
        clock_frame: Arc::clone(&handle.clock_frame),
        outboxes: BTreeMap::new(),
        followers: Arc::new(Vec::new()),
        outputs: Vec::new(),
        settings,
    };
    let thread = thread::Builder::new()
        .name(format!("location-{}", definition.name()))
        .spawn(move || {
            let result = task.run();
            ended();
            result
        })?;
    Ok((handle, thread))
}

struct Task {
    location: Location,
    queue: Receiver<Envelope>,
    journal: JournalThread<Release>,
    delivered: Arc<Delivered>,
    recomputer: Sender<Recomputation>,
    clock_frame: Arc<Mutex<Bytes>>,
    outboxes: BTreeMap<ConnectionId, Arc<Outbox>>,
    /// Shared with the broadcasts that are under way, copied when somebody comes or goes.
    followers: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
    outputs: Vec<Output>,
    ahead_ticks_max: u64,
    settings: Settings,
}

/// What waits for a write.
struct Release {
    deliveries: Vec<Delivery>,
    /// With a turn: its tick, and how long it took so far.
    turn: Option<(u64, Duration)>,
}

enum Delivery {
    One(Arc<Outbox>, Parcel),
    All {
        to: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
        tick: u64,
        frame: Bytes,
    },
}

impl Task {
    fn run(mut self) -> Result<Report, Failure> {
        let ended = self.run_turns().and_then(|()| self.tell_all());
        let (next_tick, digest) = (self.location.next_tick(), self.location.digest());
        // Closing tells also why the journal could not be kept before.
        self.journal.close(next_tick, digest, CloseReason::Stopped)?;
        ended?;
        let times = self
            .delivered
            .times
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(Report {
            counters: self.location.counters(),
            overruns: times.overruns,
            tick_us: times.tick_us.clone(),
            last_tick: next_tick.checked_sub(1),
            digest,
        })
    }

    /// Returns when the daemon is to end.
    fn run_turns(&mut self) -> Result<(), Failure> {
        let first_tick = self.location.next_tick();
        let last_tick = self
            .settings
            .ticks_max
            .map(|ticks| first_tick.saturating_add(ticks));
        loop {
            let stop = self.take_inputs()?;
            if stop || last_tick.is_some_and(|last| self.location.next_tick() >= last) {
                return Ok(());
            }
            if self.now_us() >= self.location.due_us() && !self.is_too_far_ahead() {
                let started = Instant::now();
                let tick = self.location.next_tick();
                self.location.close_turn(self.now_us(), &mut self.outputs);
                self.perform(Some((tick, started)))?;
            }
        }
    }

    /// The daemon ends: everybody is told.
    fn tell_all(&mut self) -> Result<(), Failure> {
        let now_us = self.now_us();
        self.location.take(Input::Stop, now_us, &mut self.outputs);
        self.perform(None)
    }

    /// Waits until something comes or the turn is due, and takes what is there. Returns whether the daemon ends.
    fn take_inputs(&mut self) -> Result<bool, Failure> {
        let until_due = self.location.due_us().saturating_sub(self.now_us());
        let wait = if self.is_too_far_ahead() {
            HELD_POLL
        } else {
            Duration::from_micros(until_due)
        };
        let mut next = match self.queue.recv_timeout(wait) {
            Ok(envelope) => Some(envelope),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        };
        let mut taken = 0;
        while let Some(envelope) = next {
            if matches!(envelope.input, Input::Stop) {
                self.perform(None)?;
                return Ok(true);
            }
            self.take(envelope);
            taken += 1;
            next = if taken < INPUTS_AT_ONCE {
                self.queue.try_recv().ok()
            } else {
                None
            };
        }
        self.perform(None)?;
        Ok(false)
    }

    fn take(&mut self, envelope: Envelope) {
        if let (Input::Enter { connection, .. }, Some(outbox)) = (&envelope.input, envelope.outbox) {
            self.outboxes.insert(*connection, outbox);
        }
        let now_us = self.now_us();
        self.location.take(envelope.input, now_us, &mut self.outputs);
        drop(envelope.permit);
    }

    /// Does what the location has put out: records and what waits for them go to the journal together.
    fn perform(&mut self, turn: Option<(u64, Instant)>) -> Result<(), Failure> {
        let mut records = Vec::new();
        let mut deliveries = Vec::new();
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Record(record) => records.push(record),
                Output::Keyframe {
                    tick,
                    digest,
                    snapshot,
                    sessions,
                } => match Keyframe::new(tick, digest, snapshot) {
                    Ok(keyframe) => records.extend([Record::Keyframe(keyframe), Record::Sessions(sessions)]),
                    // The journal goes on from an earlier keyframe.
                    Err(error) => tracing::error!(tick, %error, "no keyframe"),
                },
                Output::Follow(connection) => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        Arc::make_mut(&mut self.followers).push((connection, Arc::clone(outbox)));
                    }
                }
                Output::Broadcast { tick, frame } => deliveries.push(Delivery::All {
                    to: Arc::clone(&self.followers),
                    tick,
                    frame,
                }),
                Output::Send(connection, parcel) => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        deliveries.push(Delivery::One(Arc::clone(outbox), parcel));
                    }
                }
                Output::Clock(frame) => {
                    for outbox in self.outboxes.values() {
                        deliveries.push(Delivery::One(Arc::clone(outbox), Parcel::Clock(frame.clone())));
                    }
                    *self.clock_frame.lock().unwrap_or_else(PoisonError::into_inner) = frame;
                }
                Output::Forget(connection) => {
                    if self.outboxes.remove(&connection).is_some() {
                        let follows = self.followers.iter().any(|(follower, _)| *follower == connection);
                        if follows {
                            Arc::make_mut(&mut self.followers)
                                .retain(|(follower, _)| *follower != connection);
                        }
                    }
                }
                Output::Recompute(recomputation) => {
                    // It ends only with this thread.
                    let _ = self.recomputer.send(recomputation);
                }
            }
        }
        if records.is_empty() && deliveries.is_empty() {
            return Ok(());
        }
        let turn = turn.map(|(tick, started)| (tick, started.elapsed()));
        self.journal.append(records, Release { deliveries, turn })
    }

    fn is_too_far_ahead(&self) -> bool {
        let written = self.delivered.next_tick.load(Ordering::Relaxed);
        self.location.next_tick().saturating_sub(written) > self.ahead_ticks_max
    }

    fn now_us(&self) -> u64 {
        micros(self.settings.epoch.elapsed())
    }
}

/// What the journal's thread knows.
struct Delivered {
    /// The turn that is delivered next.
    next_tick: AtomicU64,
    times: Mutex<Times>,
    period_us: u64,
}

struct Times {
    overruns: u64,
    tick_us: Histogram<u64>,
}

impl Delivered {
    /// What waited is written: it may leave.
    fn deliver(&self, release: Release) {
        let started = Instant::now();
        for delivery in release.deliveries {
            match delivery {
                Delivery::One(outbox, parcel) => outbox.push(parcel, started),
                Delivery::All { to, tick, frame } => {
                    for (_, outbox) in to.iter() {
                        let frame = frame.clone();
                        outbox.push(Parcel::Turn { tick, frame }, started);
                    }
                }
            }
        }
        if let Some((tick, step)) = release.turn {
            self.next_tick.store(tick + 1, Ordering::Relaxed);
            let took_us = micros(step + started.elapsed());
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.overruns += u64::from(took_us > self.period_us);
            times.tick_us.saturating_record(took_us);
        }
    }
}

/// Starts the thread that computes the parts' digests of earlier ticks, one at a time.
fn spawn_recomputer(definition: Definition, inputs: Sender<Envelope>) -> io::Result<Sender<Recomputation>> {
    let (sender, wanted) = mpsc::channel::<Recomputation>();
    thread::Builder::new()
        .name("recompute".to_owned())
        .spawn(move || {
            while let Ok(recomputation) = wanted.recv() {
                let input = Input::Sections {
                    tick: recomputation.tick,
                    sections: recompute(&definition, &recomputation).map(Box::new),
                };
                let envelope = Envelope {
                    input,
                    outbox: None,
                    permit: None,
                };
                if inputs.send(envelope).is_err() {
                    break;
                }
            }
        })?;
    Ok(sender)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
