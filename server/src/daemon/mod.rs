//! The daemon: binds its address, opens its journal, runs its location and ends in order.
//!
//! What it is to do is [`Settings`], wherever they came from; what it says on stdout is its caller's.

mod settings;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use protocol::Bundle;
use sim::Definition;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::settings::{JournalSettings, LocationSettings, Settings};
use self::signals::Signals;
use crate::admission::bans::Bans;
use crate::admission::gate::Gate;
use crate::admission::{Admission, TlsSettings, unix_seconds};
use crate::exit::{Failure, Status, WithStatus};
use crate::journal::run::run_name;
use crate::journal::upkeep::Upkeep;
use crate::journal::{self, OpenOptions, Opened};
use crate::listener::{self, Entrance};
use crate::location::investigator::{self, Folder};
use crate::location::task::{self, Handle, Report};
use crate::location::{Input, Start};
use crate::location_files::LocationFiles;
use crate::tls::Tls;

/// How long connections may take to end once they have been told.
const FAREWELL: Duration = Duration::from_secs(3);

/// A daemon that has everything it needs: its address is bound, its journal open, its signals caught.
pub(crate) struct Daemon {
    settings: Settings,
    definition: Definition,
    bundle: Bundle,
    opened: Opened,
    runtime: Runtime,
    listener: TcpListener,
    signals: Signals,
    entry: Entry,
}

