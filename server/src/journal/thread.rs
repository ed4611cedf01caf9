//! The journal's own thread: writes what it is handed and lets go of what waited for that, in order (spec 5.6, 5.8).
//!
//! ```text
//! append(records, Waiting {written, synced}) ─▶ backlog ─▶ encoded ─▶ written ──▶ release(written)
//!                                                  ▲          │ failed: cut off, again in a second
//!                                                  └──────────┘         synced ──▶ release(synced)
//! ```
//!
//! With `tick` both wait for the sync, with `os` both for the write. Syncing happens on a thread of its own, one sync at
//! a time, for all that was written by then.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::policy::{Durability, Policy};
use super::record::{Close, CloseReason, Record};
use super::rotation::Rotation;
use super::statistics::{self, Statistics};
use super::syncer::{Synced, Syncer};
use super::writer::{Failure, Writer};

/// Inputs taken before anything is written.
const INPUTS_AT_ONCE: usize = 64;

/// The handle of the journal's thread. Dropping it ends the thread without a Close record, as a kill would.
#[derive(Debug)]
pub(crate) struct JournalThread<R> {
    inputs: Sender<Input<R>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

/// What waits for the records with which it came.
#[derive(Debug)]
pub(crate) struct Waiting<R> {
    /// May leave once they are written; with [`Durability::Tick`], once they are synced.
    pub(crate) written: R,
    /// May leave once they are synced; with [`Durability::Os`], once they are written.
    pub(crate) synced: R,
}

#[derive(Debug)]
struct Shared {
    /// The last write failed and will be tried again.
    failing: AtomicBool,
    /// Why the thread has ended, if it was not asked to.
    failure: OnceLock<Failure>,
    statistics: Mutex<Statistics>,
}

impl Shared {
    fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            failing: AtomicBool::new(false),
            failure: OnceLock::new(),
            statistics: Mutex::new(Statistics::new()?),
        }))
    }

    fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Input<R> {
    Append(Batch<R>),
    Synced(Synced),
    Close(Close),
    Abandon,
}

#[derive(Debug)]
struct Batch<R> {
    records: VecDeque<Record>,
    waiting: Waiting<R>,
}

impl<R: Send + 'static> JournalThread<R> {
    /// Starts the thread. `release` gets, on that thread, what came with each batch, once its time has come: what waits
    /// for the write in order, what waits for the sync in order, and the latter never before the former of its batch.
    /// `failed` is called once, instead of all further releases, when the journal cannot be kept any more.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn(
        writer: Writer,
        policy: Policy,
        release: impl FnMut(R) + Send + 'static,
        failed: impl FnOnce(&Failure) + Send + 'static,
    ) -> io::Result<Self> {
        let (inputs, queue) = mpsc::channel();
        let shared = Shared::new()?;
        let kept = Arc::clone(&shared);
        let done = inputs.clone();
        // Nobody receives it any more once the journal is given up.
        let syncer = Syncer::spawn(move |synced| drop(done.send(Input::Synced(synced))))?;
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || {
            let mut keeper = Keeper::new(writer, policy, queue, syncer, release, Arc::clone(&kept));
            let ended = keeper.run();
            let result = ended.and_then(|close| keeper.end(close));
            if let Err(failure) = &result {
                failed(kept.failure.get_or_init(|| failure.clone()));
            }
            result
        })?;
        Ok(Self {
            inputs,
            shared,
            thread: Some(thread),
        })
    }

    /// A journal that keeps nothing: everything is let go at once, on a thread like the real one's. What a journal costs
    /// is measured against this.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn_null(mut release: impl FnMut(R) + Send + 'static) -> io::Result<Self> {
        let (inputs, queue) = mpsc::channel();
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || {
            while let Ok(Input::Append(batch)) = queue.recv() {
                release(batch.waiting.written);
                release(batch.waiting.synced);
            }
            Ok(())
        })?;
        Ok(Self {
            inputs,
            shared: Shared::new()?,
            thread: Some(thread),
        })
    }

    /// Hands over the records of one tick, in their order, and what waits for them. Never waits.
    ///
    /// # Errors
    /// The thread has ended: why it did.
    pub(crate) fn append(&self, records: Vec<Record>, waiting: Waiting<R>) -> Result<(), Failure> {
        let records = records.into();
        self.inputs
            .send(Input::Append(Batch { records, waiting }))
            .map_err(|_| self.failure())
    }

    /// The last write failed; what was handed over since waits until it can be written.
    pub(crate) fn is_failing(&self) -> bool {
        self.shared.failing.load(Ordering::Acquire)
    }

    /// What has been done so far.
    pub(crate) fn statistics(&self) -> Statistics {
        self.shared.statistics().clone()
    }

    /// Whether the journal is still kept, or will be once it can be written again.
    ///
    /// # Errors
    /// The thread has ended: why it did.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.shared.failure.get().cloned().map_or(Ok(()), Err)
    }

    fn failure(&self) -> Failure {
        self.check().err().unwrap_or(Failure::Closed)
    }

    /// Ends the segment in order: everything handed over and a Close record are written, synced and released. While
    /// writing fails it is tried once more, and no longer.
    ///
    /// `tick` is the one that comes next, `digest` that of the World in which it would run.
    ///
    /// # Errors
    /// Why the journal could not be kept, now or before.
    pub(crate) fn close(
        mut self,
        tick: u64,
        digest: u64,
        reason: CloseReason,
    ) -> Result<Statistics, Failure> {
        // If nobody receives it, joining tells why.
        let _ = self.inputs.send(Input::Close(Close { tick, digest, reason }));
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map(|()| self.statistics()),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(Failure::Closed),
        }
    }
}

