//! A location's own thread: its steady clock, its one place of waiting, and the way of what it puts out, through the
//! journal, to the connections. It waits for no socket and for no disk.
//!
//! What leaves when (spec 4.2, 5.6):
//!
//! | what | leaves |
//! | --- | --- |
//! | Reject, Refused, Clock and other control messages: they tell of nothing recorded | at once |
//! | turns, states, snapshots and missed turns | with the turn before them: once it is written (`tick`: synced) |
//! | Accepted and Welcome, and Close so that it comes after them | once what is before them is synced (`os`: written) |
//!
//! An [`Outbox`] gives out nothing before its Welcome, so turns that overtake a Welcome here wait for it there.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use protocol::Code;
use protocol::message::Short;
use sim::Command;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::investigator::{self, Folder, Question};
use super::operator::{Asked, Reply, ReplyTo, Request};
use super::outbox::{Outbox, Parcel};
use super::status::{self, Classes, Status};
use super::{ConnectionId, Counters, Input, Location, Output, Start, Storage};
use crate::journal::record::{CloseReason, Keyframe, Note, Record, unix_ms};
use crate::journal::statistics::{self, Statistics};
use crate::journal::{Failure, JournalThread, Policy, Waiting, Writer};

/// Inputs taken before the clock is looked at again.
const INPUTS_AT_ONCE: usize = 1_024;
/// Longest time of a turn that the summary tells from longer ones, µs.
pub(crate) const TICK_US_MAX: u64 = 600_000_000;
/// How often the clock of a location is looked at that is paused, or where nobody is.
const STANDING_POLL: Duration = Duration::from_millis(500);
const SLEEPING_POLL: Duration = Duration::from_secs(5);
/// How often what takes longer to find out is written into the status.
const STATUS_EVERY: Duration = Duration::from_secs(1);
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
    status: Arc<Mutex<Status>>,
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

    /// How the location stands.
    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for something and waits for the answer; `None`: there is nobody any more who could answer.
    pub(crate) async fn ask(&self, actor: Short, request: Request) -> Option<Reply> {
        let (sender, answer) = oneshot::channel();
        let reply_to = ReplyTo(sender);
        self.send(Input::Operator(Box::new(Asked {
            actor,
            request,
            reply_to,
        })));
        answer.await.ok()
    }

    /// A handle without a location: what is sent to it comes out of the receiver.
    #[cfg(test)]
    pub(crate) fn for_test() -> (Self, Receiver<Envelope>) {
        let (inputs, receiver) = mpsc::channel();
        let handle = Self {
            inputs,
            clock_frame: Arc::default(),
            status: Arc::default(),
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
    /// How far the location may be ahead of what may leave; past that its clock holds (spec 5.6).
    pub(crate) ahead_max: Duration,
    /// Where Worlds that differ are kept; `None`: nowhere.
    pub(crate) reports: Option<Folder>,
}

/// Where the records go.
pub(crate) enum Journal {
    /// Into this segment and those that follow it.
    Kept(Box<Writer>, Policy),
    /// Nowhere: what a journal costs is measured against this.
    Null,
}

/// What a location has done, for the summary.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// What was counted.
    pub(crate) counters: Counters,
    /// Turns whose step and broadcast took longer than the period.
    pub(crate) overruns: u64,
    /// Step and broadcast of each turn, µs.
    pub(crate) tick_us: Histogram<u64>,
    /// Of that, what the location's own thread did: everything up to the hand-over to the journal, µs.
    pub(crate) turn_us: Histogram<u64>,
    /// What the journal did.
    pub(crate) journal: Statistics,
    /// The last turn that ran, and the digest after it; `None`: none ever did.
    pub(crate) last_tick: Option<u64>,
    /// Digest of the World.
    pub(crate) digest: u64,
}

impl Report {
    /// Of a location that does not run: step `tick` would come next.
    pub(crate) fn nothing(tick: u64, digest: u64) -> Self {
        let histogram =
            || Histogram::new_with_bounds(1, TICK_US_MAX, 3).expect("constant bounds that are allowed");
        Self {
            counters: Counters::default(),
            overruns: 0,
            tick_us: histogram(),
            turn_us: histogram(),
            journal: Statistics::new().expect("constant bounds that are allowed"),
            last_tick: tick.checked_sub(1),
            digest,
        }
    }

