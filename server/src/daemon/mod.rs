//! The daemon: binds its address, opens its journals, runs its locations and ends in order.
//!
//! What it is to do is [`Settings`], wherever they came from; what it says on stdout is its caller's.

mod directory;
mod doors;
mod location;
mod settings;
mod signals;
mod supervisor;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub(crate) use self::directory::Directory;
use self::doors::Doors;
use self::location::Loaded;
pub(crate) use self::location::Prepared;
pub(crate) use self::settings::{Idle, JournalSettings, LocationSettings, Settings};
use self::signals::Signals;
pub(crate) use self::supervisor::LocationReport;
use self::supervisor::Supervisor;
use crate::admission::gate::Gate;
use crate::exit::{Status, WithStatus};
use crate::listener::{self, Entrance};
use crate::location::task;
use crate::location::{Input, Rules};

/// How long connections may take to end once they have been told.
const FAREWELL: Duration = Duration::from_secs(3);

/// A daemon that has everything it needs: its address is bound, its journals open, its signals caught.
pub(crate) struct Daemon {
    settings: Settings,
    locations: Vec<Prepared>,
    runtime: Runtime,
    listener: TcpListener,
    signals: Signals,
    doors: Doors,
}

impl Daemon {
    /// Checks the settings and takes what they name.
    ///
    /// # Errors
    /// Refused settings or location files (78), damaged (65) or failing (74) journal.
    pub(crate) fn prepare(settings: Settings) -> anyhow::Result<Self> {
        check_addresses(&settings)?;
        let doors = Doors::load(&settings)?;
        let loaded = load(&settings)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("no threads for the network")
            .with_status(Status::Io)?;
        let listener = runtime
            .block_on(TcpListener::bind(settings.listen))
            .with_context(|| format!("{}: cannot listen", settings.listen))
            .with_status(Status::Refused)?;
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
            signals,
            doors,
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

    /// The locations, the first of them first.
    pub(crate) fn locations(&self) -> impl Iterator<Item = &Prepared> {
        self.locations.iter()
    }

    /// Serves until a signal comes, the ticks are over or a journal cannot be kept. At each SIGHUP `reload` gives the rules of
    /// each location anew.
    ///
    /// # Errors
    /// A failing disk (74); a location that stayed down.
    pub(crate) fn run(self, reload: impl FnMut() -> Vec<Rules>) -> anyhow::Result<Vec<LocationReport>> {
        crate::descriptors::raise_limit();
        let runtime = self.runtime;
        let reports = runtime.block_on(serve(
            &self.settings,
            self.listener,
            self.signals,
            self.doors,
            self.locations,
            reload,
        ))?;
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(reports)
    }
}

fn check_addresses(settings: &Settings) -> anyhow::Result<()> {
    let http = settings.http.map(|address| ("--http", address));
    for (flag, address) in [("--listen", settings.listen)].into_iter().chain(http) {
        settings
            .admission
            .check_address(flag, address)
            .with_status(Status::Refused)?;
    }
    Ok(())
}

/// Reads the files of all locations.
fn load(settings: &Settings) -> anyhow::Result<Vec<Loaded>> {
    let mut all: Vec<Loaded> = Vec::new();
    for location in &settings.locations {
        let loaded = Loaded::load(location.clone())?;
        if all.iter().any(|other| other.name() == loaded.name()) {
            return Err(anyhow!(
                "two locations are called {}; their names must differ",
                loaded.name()
            ))
            .with_status(Status::Refused);
        }
        all.push(loaded);
    }
    Ok(all)
}

async fn serve(
    settings: &Settings,
    listener: TcpListener,
    signals: Signals,
    doors: Doors,
    locations: Vec<Prepared>,
    mut reload: impl FnMut() -> Vec<Rules>,
) -> anyhow::Result<Vec<LocationReport>> {
    let epoch = Instant::now();
    let ways: Vec<(String, task::Handle, task::Queue)> = locations
        .iter()
        .map(|location| {
            let (handle, queue) = task::channel(epoch);
            (location.definition().name().to_owned(), handle, queue)
        })
        .collect();
    let named = ways
        .iter()
        .map(|(name, handle, _)| (name.clone(), handle.clone()));
    let directory = Directory::new(named);
    let (ended, ends) = mpsc::unbounded_channel();
    let mut threads = Vec::new();
    for (place, (location, (_, _, queue))) in locations.into_iter().zip(ways).enumerate() {
        let (loaded, opened) = location.into_parts();
        let supervisor = Supervisor {
            place,
            directory: directory.clone(),
            queue,
            epoch,
            journal: settings.journal.clone(),
            ticks_max: settings.ticks_max,
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
        gate: Gate::new(settings.admission.limits, crate::descriptors::connections_max()),
        admission: Arc::clone(&doors.admission),
        tls: doors.tls.clone(),
        directory: directory.clone(),
    };
    let accepting = tokio::spawn(listener::accept(listener, entrance, alive));
    let reload = || {
        doors.reload(&settings.journal.data_dir, &directory);
        for (place, rules) in directory.iter().zip(reload()) {
            place.handle.send(Input::Rules(Box::new(rules)));
        }
    };
    wait_for_end(&directory, signals, reload, ends).await;
    accepting.abort();
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

/// Returns when all locations have ended, by themselves or because a signal came. A failing disk is the failure of all.
async fn wait_for_end(
    directory: &Directory,
    mut signals: Signals,
    mut reload: impl FnMut(),
    mut ends: mpsc::UnboundedReceiver<bool>,
) {
    let stop_all = || {
        for place in directory.iter() {
            place.handle.send(Input::Stop);
        }
    };
    let (mut running, mut stopping) = (directory.iter().count(), false);
    while running > 0 {
        tokio::select! {
            ended = ends.recv() => {
                running -= 1;
                if ended == Some(false) {
                    stop_all();
                }
            }
            signal = signals.next(&mut reload) => {
                if stopping {
                    // It must not leave a journal that was not closed.
                    tracing::warn!("{signal}: stopping already, the journal is being closed");
                } else {
                    tracing::info!("{signal}: stopping");
                    stopping = true;
                    stop_all();
                }
            }
        }
    }
}
