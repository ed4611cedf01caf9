//! The journal's own thread: writes what it is handed, then lets go of what waited for the write (spec 5.6, `os`).
//!
//! Syncing happens on a second thread, so that a slow disk delays no turn: every five seconds, with nobody waiting, so
//! that the watermark in the records moves.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::record::{Close, CloseReason, Record};
use super::writer::{Failure, Writer};

/// Time between two syncs of what was written.
const SYNC_EVERY: Duration = Duration::from_secs(5);
/// Batches that are written by one call.
const BATCHES_PER_WRITE_MAX: usize = 64;

/// The handle of the journal's thread. Dropping it ends the thread without a Close record, as a kill would.
#[derive(Debug)]
pub(crate) struct JournalThread<R> {
    inputs: Sender<Input<R>>,
    /// Why the thread has ended, if it was not asked to.
    failure: Arc<Mutex<Option<Failure>>>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

#[derive(Debug)]
enum Input<R> {
    Append {
        records: Vec<Record>,
        release: R,
    },
    /// So many bytes are durable.
    Synced(u64),
    /// Joining the syncer tells why.
    SyncFailed,
    Close(Close),
    Abandon,
}

impl<R: Send + 'static> JournalThread<R> {
    /// Starts the thread. `release` gets, on that thread, what came with each batch, in order and once the batch is
    /// written; `failed` is called once, instead of all further releases, when the journal cannot be kept any more.
    ///
    /// # Errors
    /// The system gives no thread or no file descriptor.
    pub(crate) fn spawn(
        writer: Writer,
        release: impl FnMut(R) + Send + 'static,
        failed: impl FnOnce(&Failure) + Send + 'static,
    ) -> io::Result<Self> {
        let (inputs, queue) = mpsc::channel();
        let syncer = Syncer::spawn(writer.share_file()?, inputs.clone())?;
        let failure = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&failure);
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || {
            let result = run(writer, &queue, syncer, release);
            if let Err(failure) = &result {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
                failed(failure);
            }
            result
        })?;
        Ok(Self {
            inputs,
            failure,
            thread: Some(thread),
        })
    }

    /// Hands over the records of one tick, in their order, and what waits for their write.
    ///
    /// # Errors
    /// The thread has ended: why it did.
    pub(crate) fn append(&self, records: Vec<Record>, release: R) -> Result<(), Failure> {
        self.inputs
            .send(Input::Append { records, release })
            .map_err(|_| self.failure())
    }

    fn failure(&self) -> Failure {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().unwrap_or(Failure::Closed)
    }

    /// Ends the segment in order: everything handed over and a Close record are written, released and synced.
    ///
    /// `tick` is the one that comes next, `digest` that of the World in which it would run.
    ///
    /// # Errors
    /// Why the journal could not be kept, now or before.
    pub(crate) fn close(mut self, tick: u64, digest: u64, reason: CloseReason) -> Result<(), Failure> {
        // If nobody receives it, joining tells why.
        let _ = self.inputs.send(Input::Close(Close { tick, digest, reason }));
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
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

fn run<R: Send + 'static>(
    mut writer: Writer,
    queue: &Receiver<Input<R>>,
    syncer: Syncer,
    mut release: impl FnMut(R),
) -> Result<(), Failure> {
    let mut releases = Vec::new();
    let mut next_sync = Instant::now() + SYNC_EVERY;
    loop {
        let first = match queue.recv_timeout(next_sync.saturating_duration_since(Instant::now())) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Input::Abandon),
        };
        let mut end = None;
        let mut input = first;
        while let Some(now) = input.take() {
            match now {
                Input::Append {
                    records,
                    release: waiting,
                } => {
                    for record in &records {
                        writer.push(record)?;
                    }
                    releases.push(waiting);
                }
                Input::Synced(length) => writer.synced(length),
                Input::SyncFailed => return finish(syncer, &writer),
                Input::Close(close) => end = Some(Some(close)),
                Input::Abandon => end = Some(None),
            }
            if end.is_none() && releases.len() < BATCHES_PER_WRITE_MAX {
                input = queue.try_recv().ok();
            }
        }
        if !releases.is_empty() {
            writer.write()?;
            releases.drain(..).for_each(&mut release);
        }
        match end {
            Some(Some(close)) => {
                finish(syncer, &writer)?;
                return writer.close(close);
            }
            Some(None) => return finish(syncer, &writer),
            None => {}
        }
        if Instant::now() >= next_sync {
            next_sync = Instant::now() + SYNC_EVERY;
            if writer.durable() < writer.length() {
                syncer.sync(writer.length());
            }
        }
    }
}

fn finish(syncer: Syncer, writer: &Writer) -> Result<(), Failure> {
    syncer.finish().map_err(|error| writer.sync_failed(error))
}

/// Syncs a file somewhere else.
#[derive(Debug)]
struct Syncer {
    lengths: Sender<u64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Syncer {
    fn spawn<R: Send + 'static>(file: File, inputs: Sender<Input<R>>) -> io::Result<Self> {
        let (lengths, wanted) = mpsc::channel::<u64>();
        let thread = thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || {
                while let Ok(length) = wanted.recv() {
                    let synced = file.sync_data();
                    let input = if synced.is_ok() {
                        Input::Synced(length)
                    } else {
                        Input::SyncFailed
                    };
                    // Nobody receives it any more once the segment is being closed; an error is then told by joining.
                    let _ = inputs.send(input);
                    synced?;
                }
                Ok(())
            })?;
        Ok(Self { lengths, thread })
    }

    /// Asks for the first `length` bytes, which are written, to be made durable.
    fn sync(&self, length: u64) {
        // Ended only after an error, which is on its way.
        let _ = self.lengths.send(length);
    }

    /// Waits for what was asked for.
    fn finish(self) -> io::Result<()> {
        drop(self.lengths);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
