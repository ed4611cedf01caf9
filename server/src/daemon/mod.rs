//! The daemon: binds its address, opens its journals, runs its locations and ends in order.
//!
//! What it is to do is [`Settings`], wherever they came from; what it says on stdout is its caller's.

mod directory;
mod doors;
mod ending;
mod location;
mod settings;
mod signals;
mod supervisor;
mod travels;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub(crate) use self::directory::{Condition, Directory, Place};
pub(crate) use self::doors::Doors;
use self::ending::Ending;
use self::location::Basis;
pub(crate) use self::location::{Loaded, Prepared};
pub(crate) use self::settings::{JournalSettings, LocationSettings, Settings};
use self::signals::Signals;
pub(crate) use self::supervisor::LocationReport;
use self::supervisor::Supervisor;
use crate::admission::gate::Gate;
use crate::descriptors::{self, Room};
use crate::exit::{Status, WithStatus};
use crate::http;
use crate::listener::{self, Entrance};
use crate::location::SessionNumbers;
use crate::location::task;

/// How long connections may take to end once they have been told.
const FAREWELL: Duration = Duration::from_secs(3);

/// Settings that hold together, and what they name, read; nothing is bound or written yet.
pub(crate) struct Checked {
    /// What was said.
    pub(crate) settings: Settings,
    /// Keys, certificate and bans.
    pub(crate) doors: Doors,
    /// The locations, whose names differ.
    pub(crate) locations: Vec<Loaded>,
}

/// A daemon that has everything it needs: its address is bound, its journals open, its signals caught.
pub(crate) struct Daemon {
    settings: Settings,
    locations: Vec<Prepared>,
    runtime: Runtime,
    listener: TcpListener,
    http: Option<TcpListener>,
    signals: Signals,
    doors: Doors,
    room: Room,
}

impl Daemon {
    /// Binds the addresses and opens the journals.
    ///
    /// # Errors
    /// An address or a data folder that is taken (78), damaged (65) or failing (74) journal.
    pub(crate) fn prepare(checked: Checked) -> anyhow::Result<Self> {
        let Checked {
            settings,
            doors,
            locations: loaded,
        } = checked;
        descriptors::raise_limit();
        let room = descriptors::room(settings.locations.len(), settings.http.is_some())
            .context("the limit of open files (ulimit -n) leaves no room for connections")
            .with_status(Status::Refused)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("no threads for the network")
            .with_status(Status::Io)?;
        let bind = |address: SocketAddr| {
            let bound = runtime.block_on(TcpListener::bind(address));
            let bound = bound.with_context(|| format!("{address}: cannot listen"));
            bound.with_status(Status::Refused)
        };
        let listener = bind(settings.listen)?;
        let http = settings
            .http
            .as_ref()
            .map(|http| bind(http.address))
            .transpose()?;
        // Before anything is written, and before anybody is told that it runs: from then on a signal ends it in order.
        let signals = runtime.block_on(async { Signals::install() })?;
        let mut locations = Vec::new();
        for loaded in loaded {
            locations.push(Prepared::open(loaded, &settings.journal)?);
        }
        Ok(Self {
            settings,
            locations,
            runtime,
            listener,
            http,
            signals,
            doors,
            room,
        })
    }

    /// The address of the game.
    ///
    /// # Errors
    /// The system does not know it.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.listener.local_addr().context("the address listened on");
        address.with_status(Status::Io)
    }

    /// The address of admin, health and metrics.
    ///
    /// # Errors
    /// The system does not know it.
    pub(crate) fn http_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        let address = self.http.as_ref().map(TcpListener::local_addr).transpose();
        address
            .context("the address of the admin pages")
            .with_status(Status::Io)
    }

    /// The locations, the first of them first.
    pub(crate) fn locations(&self) -> impl Iterator<Item = &Prepared> {
        self.locations.iter()
    }

    /// Serves until a signal comes, the ticks are over or a journal cannot be kept. At each SIGHUP `reload` gives the settings
    /// anew, if they can be had; the rules of the locations and the token of the admin pages are taken.
    ///
    /// # Errors
    /// A failing disk (74); a location that stayed down.
    pub(crate) fn run(self, reload: impl FnMut() -> Option<Settings>) -> anyhow::Result<Vec<LocationReport>> {
        let runtime = self.runtime;
        let reports = runtime.block_on(serve(
            &self.settings,
            (self.listener, self.http),
            self.signals,
            (Arc::new(self.doors), self.room),
            self.locations,
            reload,
        ))?;
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(reports)
    }
}

