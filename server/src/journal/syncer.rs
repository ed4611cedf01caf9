//! A thread that syncs: the journal's own never waits for the disk, whatever that takes (spec 5.6).

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::disk::DiskFile;

/// What was asked for is done.
#[derive(Debug)]
pub(crate) struct Synced {
    /// As it was asked for.
    pub(crate) position: u64,
    /// How long it took.
    pub(crate) took: Duration,
    /// After an error nothing more is synced.
    pub(crate) result: io::Result<()>,
}

/// The thread's handle.
#[derive(Debug)]
pub(crate) struct Syncer {
    wanted: Sender<(Arc<dyn DiskFile>, u64)>,
    thread: JoinHandle<()>,
}

impl Syncer {
    /// Starts the thread; `done` is called on it after each sync.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn(mut done: impl FnMut(Synced) + Send + 'static) -> io::Result<Self> {
        let (wanted, queue) = mpsc::channel::<(Arc<dyn DiskFile>, u64)>();
        let thread = thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || {
                while let Ok((file, position)) = queue.recv() {
                    let started = Instant::now();
                    let result = file.sync();
                    let failed = result.is_err();
                    done(Synced {
                        position,
                        took: started.elapsed(),
                        result,
                    });
                    if failed {
                        break;
                    }
                }
            })?;
        Ok(Self { wanted, thread })
    }

    /// Asks for what was written to a file, up to `position`, to be made durable.
    pub(crate) fn sync(&self, file: Arc<dyn DiskFile>, position: u64) {
        // Ended only after an error, which is on its way.
        let _ = self.wanted.send((file, position));
    }

    /// Waits for what was asked for.
    pub(crate) fn finish(self) {
        drop(self.wanted);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
