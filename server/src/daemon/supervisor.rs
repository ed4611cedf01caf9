//! A location's thread, from the daemon's start to its end: what fails in one location stays there (spec 10).
//!
//! A panic is a defect, but it is this location's alone: everybody in it is told and sent away, and it starts again from its
//! journal, in which the turn that failed is not. Three of them within a minute: it stays down, and says so. A journal that
//! cannot be kept is the disk's failure, and so the daemon's.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use protocol::Code;
use tokio::sync::mpsc;

use super::JournalSettings;
use super::directory::Directory;
use super::location::{Loaded, Prepared};
use crate::admission::bans::Bans;
use crate::exit::Status;
use crate::journal::run::run_name;
use crate::journal::upkeep::Upkeep;
use crate::journal::{OpenError, Opened};
use crate::location::investigator::{self, Folder};
use crate::location::outbox::Parcel;
use crate::location::task::{self, Failed, Handle, Queue, Report};
use crate::location::{Input, SessionNumbers, Start};

/// So many failures …
const FAILURES_MAX: usize = 3;
/// … within this time, and a location stays down.
const FAILURES_WINDOW: Duration = Duration::from_secs(60);

/// What a location has done until the daemon's end.
#[derive(Debug)]
pub(crate) struct LocationReport {
    /// Its name.
    pub(crate) name: String,
    /// Since it was started last.
    pub(crate) report: Report,
    /// How often it failed and was started again.
    pub(crate) restarts: u64,
    /// Why it did not run any more at the end.
    pub(crate) down: Option<String>,
}

/// Why the daemon has to end: its disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fatal {
    #[error("location {0}: {1}")]
    Running(String, Failed),
    #[error("location {0}: {1}")]
    Opening(String, OpenError),
}

/// One location and what its thread needs.
pub(super) struct Supervisor {
    pub(super) place: usize,
    pub(super) directory: Directory,
    pub(super) queue: Queue,
    pub(super) epoch: Instant,
    pub(super) journal: JournalSettings,
    pub(super) ticks_max: Option<u64>,
    /// Shared by all locations.
    pub(super) numbers: SessionNumbers,
    /// As they are now.
    pub(super) bans: Arc<Mutex<Arc<Bans>>>,
    pub(super) loaded: Loaded,
}