    /// Adds what another location has done.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.overruns += other.overruns;
        self.tick_us += &other.tick_us;
        self.turn_us += &other.turn_us;
        self.journal.add(&other.journal);
    }
}

/// Why a location has ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// Its journal cannot be kept: the disk's failure.
    #[error(transparent)]
    Journal(#[from] Failure),
    /// The system gives no thread, or no memory to count in.
    #[error("no thread for the location: {0}")]
    System(#[from] io::Error),
    /// A defect: what was panicked with. Its connections have been told; nothing of the turn that failed is in the journal.
    #[error("a defect: {0}")]
    Panicked(String),
}

/// The way to a location, before it runs: what is sent meanwhile waits in the queue.
pub(crate) fn channel(epoch: Instant) -> (Handle, Queue) {
    let (inputs, queue) = mpsc::channel();
    let handle = Handle {
        inputs,
        clock_frame: Arc::default(),
        status: Arc::default(),
        epoch,
    };
    (handle, Queue(queue))
}

/// What waits for a location, also while it is being started again.
pub(crate) struct Queue(Receiver<Envelope>);

impl Queue {
    /// Waits for the next thing; `None`: nobody can send any more.
    pub(crate) fn next(&self) -> Option<Envelope> {
        self.0.recv().ok()
    }
}

/// Starts a thread that [`run`]s a location; `ended` is called at its end.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn spawn(
    start: Start,
    journal: Journal,
    settings: Settings,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<(Handle, JoinHandle<Result<Report, Failed>>)> {
    let (handle, queue) = channel(settings.epoch);
    let inside = handle.clone();
    let thread = thread::Builder::new()
        .name(format!("location-{}", start.world.definition().name()))
        .spawn(move || {
            let result = run(start, journal, settings, &inside, &queue);
            ended();
            result
        })?;
    Ok((handle, thread))
}

/// Runs a location on this thread. It ends after [`Input::Stop`], after its last tick, or when it fails.
///
/// # Errors
/// See [`Failed`].
pub(crate) fn run(
    start: Start,
    journal: Journal,
    settings: Settings,
    handle: &Handle,
    queue: &Queue,
) -> Result<Report, Failed> {
    let mut task = Task::new(start, journal, settings, handle, queue)?;
    // What a panic leaves half done is thrown away with the task; the next one starts from the journal.
    match catch_unwind(AssertUnwindSafe(|| task.run_to_end())) {
        Ok(ended) => Ok(task.close(ended)?),
        Err(panic) => {
            task.abandon();
            Err(Failed::Panicked(panic_message(panic.as_ref())))
        }
    }
}

struct Task<'a> {
    location: Location,
    queue: &'a Receiver<Envelope>,
    journal: JournalThread<Release>,
    delivered: Arc<Delivered>,
    investigator: Sender<Question>,
    clock_frame: Arc<Mutex<Bytes>>,
    outboxes: BTreeMap<ConnectionId, Arc<Outbox>>,
    /// Shared with the broadcasts that are under way, copied when somebody comes or goes.
    followers: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
    outputs: Vec<Output>,
    ahead_ticks_max: u64,
    turn_us: Histogram<u64>,
    start_error_us: Histogram<u64>,
    status: Arc<Mutex<Status>>,
    /// When it was written with all that takes longer to find out.
    status_written: Option<Instant>,
    settings: Settings,
}

/// What waits for the journal.
#[derive(Default)]
struct Release {
    deliveries: Vec<Delivery>,
    mark: Mark,
}

/// How far the location is known to be when something has left.
#[derive(Default)]
enum Mark {
    #[default]
    None,
    /// This turn has been shown to everybody; how long it took up to the journal.
    Shown { tick: u64, took: Duration },
    /// The answers of this turn have left.
    Answered { tick: u64 },
}

