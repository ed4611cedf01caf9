//! The signals that the daemon listens to.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Status, WithStatus};

/// The signals that end the daemon in order.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// The file may not grow: without somebody who takes it, it would end the process instead of the write.
    _file_size: Signal,
}

/// SIGXFSZ, which has no name in tokio.
const FILE_SIZE: i32 = 25;

impl Signals {
    /// From now on they come here; within a runtime.
    ///
    /// # Errors
    /// The system gives none.
    pub(super) fn install() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())
                .context("SIGTERM")
                .with_status(Status::Io)?,
            interrupt: signal(SignalKind::interrupt())
                .context("SIGINT")
                .with_status(Status::Io)?,
            hangup: signal(SignalKind::hangup())
                .context("SIGHUP")
                .with_status(Status::Io)?,
            _file_size: signal(SignalKind::from_raw(FILE_SIZE))
                .context("SIGXFSZ")
                .with_status(Status::Io)?,
        })
    }

    /// The name of the next one that ends the daemon; each SIGHUP before it reloads.
    pub(super) async fn next(&mut self, mut reload: impl FnMut()) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hangup.recv() => reload(),
            }
        }
    }
}