impl Daemon {
    /// Checks the settings and takes what they name.
    ///
    /// # Errors
    /// Refused settings or location files (78), damaged (65) or failing (74) journal.
    pub(crate) fn prepare(settings: Settings) -> anyhow::Result<Self> {
        check_addresses(&settings)?;
        let entry = Entry::load(&settings)?;
        let (definition, bundle) = load(&settings.location)?;
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
        let opened = open(&settings.journal, &definition, &bundle)?;
        Ok(Self {
            settings,
            definition,
            bundle,
            opened,
            runtime,
            listener,
            signals,
            entry,
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

    /// What the location is.
    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What its journal holds.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Serves until a signal comes, the ticks are over or the journal cannot be kept.
    ///
    /// # Errors
    /// A failing disk (74); a location that failed.
    pub(crate) fn run(self) -> anyhow::Result<Report> {
        crate::descriptors::raise_limit();
        let runtime = self.runtime;
        let report = runtime.block_on(serve(
            &self.settings,
            self.listener,
            self.signals,
            self.entry,
            self.opened,
            &self.bundle,
        ))?;
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(report)
    }
}

fn check_addresses(settings: &Settings) -> anyhow::Result<()> {
    for (flag, address) in [("--listen", settings.listen), ("--http", settings.http)] {
        settings
            .admission
            .check_address(flag, address)
            .with_status(Status::Refused)?;
    }
    Ok(())
}

/// What an operator can change while the daemon runs: keys, certificate, bans.
struct Entry {
    admission: Arc<Admission>,
    tls: Option<Arc<Tls>>,
    bans: Arc<Bans>,
}

impl Entry {
    fn load(settings: &Settings) -> anyhow::Result<Self> {
        let admission = Admission::load(&settings.admission).context("ticket key");
        let tls = match &settings.admission.tls {
            TlsSettings::Files { certificate, key } => {
                let tls = Tls::load(certificate.clone(), key.clone()).context("TLS");
                Some(Arc::new(tls.with_status(Status::Refused)?))
            }
            TlsSettings::Off | TlsSettings::Proxy => None,
        };
        let bans = Bans::load(&settings.journal.data_dir).with_status(Status::Refused)?;
        Ok(Self {
            admission: Arc::new(admission.with_status(Status::Refused)?),
            tls,
            bans: Arc::new(bans),
        })
    }

    /// Reads everything again; what cannot be read stays as it was.
    fn reload(&self, settings: &Settings, location: &Handle) {
        let done = |what: &str, result: anyhow::Result<()>| match result {
            Ok(()) => tracing::info!("SIGHUP: {what} read again"),
            Err(error) => tracing::error!("SIGHUP: {what} stay as they were: {error:#}"),
        };
        done("ticket keys", self.admission.reload());
        if let Some(tls) = &self.tls {
            done("TLS certificate and key", tls.reload());
        }
        let bans = Bans::load(&settings.journal.data_dir).map(|bans| {
            location.send(Input::Bans {
                bans: Arc::new(bans),
                unix_seconds: unix_seconds(),
            });
        });
        done("bans", bans);
    }
}

/// Location and maps, checked, and as the bundle that the journal keeps and clients may ask for.
fn load(settings: &LocationSettings) -> anyhow::Result<(Definition, Bundle)> {
    let files = match &settings.file {
        Some(path) => LocationFiles::read(path).with_status(Status::Refused)?,
        None => LocationFiles::demo(),
    };
    let definition = files
        .definition(settings.tick_rate, settings.bots)
        .with_status(Status::Refused)?;
    let bundle = Bundle::new(files.location, settings.tick_rate, settings.bots, files.maps)
        .with_context(|| files.file)
        .with_status(Status::Refused)?;
    Ok((definition, bundle))
}

fn open(settings: &JournalSettings, definition: &Definition, bundle: &Bundle) -> anyhow::Result<Opened> {
    let opened = journal::open(&OpenOptions {
        data_dir: &settings.data_dir,
        location: definition.name(),
        bundle,
        definition,
        new_run: settings.new_run,
        recover: settings.recover,
    });
    opened.map_err(|error| {
        anyhow::Error::new(Failure {
            status: error.status(),
            error: error.into(),
        })
    })
}

async fn serve(
    settings: &Settings,
    listener: TcpListener,
    signals: Signals,
    entry: Entry,
    opened: Opened,
    bundle: &Bundle,
) -> anyhow::Result<Report> {
    let (ended, end) = oneshot::channel();
    let (run, bundle) = (opened.run, bundle.encode());
    let definition = opened.world.definition().clone();
    let reports = reports_folder(settings, &definition, opened.run_number);
    let kept = Folder::new(reports.clone(), run, &definition, &bundle);
    let start = Start {
        world: opened.world,
        run,
        bundle,
        sessions: opened.sessions,
        answers: opened.answers,
        last_session: opened.last_session,
        leave: opened.leave,
        reports_max: settings
            .location
            .desync_reports_max
            .saturating_sub(investigator::reports_in(&reports)),
        nonces: opened.nonces,
        bans: Arc::clone(&entry.bans),
        rules: settings.location.rules.clone(),
    };
    let task_settings = task::Settings {
        epoch: Instant::now(),
        ticks_max: settings.ticks_max,
        ahead_max: Duration::from_millis(settings.journal.ahead_ms_max),
        reports: Some(kept),
    };
    let folder = settings.journal.data_dir.join(start.world.definition().name());
    let upkeep = Upkeep::spawn(folder, settings.journal.retention)
        .context("no thread for packing the journal")
        .with_status(Status::Io)?;
    let policy = settings.journal.policy(start.world.definition().tick_rate());
    let journal = task::Journal::Kept(Box::new(opened.journal), policy);
    let (location, thread) = task::spawn(start, journal, task_settings, move || {
        // Nobody waits for it any more once a signal has come.
        let _ = ended.send(());
    })
    .context("no thread for the location")
    .with_status(Status::Io)?;
    let (alive, mut all_gone) = mpsc::channel(1);
    let entrance = Entrance {
        gate: Gate::new(settings.admission.limits, crate::descriptors::connections_max()),
        admission: Arc::clone(&entry.admission),
        tls: entry.tls.clone(),
        location: location.clone(),
    };
    let accepting = tokio::spawn(listener::accept(listener, entrance, alive));
    let reload = || entry.reload(settings, &location);
    wait_for_end(&location, signals, reload, end).await?;
    accepting.abort();
    let report = tokio::task::spawn_blocking(move || thread.join())
        .await
        .context("waiting for the location")?
        .map_err(|_| anyhow!("the location failed: a defect, please report it"))?
        .context("the journal could not be kept to its end; what it could not keep was not acknowledged")
        .with_status(Status::Io);
    // What it is doing can be interrupted anywhere; the next start goes on with it.
    drop(upkeep);
    // Connections end by themselves; a peer that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, all_gone.recv()).await;
    report
}

/// Where the Worlds of a run that differ are kept: `DATA/LOCATION/run-000001/desyncs`.
fn reports_folder(settings: &Settings, definition: &Definition, run: u64) -> PathBuf {
    let location = settings.journal.data_dir.join(definition.name());
    location.join(run_name(run)).join("desyncs")
}

/// Returns when the location has ended, by itself or because a signal came.
async fn wait_for_end(
    location: &Handle,
    mut signals: Signals,
    reload: impl Fn(),
    end: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut end = std::pin::pin!(end);
    tokio::select! {
        _ = &mut end => return Ok(()),
        signal = signals.next(&reload) => tracing::info!("{signal}: stopping"),
    }
    location.send(Input::Stop);
    // It goes on to its end: a second signal must not leave a journal that was not closed.
    loop {
        tokio::select! {
            _ = &mut end => return Ok(()),
            signal = signals.next(&reload) => tracing::warn!("{signal}: stopping already, the journal is being closed"),
        }
    }
}
