//! A location before it runs: its files read and checked, its journal open.

use anyhow::Context;
use protocol::Bundle;
use sim::Definition;

use super::{JournalSettings, LocationSettings};
use crate::exit::{Failure, Status, WithStatus};
use crate::journal::{self, OpenError, OpenOptions, Opened};
use crate::location::Rules;
use crate::location_files::LocationFiles;

/// Location and maps, checked, and as the bundle that the journal keeps and clients may ask for.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(super) settings: LocationSettings,
    pub(super) definition: Definition,
    pub(super) bundle: Bundle,
}

impl Loaded {
    /// Reads its files.
    ///
    /// # Errors
    /// Every problem in them (78).
    pub(super) fn load(settings: LocationSettings) -> anyhow::Result<Self> {
        let files = match &settings.file {
            Some(path) => LocationFiles::read(path).with_status(Status::Refused)?,
            None => LocationFiles::demo(),
        };
        let (tick_rate, bots) = (settings.tick_rate, settings.bots);
        let definition = files.definition(tick_rate, bots).with_status(Status::Refused)?;
        let bundle = Bundle::new(files.location, tick_rate, bots, files.maps)
            .with_context(|| files.file)
            .with_status(Status::Refused)?;
        Ok(Self {
            settings,
            definition,
            bundle,
        })
    }

    /// What clients and folders call it.
    pub(crate) fn name(&self) -> &str {
        self.definition.name()
    }

    /// Opens its journal; `again`: it ran already in this process, so nobody asks for a new run or gives anything up.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(super) fn open(&self, settings: &JournalSettings, again: bool) -> Result<Opened, OpenError> {
        journal::open(&OpenOptions {
            data_dir: &settings.data_dir,
            location: self.name(),
            bundle: &self.bundle,
            definition: &self.definition,
            new_run: settings.new_run && !again,
            same_definition: settings.same_definition,
            recover: settings.recover && !again,
        })
    }
}

/// A location that can be started.
pub(crate) struct Prepared {
    pub(super) loaded: Loaded,
    pub(super) opened: Opened,
}

impl Prepared {
    /// Opens the journal of a location.
    ///
    /// # Errors
    /// A journal that is damaged (65), in use (78) or cannot be read or written (74).
    pub(super) fn open(loaded: Loaded, settings: &JournalSettings) -> anyhow::Result<Self> {
        let opened = loaded.open(settings, false).map_err(|error| Failure {
            status: error.status(),
            error: error.into(),
        })?;
        Ok(Self { loaded, opened })
    }

    /// What the location is.
    pub(crate) fn definition(&self) -> &Definition {
        &self.loaded.definition
    }

    /// What its operator decided.
    pub(super) fn rules(&self) -> &Rules {
        &self.loaded.settings.rules
    }

    /// What its journal holds.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }
}