enum Delivery {
    One(Arc<Outbox>, Parcel),
    Reply(ReplyTo, Reply),
    All {
        to: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
        tick: u64,
        frame: Bytes,
    },
}

impl<'a> Task<'a> {
    fn new(
        start: Start,
        journal: Journal,
        mut settings: Settings,
        handle: &Handle,
        queue: &'a Queue,
    ) -> io::Result<Self> {
        let definition = start.world.definition().clone();
        let period_us = 1_000_000 / u64::from(definition.tick_rate());
        let location = Location::new(start, micros(settings.epoch.elapsed()));
        let clock_frame = Arc::clone(&handle.clock_frame);
        *clock_frame.lock().unwrap_or_else(PoisonError::into_inner) = location.clock_frame();
        let delivered = Arc::new(Delivered {
            shown: AtomicU64::new(location.next_tick()),
            answered: AtomicU64::new(location.next_tick()),
            times: Mutex::new(Times {
                overruns: 0,
                tick_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
            }),
            period_us,
        });
        let shared = Arc::clone(&delivered);
        let release = move |release: Release| shared.deliver(release);
        let journal = match journal {
            Journal::Kept(writer, policy) => JournalThread::spawn(*writer, policy, release, |failure| {
                tracing::error!(%failure, "the journal cannot be kept");
            })?,
            Journal::Null => JournalThread::spawn_null(release)?,
        };
        Ok(Self {
            investigator: investigator::spawn(
                definition.clone(),
                settings.reports.take(),
                handle.inputs.clone(),
            )?,
            ahead_ticks_max: ahead_ticks(settings.ahead_max, definition.tick_rate()),
            turn_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
            start_error_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
            status: Arc::clone(&handle.status),
            status_written: None,
            location,
            queue: &queue.0,
            journal,
            delivered,
            clock_frame,
            outboxes: BTreeMap::new(),
            followers: Arc::new(Vec::new()),
            outputs: Vec::new(),
            settings,
        })
    }

    fn run_to_end(&mut self) -> Result<(), Failure> {
        self.run_turns()?;
        self.tell_all()
    }

    /// After a panic: what was recorded before is written and let go, as after a kill; then everybody is told.
    fn abandon(self) {
        drop(self.journal);
        give_up(
            self.outboxes.values(),
            "the location failed; it starts again from its journal",
        );
    }