async fn serve(
    settings: &Settings,
    (listener, http): (TcpListener, Option<TcpListener>),
    signals: Signals,
    (doors, room): (Arc<Doors>, Room),
    locations: Vec<Prepared>,
    mut reload: impl FnMut() -> Option<Settings>,
) -> anyhow::Result<Vec<LocationReport>> {
    let epoch = Instant::now();
    let ways: Vec<(task::Handle, task::Queue)> = locations.iter().map(|_| task::channel(epoch)).collect();
    let named = locations.iter().zip(&ways).map(|(location, (handle, _))| {
        let (definition, rules) = (location.definition(), location.rules().clone());
        let name = definition.name().to_owned();
        Place::new(name, definition.tick_rate(), handle.clone(), rules)
    });
    let directory = Directory::new(named);
    let bases: Arc<[Basis]> = locations.iter().map(|location| location.loaded.basis()).collect();
    let (ended, ends) = mpsc::unbounded_channel();
    let numbers = SessionNumbers::default();
    let mut threads = Vec::new();
    for (place, (location, (_, queue))) in locations.into_iter().zip(ways).enumerate() {
        let (loaded, opened) = location.into_parts();
        let supervisor = Supervisor {
            place,
            directory: directory.clone(),
            queue,
            epoch,
            journal: settings.journal.clone(),
            ticks_max: settings.ticks_max,
            numbers: numbers.clone(),
            bans: Arc::clone(&doors.bans),
            loaded,
        };
        let thread = supervisor
            .spawn(opened, ended.clone())
            .context("no thread for the location")
            .with_status(Status::Io)?;
        threads.push(thread);
    }
    let (alive, mut all_gone) = mpsc::channel(1);
    let entrance = Entrance {
        gate: Gate::new(settings.admission.limits, room.connections),
        admission: Arc::clone(&doors.admission),
        tls: doors.tls.clone(),
        directory: directory.clone(),
    };
    let accepting = tokio::spawn(listener::accept(listener, entrance, alive));
    let guard = settings
        .http
        .as_ref()
        .map(|http| Arc::new(http::Guard::new(http)));
    let reload = || {
        doors.reload(&settings.journal.data_dir, &directory);
        let bases = Arc::clone(&bases);
        tokio::task::spawn_blocking(move || bases.iter().for_each(Basis::compare));
        let Some(again) = reload() else { return };
        for (place, location) in directory.iter().zip(again.locations) {
            place.rule(location.rules);
        }
        if let (Some(guard), Some(http)) = (&guard, again.http) {
            guard.exchange(http.token.as_deref());
        }
    };
    let (drain, drains) = mpsc::unbounded_channel();
    let pages = http.zip(guard.clone()).map(|(listener, guard)| {
        let pages = http::Pages {
            directory: directory.clone(),
            doors: Arc::clone(&doors),
            data_dir: settings.journal.data_dir.clone(),
            drain: drain.clone(),
        };
        tokio::spawn(http::serve(
            (listener, room.pages),
            guard,
            doors.http_tls.clone(),
            pages,
        ))
    });
    let ending = Ending {
        directory: &directory,
        drain: settings.drain,
        draining_until: None,
        stopping: false,
    };
    ending.wait(signals, reload, drains, ends).await;
    accepting.abort();
    if let Some(pages) = pages {
        pages.abort();
    }
    let joined = tokio::task::spawn_blocking(move || {
        threads
            .into_iter()
            .map(|thread| thread.join())
            .collect::<Vec<_>>()
    })
    .await
    .context("waiting for the locations")?;
    let mut reports = Vec::new();
    let mut failure = None;
    for result in joined {
        match result.map_err(|_| anyhow!("a location's thread failed: a defect, please report it"))? {
            Ok(report) => reports.push(report),
            Err(fatal) => failure = failure.or(Some(fatal)),
        }
    }
    // Connections end by themselves; a peer that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, all_gone.recv()).await;
    match failure {
        None => Ok(reports),
        Some(fatal) => Err(fatal)
            .context("the journal could not be kept to its end; what it could not keep was not acknowledged")
            .with_status(Status::Io),
    }
}
