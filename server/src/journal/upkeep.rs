//! The thread that packs closed segments and removes old ones while the location runs.
//!
//! It looks once at the start, which finishes what a kill interrupted, and then every few seconds: nobody waits for it,
//! and whatever it does can be interrupted at any place. A failure is told and tried again later; it is no reason to stop,
//! since the journal is whole without it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::compress::compress_closed;
use super::record::unix_ms;
use super::retention::{Retention, prune};
use super::run;

/// From one look to the next.
const EVERY: Duration = Duration::from_secs(10);

/// Ends the thread when it is dropped; what is being packed then is left to the next start.
#[derive(Debug)]
pub(crate) struct Upkeep {
    _alive: Sender<()>,
}

impl Upkeep {
    /// Starts the thread for a location's folder. Whoever calls it holds the location's lock until the process ends.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn(location: PathBuf, retention: Retention) -> io::Result<Self> {
        let (alive, ended) = mpsc::channel();
        thread::Builder::new()
            .name("journal-upkeep".to_owned())
            .spawn(move || {
                let mut damaged = Vec::new();
                loop {
                    look(&location, &retention, &mut damaged);
                    if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            })?;
        Ok(Self { _alive: alive })
    }
}

/// `damaged`: segments that are not looked at again.
fn look(location: &Path, retention: &Retention, damaged: &mut Vec<PathBuf>) {
    match prune(location, retention, unix_ms()) {
        Ok(removed) => {
            for segment in removed {
                tracing::info!("{}: removed, it need not stay", segment.path.display());
            }
        }
        Err(error) => tracing::warn!(%error, "{}: retention failed", location.display()),
    }
    let runs = run::runs(location).unwrap_or_default();
    let Some(last) = runs.last() else {
        return;
    };
    match compress_closed(&last.path, damaged) {
        Ok(packed) => {
            for (path, result) in packed {
                match result {
                    Ok(packed) => tracing::info!("{}: packed", packed.display()),
                    Err(error) => {
                        tracing::warn!(%error, "{}: not packed", path.display());
                        if error.kind() == io::ErrorKind::InvalidData {
                            damaged.push(path);
                        }
                    }
                }
            }
        }
        Err(error) => tracing::warn!(%error, "{}: packing failed", last.path.display()),
    }
}
