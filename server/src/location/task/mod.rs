//! A location's own thread: its steady clock, its one place of waiting, and the way of what it puts out, through the
//! journal, to the connections. It waits for no socket and for no disk.
//!
//! What leaves when (spec 4.2, 5.6):
//!
//! | what | leaves |
//! | --- | --- |
//! | Reject, Refused, Clock and other control messages: they tell of nothing recorded | at once |
//! | turns, states, definitions, snapshots and missed turns | with the turn before them: once it is written (`tick`: synced) |
//! | Accepted, Welcome and Redirect, and Close so that it comes after them | once what is before them is synced (`os`: written) |
//!
//! An [`Outbox`] gives out nothing before its Welcome, so turns that overtake a Welcome here wait for it there.

mod delivery;
mod handle;
mod perform;
mod report;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use protocol::Code;
use sim::Phase;

use self::delivery::{Delivered, Release, Times, give_up};
pub(crate) use self::handle::{Entrant, Envelope, Handle, Queue, Traffic, channel};
pub(crate) use self::report::{Report, TICK_US_MAX};
use super::investigator::{self, Folder, Question};
use super::outbox::{Outbox, Parcel};
use super::shadow::Shadow;
use super::status::{self, Classes, Status};
use super::{ConnectionId, Input, Location, Output, Start, Storage};
use crate::journal::record::CloseReason;
use crate::journal::statistics;
use crate::journal::{Failure, JournalThread, Policy, Writer};

/// Inputs taken before what they have put out is done.
const INPUTS_AT_ONCE: usize = 1_024;
/// How often the clock of a location is looked at that is paused, or where nobody is.
const STANDING_POLL: Duration = Duration::from_millis(500);
const SLEEPING_POLL: Duration = Duration::from_secs(5);
/// How often what takes longer to find out is written into the status.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How often a clock that holds is looked at.
const HELD_POLL: Duration = Duration::from_millis(10);

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
    /// Every turn runs in a second World too.
    pub(crate) shadow: bool,
}

/// Where the records go.
pub(crate) enum Journal {
    /// Into this segment and those that follow it.
    Kept(Box<Writer>, Policy),
    /// Nowhere: what a journal costs is measured against this.
    Null,
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
    let result = match catch_unwind(AssertUnwindSafe(|| task.run_to_end())) {
        Ok(ended) => task.close(ended).map_err(Failed::from),
        Err(panic) => {
            task.abandon();
            Err(Failed::Panicked(panic_message(panic.as_ref())))
        }
    };
    handle.ends();
    result
}

struct Task<'a> {
    location: Location,
    queue: &'a Receiver<Envelope>,
    journal: JournalThread<Release>,
    delivered: Arc<Delivered>,
    investigator: Sender<Question>,
    shadow: Option<Shadow>,
    clock_frame: Arc<Mutex<Bytes>>,
    outboxes: BTreeMap<ConnectionId, Arc<Outbox>>,
    /// Shared with the broadcasts that are under way, copied when somebody comes or goes.
    followers: Arc<Vec<(ConnectionId, Arc<Outbox>)>>,
    outputs: Vec<Output>,
    ahead_ticks_max: u64,
    turn_us: Histogram<u64>,
    start_error_us: Histogram<u64>,
    planning_us: Histogram<u64>,
    status: Arc<Mutex<Status>>,
    /// When it was written with all that takes longer to find out.
    status_written: Option<Instant>,
    settings: Settings,
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
        let shadow = match settings.shadow {
            true => Some(Shadow::spawn(&location.world, settings.reports.clone())?),
            false => None,
        };
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
            shadow,
            ahead_ticks_max: ahead_ticks(settings.ahead_max, definition.tick_rate()),
            turn_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
            start_error_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
            planning_us: Histogram::new_with_bounds(1, TICK_US_MAX, 3).map_err(io::Error::other)?,
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
        let run_ended = self.location.run_ends();
        let reason = if run_ended {
            CloseReason::RunEnded
        } else {
            CloseReason::Stopped
        };
        // Closing tells also why the journal could not be kept before.
        let closed = self.journal.close(next_tick, digest, reason);
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
            start_error_us: self.start_error_us,
            journal,
            shadow: self.shadow.map(Shadow::finish),
            last_tick: next_tick.checked_sub(1),
            digest,
            run_ended,
        })
    }

    /// Returns when the daemon or the run is to end.
    fn run_turns(&mut self) -> Result<(), Failure> {
        let first_tick = self.location.next_tick();
        let last_tick = self
            .settings
            .ticks_max
            .map(|ticks| first_tick.saturating_add(ticks));
        loop {
            let stop = self.take_inputs()?;
            if stop
                || self.location.run_ends()
                || last_tick.is_some_and(|last| self.location.next_tick() >= last)
            {
                return Ok(());
            }
            self.journal.check()?;
            self.watch_journal();
            let now_us = self.now_us();
            if self.location.is_due(now_us) {
                let (started, late_us) = (Instant::now(), now_us - self.location.due_us());
                self.start_error_us.saturating_record(late_us.max(1));
                let tick = self.location.next_tick();
                self.run_turn();
                self.perform(Some((tick, started)))?;
                statistics::record(&mut self.turn_us, started.elapsed());
                self.show_status();
            } else if !self.location.runs() {
                self.location.stand_still(now_us, &mut self.outputs);
                self.perform(None)?;
                self.show_status();
            }
        }
    }

    /// Closes the turn that is due, and measures the phases of its step in which paths are planned.
    fn run_turn(&mut self) {
        let now_us = self.now_us();
        let (mut planning, mut phase_began) = (Duration::ZERO, Instant::now());
        let watch = |phase: Phase| {
            let now = Instant::now();
            if matches!(phase, Phase::Commands | Phase::Replans | Phase::Behaviours) {
                planning += now.duration_since(phase_began);
            }
            phase_began = now;
        };
        self.location.close_turn_watched(now_us, &mut self.outputs, watch);
        statistics::record(&mut self.planning_us, planning);
    }

    /// Writes what is to be seen from outside.
    fn show_status(&mut self) {
        let mut status = self.location.status();
        status.written_us = self.now_us();
        status.shadow = self.shadow.as_ref().map(Shadow::counters);
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
                    planning: Classes::of(&self.planning_us),
                    queue_bytes: self.outboxes.values().map(|outbox| outbox.waiting_bytes()).sum(),
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
        let (is_late, mut taken, mut by_operator) = (wait.is_zero(), 0, false);
        while let Some(envelope) = next {
            if matches!(envelope.input, Input::Stop) {
                self.perform(None)?;
                return Ok(true);
            }
            by_operator |= matches!(envelope.input, Input::Operator(_) | Input::Drain { .. });
            self.take(envelope);
            taken += 1;
            // Nobody who asks makes a turn late. Where one is late already they are heard all the same. What comes after the end
            // of a run is for the next one.
            let turn_is_due = !is_late && self.location.is_due(self.now_us());
            next = if taken < INPUTS_AT_ONCE && !turn_is_due && !self.location.run_ends() {
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
        if let (Input::Enter { connection, .. }, Some(entrant)) = (&envelope.input, envelope.entrant) {
            self.outboxes.insert(*connection, entrant.taken());
        }
        let now_us = self.now_us();
        self.location.take(envelope.input, now_us, &mut self.outputs);
        drop(envelope.permit);
    }

    fn now_us(&self) -> u64 {
        micros(self.settings.epoch.elapsed())
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

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
