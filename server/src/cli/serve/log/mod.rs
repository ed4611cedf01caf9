//! The daemon's log on stderr.

mod queue;

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use self::queue::Queue;
use crate::config::Config;
use crate::exit::{Status, WithStatus};

/// How long the end waits until the log is read.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// A log that has been started. What was logged is written when this is dropped, however the daemon ends.
pub(super) struct Log {
    set: Box<dyn Fn(EnvFilter) -> bool>,
    queue: Queue,
}

impl Log {
    /// Starts it.
    ///
    /// # Errors
    /// The system gives no thread (74).
    pub(super) fn start(config: &Config) -> anyhow::Result<Self> {
        // A panic is contained where it happens; here it is told in the form of everything else.
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("without a word");
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(panic = message, place, "a defect");
        }));
        let queue = Queue::spawn(io::stderr(), |lines| {
            tracing::warn!(lines, "the log was not read: so many lines are lost");
        });
        let queue = queue.context("no thread for the log").with_status(Status::Io)?;
        let lines = queue.clone();
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter(config))
            .with_writer(move || lines.clone())
            .with_ansi(io::stderr().is_terminal());
        // Started once; a second time changes nothing.
        if config.text("log.format") == Some("json") {
            let log = log.json().with_filter_reloading();
            let handle = log.reload_handle();
            let _ = log.try_init();
            return Ok(Self {
                set: Box::new(move |filter| handle.reload(filter).is_ok()),
                queue,
            });
        }
        let log = log.with_target(false).with_filter_reloading();
        let handle = log.reload_handle();
        let _ = log.try_init();
        Ok(Self {
            set: Box::new(move |filter| handle.reload(filter).is_ok()),
            queue,
        })
    }

    /// Takes the level of another configuration.
    pub(super) fn reload(&self, config: &Config) {
        (self.set)(filter(config));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.flush_within(FLUSH_MAX);
    }
}

/// RUST_LOG wins over the level of the configuration.
fn filter(config: &Config) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        let level = config.text("log.level").unwrap_or_default();
        EnvFilter::try_new(level).expect("a configuration holds no other level")
    })
}