impl Supervisor {
    /// Starts the thread; it says at its end whether the daemon may go on without it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn spawn(
        self,
        opened: Opened,
        ended: mpsc::UnboundedSender<bool>,
    ) -> io::Result<JoinHandle<Result<LocationReport, Fatal>>> {
        thread::Builder::new()
            .name(format!("location-{}", self.loaded.name()))
            .spawn(move || {
                let span = tracing::info_span!("location", name = self.loaded.name());
                let _inside = span.enter();
                let result = self.run(opened);
                // Nobody waits for it any more once the daemon ends.
                let _ = ended.send(result.is_ok());
                result
            })
    }

    fn run(self, opened: Opened) -> Result<LocationReport, Fatal> {
        let mut first_tick = opened.world.tick();
        let mut ticks_of_runs = 0;
        let mut failures = VecDeque::new();
        let mut opened = opened;
        let (report, down) = loop {
            if !opened.fresh {
                self.this().recovered();
            }
            let (tick, digest) = (opened.world.tick(), opened.world.digest());
            let done = ticks_of_runs + (tick - first_tick);
            let ticks_left = self.ticks_max.map(|ticks| ticks.saturating_sub(done));
            let reason = match self.run_once(opened, ticks_left) {
                Ok(report) if report.run_ended => {
                    ticks_of_runs += report
                        .last_tick
                        .map_or(0, |last| last + 1)
                        .saturating_sub(first_tick);
                    first_tick = 0;
                    opened = match self.loaded.open(&self.journal, true) {
                        Ok(opened) => opened,
                        Err(error) => return Err(Fatal::Opening(self.loaded.name().to_owned(), error)),
                    };
                    tracing::warn!(
                        run = opened.run_number,
                        "a new run begins: an operator asked for it"
                    );
                    continue;
                }
                Ok(report) => break (report, None),
                Err(Failed::Panicked(reason)) => reason,
                Err(failed) => return Err(Fatal::Running(self.loaded.name().to_owned(), failed)),
            };
            let now = Instant::now();
            failures.push_back(now);
            failures.retain(|failure| now.duration_since(*failure) < FAILURES_WINDOW);
            tracing::error!(
                failures = failures.len(),
                reason,
                "the location failed: a defect, please report it"
            );
            if failures.len() >= FAILURES_MAX {
                let reason = format!(
                    "failed {FAILURES_MAX} times in {} s, last with: {reason}",
                    FAILURES_WINDOW.as_secs()
                );
                break (self.stay_down(&reason, tick, digest), Some(reason));
            }
            opened = match self.loaded.open(&self.journal, true) {
                Ok(opened) => opened,
                Err(error) if error.status() == Status::Io => {
                    return Err(Fatal::Opening(self.loaded.name().to_owned(), error));
                }
                Err(error) => {
                    let reason = format!("failed and cannot be started again: {error}");
                    break (self.stay_down(&reason, tick, digest), Some(reason));
                }
            };
            self.this().restarted();
            tracing::warn!(
                tick = opened.world.tick(),
                digest = format_args!("{:016x}", opened.world.digest()),
                "started again from its journal"
            );
        };
        Ok(LocationReport {
            name: self.loaded.name().to_owned(),
            report,
            restarts: self.this().condition().restarts,
            down,
        })
    }

    fn run_once(&self, opened: Opened, ticks_max: Option<u64>) -> Result<Report, Failed> {
        let definition = opened.world.definition().clone();
        let bundle = self.loaded.bundle.encode();
        let location = &self.loaded.settings;
        let orders = self.this().orders();
        let folder = self.journal.data_dir.join(self.loaded.name());
        let reports = folder.join(run_name(opened.run_number)).join("desyncs");
        let bans = self.bans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let settings = task::Settings {
            epoch: self.epoch,
            ticks_max,
            ahead_max: Duration::from_millis(self.journal.ahead_ms_max),
            reports: Some(Folder::new(reports.clone(), opened.run, &definition, &bundle)),
            shadow: location.shadow,
        };
        let start = Start {
            world: opened.world,
            run: opened.run,
            bundle,
            sessions: opened.sessions,
            answers: opened.answers,
            last_session: opened.last_session,
            leave: opened.leave,
            borrowed: opened.borrowed,
            reports_max: location
                .desync_reports_max
                .saturating_sub(investigator::reports_in(&reports)),
            nonces: opened.nonces,
            bans,
            rules: orders.rules,
            draining_until_us: orders.draining_until_us,
            numbers: self.numbers.clone(),
        };
        let upkeep = Upkeep::spawn(folder, self.journal.retention)?;
        let policy = self.journal.policy(start.world.definition().tick_rate());
        let journal = task::Journal::Kept(Box::new(opened.journal), policy);
        let result = task::run(start, journal, settings, self.handle(), &self.queue);
        // What it is doing can be interrupted anywhere; the next start goes on with it.
        drop(upkeep);
        result
    }

    /// Refuses everybody until the daemon ends.
    fn stay_down(&self, reason: &str, tick: u64, digest: u64) -> Report {
        tracing::error!(reason, "the location stays down");
        self.this().goes_down(reason.to_owned());
        while let Some(envelope) = self.queue.next() {
            match (envelope.input, envelope.entrant) {
                (Input::Stop, _) => break,
                (Input::Enter { .. }, Some(entrant)) => {
                    let (code, message) = (Code::REJECT_BUSY, "the location is down");
                    entrant
                        .taken()
                        .push(Parcel::Reject { code, message }, Instant::now());
                }
                _ => {}
            }
        }
        Report::nothing(tick, digest)
    }

    fn this(&self) -> &super::directory::Place {
        self.directory
            .iter()
            .nth(self.place)
            .expect("the directory has every location")
    }

    fn handle(&self) -> &Handle {
        &self.this().handle
    }
}

impl Prepared {
    /// Apart, for its supervisor.
    pub(super) fn into_parts(self) -> (Loaded, Opened) {
        (self.loaded, self.opened)
    }
}
