//! How a daemon ends (spec 10): everybody is told when, nobody new comes in, then everybody is told that it is over.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

use super::Directory;
use super::signals::Signals;
use crate::location::Input;

/// How often is looked whether everybody has gone before the deadline.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How far the end has come.
pub(super) struct Ending<'a> {
    pub(super) directory: &'a Directory,
    /// From the announcement to the end.
    pub(super) drain: Duration,
    pub(super) draining_until: Option<Instant>,
    pub(super) stopping: bool,
}

impl Ending<'_> {
    /// Returns when all locations have ended, by themselves, because a signal came or because an operator said so. A
    /// failing disk is the failure of all.
    pub(super) async fn wait(
        mut self,
        mut signals: Signals,
        mut reload: impl FnMut(),
        mut drains: UnboundedReceiver<()>,
        mut ends: UnboundedReceiver<bool>,
    ) {
        let mut running = self.directory.iter().count();
        while running > 0 {
            let next_look = self.draining_until.map_or_else(
                || Instant::now() + Duration::from_secs(3_600),
                |until| until.min(Instant::now() + LOOK_EVERY),
            );
            tokio::select! {
                ended = ends.recv() => {
                    running -= 1;
                    if ended == Some(false) {
                        self.stop();
                    }
                }
                signal = signals.next(&mut reload) => self.end(signal),
                Some(()) = drains.recv() => {
                    if self.draining_until.is_none() {
                        self.end("an operator's word");
                    }
                }
                () = sleep_until(next_look) => self.look(),
            }
        }
    }

    /// The first time is the announcement, the second one the end.
    fn end(&mut self, why: &str) {
        if self.stopping {
            // It must not leave a journal that was not closed.
            tracing::warn!("{why}: stopping already, the journal is being closed");
        } else if self.draining_until.is_some() || self.drain.is_zero() {
            tracing::info!("{why}: stopping");
            self.stop();
        } else {
            tracing::info!("{why}: stopping in {} s", self.drain.as_secs());
            self.draining_until = Some(Instant::now() + self.drain);
            let drain_us = u64::try_from(self.drain.as_micros()).unwrap_or(u64::MAX);
            for place in self.directory.iter() {
                place.drain(place.handle.now_us().saturating_add(drain_us));
            }
        }
    }

    fn look(&mut self) {
        let Some(until) = self.draining_until.filter(|_| !self.stopping) else {
            return;
        };
        // What a location says of itself may be older than the announcement; then it does not count.
        let empty = self.directory.iter().all(|place| {
            let status = place.handle.status();
            place.condition().down.is_some() || (status.draining && status.connections() == 0)
        });
        if empty || Instant::now() >= until {
            tracing::info!("stopping");
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.draining_until = None;
        for place in self.directory.iter() {
            place.handle.send(Input::Stop);
        }
    }
}