    fn close(self, ended: Result<(), Failure>) -> Result<Report, Failure> {
        let (next_tick, digest) = (self.location.next_tick(), self.location.digest());
        // Closing tells also why the journal could not be kept before.
        let closed = self.journal.close(next_tick, digest, CloseReason::Stopped);
        let journal = closed.and_then(|statistics| ended.map(|()| statistics));
        let journal =
            journal.inspect_err(|_| give_up(self.outboxes.values(), "the journal cannot be kept"))?;
        let times = self
            .delivered
            .times
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(Report {
            counters: self.location.counters(),
            overruns: times.overruns,
            tick_us: times.tick_us.clone(),
            turn_us: self.turn_us,
            journal,
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
            self.journal.check()?;
            self.watch_journal();
            let late_us = self.now_us().checked_sub(self.location.due_us());
            if let Some(late_us) = late_us.filter(|_| self.location.runs()) {
                let started = Instant::now();
                self.start_error_us.saturating_record(late_us.max(1));
                let tick = self.location.next_tick();
                self.location.close_turn(self.now_us(), &mut self.outputs);
                self.perform(Some((tick, started)))?;
                statistics::record(&mut self.turn_us, started.elapsed());
                self.show_status();
            } else if !self.location.runs() {
                let now_us = self.now_us();
                self.location.stand_still(now_us, &mut self.outputs);
                self.perform(None)?;
                self.show_status();
            }
        }
    }

    /// Writes what is to be seen from outside.
    fn show_status(&mut self) {
        let mut status = self.location.status();
        status.written_us = self.now_us();
        let answered = self.delivered.answered.load(Ordering::Relaxed);
        status.lag_ticks = status.next_tick.saturating_sub(answered);
        let long_ago = self
            .status_written
            .is_none_or(|written| written.elapsed() >= STATUS_EVERY);
        let times = self
            .delivered
            .times
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        status.overruns = times.overruns;
        let tick = long_ago.then(|| Classes::of(&times.tick_us));
        drop(times);
        let mut shown = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.times = match tick {
            None => std::mem::take(&mut shown.times),
            Some(tick) => {
                let journal = self.journal.statistics();
                self.status_written = Some(Instant::now());
                status::Times {
                    tick,
                    start_error: Classes::of(&self.start_error_us),
                    append: Classes::of(&journal.append_us),
                    sync: Classes::of(&journal.sync_us),
                    journal_bytes: journal.bytes,
                    failed_writes: journal.failed_writes,
                }
            }
        };
        *shown = status;
    }

    /// The daemon ends: everybody is told.
    fn tell_all(&mut self) -> Result<(), Failure> {
        self.watch_journal();
        let now_us = self.now_us();
        self.location.take(Input::Stop, now_us, &mut self.outputs);
        let failing = self.location.storage() == Storage::Failing;
        self.perform(None)?;
        if failing {
            // The journal gets one more chance; whoever waits for it has waited long enough.
            let (code, message) = (Code::CLOSE_STOPPING, "the daemon ends");
            for outbox in self.outboxes.values() {
                outbox.push(Parcel::Close { code, message }, Instant::now());
            }
        }
        Ok(())
    }

    /// Holds the clock, or lets it run, as the journal stands.
    fn watch_journal(&mut self) {
        let shown = self.delivered.shown.load(Ordering::Relaxed);
        let answered = self.delivered.answered.load(Ordering::Relaxed);
        let ahead = self.location.next_tick().saturating_sub(shown.min(answered));
        // Once it holds, half of it has to be made up for, so that it does not stutter.
        let ahead_max = match self.location.storage() {
            Storage::Kept => self.ahead_ticks_max,
            Storage::Behind | Storage::Failing => self.ahead_ticks_max / 2,
        };
        let storage = if self.journal.is_failing() {
            Storage::Failing
        } else if ahead > ahead_max {
            Storage::Behind
        } else {
            Storage::Kept
        };
        let now_us = self.now_us();
        self.location.watch_storage(storage, now_us, &mut self.outputs);
    }

    /// Waits until something comes or the turn is due, and takes what is there. Returns whether the daemon ends.
    fn take_inputs(&mut self) -> Result<bool, Failure> {
        let wait = match self.location.storage() {
            Storage::Kept if self.location.sleeps() => SLEEPING_POLL,
            Storage::Kept if !self.location.runs() => STANDING_POLL,
            Storage::Kept => Duration::from_micros(self.location.due_us().saturating_sub(self.now_us())),
            Storage::Behind | Storage::Failing => HELD_POLL,
        };
        let mut next = match self.queue.recv_timeout(wait) {
            Ok(envelope) => Some(envelope),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        };
        self.watch_journal();
        let (mut taken, mut by_operator) = (0, false);
        while let Some(envelope) = next {
            if matches!(envelope.input, Input::Stop) {
                self.perform(None)?;
                return Ok(true);
            }
            by_operator |= matches!(envelope.input, Input::Operator(_) | Input::Drain { .. });
            self.take(envelope);
            taken += 1;
            next = if taken < INPUTS_AT_ONCE {
                self.queue.try_recv().ok()
            } else {
                None
            };
        }
        if by_operator {
            // Whoever asks next sees what was done.
            self.show_status();
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
        let (mut with_write, mut with_sync) = (Vec::new(), Vec::new());
        let now = Instant::now();
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Record(record) => {
                    fail_if_asked(&record);
                    records.push(record);
                }
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
                Output::Note { tick, actor, text } => records.push(Record::Note(Note {
                    tick,
                    unix_ms: unix_ms(),
                    actor,
                    text,
                })),
                Output::Reply(reply_to, reply) => with_sync.push(Delivery::Reply(reply_to, reply)),
                Output::Follow(connection) => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        Arc::make_mut(&mut self.followers).push((connection, Arc::clone(outbox)));
                    }
                }
                Output::Broadcast { tick, frame } => with_write.push(Delivery::All {
                    to: Arc::clone(&self.followers),
                    tick,
                    frame,
                }),
                Output::Send(connection, parcel) => {
                    let Some(outbox) = self.outboxes.get(&connection) else {
                        continue;
                    };
                    let wait = match leaves(&parcel) {
                        Leaves::AtOnce => {
                            outbox.push(parcel, now);
                            continue;
                        }
                        Leaves::WithWrite => &mut with_write,
                        Leaves::WithSync => &mut with_sync,
                    };
                    wait.push(Delivery::One(Arc::clone(outbox), parcel));
                }
                Output::Clock(frame) => {
                    for outbox in self.outboxes.values() {
                        outbox.push(Parcel::Clock(frame.clone()), now);
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
                Output::Investigate(question) => {
                    // It ends only with this thread.
                    let _ = self.investigator.send(question);
                }
            }
        }
        if records.is_empty() && with_write.is_empty() && with_sync.is_empty() {
            return Ok(());
        }
        let (mut shown, mut answered) = (Mark::None, Mark::None);
        if let Some((tick, started)) = turn {
            let took = started.elapsed();
            shown = Mark::Shown { tick, took };
            answered = Mark::Answered { tick };
        }
        let release = |deliveries, mark| Release { deliveries, mark };
        self.journal.append(
            records,
            Waiting {
                written: release(with_write, shown),
                synced: release(with_sync, answered),
            },
        )
    }