impl<R> Drop for JournalThread<R> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.inputs.send(Input::Abandon);
            let _ = thread.join();
        }
    }
}

/// What runs on the thread. Positions count bytes of all segments since its start.
struct Keeper<R, F> {
    writer: Writer,
    policy: Policy,
    queue: Receiver<Input<R>>,
    syncer: Option<Syncer>,
    release: F,
    shared: Arc<Shared>,
    /// Handed over, not yet encoded to the end.
    backlog: VecDeque<Batch<R>>,
    /// Encoded, not yet written.
    unwritten: Vec<Waiting<R>>,
    /// Written up to this position, not yet synced.
    unsynced: VecDeque<(u64, R)>,
    /// Bytes of the segments before this one.
    before: u64,
    /// A sync is under way.
    syncing: bool,
    last_sync: Instant,
    /// Writing fails: why, and when it is tried again.
    trouble: Option<(Failure, Instant)>,
    /// The keyframe of this tick stays in the open segment, since there was no room for the next.
    stays: Option<u64>,
    /// It is to end: in order with this, or as after a kill.
    end: Option<Option<Close>>,
}

impl<R, F: FnMut(R)> Keeper<R, F> {
    fn new(
        writer: Writer,
        policy: Policy,
        queue: Receiver<Input<R>>,
        syncer: Syncer,
        release: F,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            writer,
            policy,
            queue,
            syncer: Some(syncer),
            release,
            shared,
            backlog: VecDeque::new(),
            unwritten: Vec::new(),
            unsynced: VecDeque::new(),
            before: 0,
            syncing: false,
            last_sync: Instant::now(),
            trouble: None,
            stays: None,
            end: None,
        }
    }

    /// Keeps the journal until it is to end.
    fn run(&mut self) -> Result<Option<Close>, Failure> {
        loop {
            self.wait()?;
            let now = Instant::now();
            let may_write = self.trouble.as_ref().is_none_or(|(_, again)| now >= *again);
            if may_write || self.end.is_some() {
                self.write_backlog()?;
            }
            if let Some(end) = self.end.take() {
                return Ok(end);
            }
            if self.sync_due().is_some_and(|due| now >= due) {
                self.begin_sync();
            }
        }
    }

    /// Ends in order, with a Close record, or as a kill would.
    fn end(mut self, close: Option<Close>) -> Result<(), Failure> {
        let settled = self.settle();
        if let Some(syncer) = self.syncer.take() {
            syncer.finish();
        }
        settled?;
        let Some(close) = close else {
            return Ok(());
        };
        if let Some((failure, _)) = self.trouble.take() {
            return Err(failure);
        }
        self.sync_here()?;
        self.writer.close(close)
    }

    /// Waits until something comes or is due, and takes what is there.
    fn wait(&mut self) -> Result<(), Failure> {
        let again = self.trouble.as_ref().map(|(_, again)| *again);
        let due = [again, self.sync_due()].into_iter().flatten().min();
        let first = match due {
            None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => self
                .queue
                .recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match first {
            Ok(input) => self.take(input)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                self.end = Some(None);
                return Ok(());
            }
        }
        for _ in 1..INPUTS_AT_ONCE {
            let Ok(input) = self.queue.try_recv() else { break };
            self.take(input)?;
        }
        Ok(())
    }

    fn take(&mut self, input: Input<R>) -> Result<(), Failure> {
        match input {
            Input::Append(batch) => self.backlog.push_back(batch),
            Input::Synced(synced) => self.synced(synced)?,
            Input::Close(close) => self.end = Some(Some(close)),
            Input::Abandon => self.end = Some(None),
        }
        Ok(())
    }

    /// Writes all that was handed over, if the disk takes it.
    fn write_backlog(&mut self) -> Result<(), Failure> {
        while !self.backlog.is_empty() || !self.unwritten.is_empty() {
            let started = Instant::now();
            let length = self.writer.length();
            let full = self.encode()?;
            let result = self.writer.write();
            let took = started.elapsed();
            match result {
                Ok(()) => self.written(),
                Err(failure @ Failure::Write { .. }) => {
                    self.fail(failure);
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            }
            let mut statistics = self.shared.statistics();
            statistics.bytes += self.writer.length() - length;
            statistics::record(&mut statistics.append_us, took);
            drop(statistics);
            if full {
                self.rotate()?;
            }
        }
        Ok(())
    }

    /// Encodes what was handed over; returns whether a keyframe stands next with which another segment begins.
    fn encode(&mut self) -> Result<bool, Failure> {
        while let Some(batch) = self.backlog.front_mut() {
            while let Some(record) = batch.records.front() {
                if let Record::Keyframe(keyframe) = record
                    && self.stays != Some(keyframe.tick)
                    && self.writer.is_full(keyframe.tick, self.policy.segment)
                {
                    return Ok(true);
                }
                self.writer.push(record)?;
                batch.records.pop_front();
            }
            let batch = self.backlog.pop_front();
            self.unwritten.extend(batch.map(|batch| batch.waiting));
        }
        Ok(false)
    }

    /// What was encoded is in the file.
    fn written(&mut self) {
        if self.trouble.take().is_some() {
            tracing::info!("{}: writing works again", self.writer.path().display());
            self.shared.failing.store(false, Ordering::Release);
        }
        let position = self.before + self.writer.length();
        for Waiting { written, synced } in self.unwritten.drain(..) {
            match self.policy.durability {
                Durability::Os => {
                    (self.release)(written);
                    (self.release)(synced);
                }
                Durability::Interval => {
                    (self.release)(written);
                    self.unsynced.push_back((position, synced));
                }
                Durability::Tick => {
                    self.unsynced.push_back((position, written));
                    self.unsynced.push_back((position, synced));
                }
            }
        }
        self.release_synced();
    }

    fn fail(&mut self, failure: Failure) {
        if self.trouble.is_none() {
            tracing::error!("{failure}; the clock holds, trying again every second");
        }
        self.shared.statistics().failed_writes += 1;
        self.trouble = Some((failure, Instant::now() + self.policy.retry));
        self.shared.failing.store(true, Ordering::Release);
    }

    /// The keyframe that stands next goes into another segment, if there is room for that.
    fn rotate(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let Some(batch) = self.backlog.front_mut() else {
            return Ok(());
        };
        let (Some(Record::Keyframe(keyframe)), Some(Record::Sessions(sessions))) =
            (batch.records.front(), batch.records.get(1))
        else {
            unreachable!("a keyframe comes with its sessions")
        };
        let tick = keyframe.tick;
        match self.writer.rotate(keyframe, sessions)? {
            Rotation::Done { bytes } => {
                tracing::info!(tick, "{}: the next segment begins", self.writer.path().display());
                self.before += bytes;
                batch.records.drain(..2);
                let mut statistics = self.shared.statistics();
                statistics.rotations += 1;
                statistics.bytes += self.writer.length();
            }
            Rotation::Stayed(error) => {
                tracing::warn!(tick, %error, "no room for another segment, going on in this one");
                self.stays = Some(tick);
            }
        }
        self.release_synced();
        Ok(())
    }

    /// When the next sync should begin.
    fn sync_due(&self) -> Option<Instant> {
        let there_is = !self.syncing && self.writer.durable() < self.writer.length();
        there_is.then(|| self.last_sync + self.policy.sync_every())
    }

    fn begin_sync(&mut self) {
        let position = self.before + self.writer.length();
        if let Some(syncer) = &self.syncer {
            syncer.sync(self.writer.share_file(), position);
            self.syncing = true;
            self.last_sync = Instant::now();
        }
    }

    /// A sync has ended.
    fn synced(&mut self, synced: Synced) -> Result<(), Failure> {
        self.syncing = false;
        let mut statistics = self.shared.statistics();
        statistics::record(&mut statistics.sync_us, synced.took);
        drop(statistics);
        let synced_bytes = synced.position - self.before;
        synced.result.map_err(|error| self.writer.sync_failed(error))?;
        self.writer.synced(synced_bytes);
        self.release_synced();
        Ok(())
    }

    /// Waits for the sync that is under way.
    fn settle(&mut self) -> Result<(), Failure> {
        while self.syncing {
            match self.queue.recv() {
                Ok(input) => self.take(input)?,
                Err(_) => self.syncing = false,
            }
        }
        Ok(())
    }

    /// Syncs on this thread; nobody else does.
    fn sync_here(&mut self) -> Result<(), Failure> {
        if self.writer.durable() < self.writer.length() {
            let started = Instant::now();
            self.writer.sync()?;
            let mut statistics = self.shared.statistics();
            statistics::record(&mut statistics.sync_us, started.elapsed());
        }
        self.release_synced();
        Ok(())
    }

    fn release_synced(&mut self) {
        let durable = self.before + self.writer.durable();
        while let Some((position, _)) = self.unsynced.front()
            && *position <= durable
        {
            if let Some((_, waiting)) = self.unsynced.pop_front() {
                (self.release)(waiting);
            }
        }
    }
}