    fn now_us(&self) -> u64 {
        micros(self.settings.epoch.elapsed())
    }
}

/// When something may leave; see the module.
enum Leaves {
    AtOnce,
    WithWrite,
    WithSync,
}

fn leaves(parcel: &Parcel) -> Leaves {
    match parcel {
        Parcel::Reject { .. } | Parcel::Control(_) | Parcel::Clock(_) => Leaves::AtOnce,
        Parcel::Turn { .. } | Parcel::State { .. } | Parcel::Follow { .. } | Parcel::Download(_) => {
            Leaves::WithWrite
        }
        Parcel::Answer { .. } | Parcel::Welcome { .. } | Parcel::Redirect(_) | Parcel::Close { .. } => {
            Leaves::WithSync
        }
    }
}

/// Nothing more can be told of the World; not to leave people waiting is no promise.
fn give_up<'a>(outboxes: impl Iterator<Item = &'a Arc<Outbox>>, message: &'static str) {
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

/// What tests send to see what a defect does: an Application with this payload, to a debug build that was started with
/// LOCKSTEPD_TEST_PANIC set.
const TEST_PANIC: &[u8] = b"panic";

/// A turn that panics before it is recorded, if a test asks for it; never in a release build.
fn fail_if_asked(record: &Record) {
    static ASKED: LazyLock<bool> =
        LazyLock::new(|| cfg!(debug_assertions) && std::env::var_os("LOCKSTEPD_TEST_PANIC").is_some());
    let fails = |command: &Command| matches!(command, Command::Application { payload, .. } if **payload == *TEST_PANIC);
    if *ASKED
        && let Record::Turn(turn) = record
        && turn.commands.iter().any(fails)
    {
        panic!("a test asked for it at tick {}", turn.tick);
    }
}

/// What was panicked with, if it was words.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "without a word".to_owned())
}

fn ahead_ticks(ahead_max: Duration, tick_rate: u16) -> u64 {
    let ticks = ahead_max.as_micros() * u128::from(tick_rate) / 1_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
}

/// What the journal's thread knows.
struct Delivered {
    /// The turn that is shown next.
    shown: AtomicU64,
    /// The turn whose answers leave next.
    answered: AtomicU64,
    times: Mutex<Times>,
    period_us: u64,
}

struct Times {
    overruns: u64,
    tick_us: Histogram<u64>,
}

impl Delivered {
    /// What waited may leave.
    fn deliver(&self, release: Release) {
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

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
