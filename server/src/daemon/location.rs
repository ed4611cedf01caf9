//! A location before it runs: its files read and checked, its journal open.

use nav::Problems;
use protocol::Bundle;
use sim::Definition;

use super::{JournalSettings, LocationSettings};
use crate::exit::Failure;
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
    /// Every problem in them.
    pub(crate) fn load(settings: LocationSettings) -> Result<Self, Problems> {
        let (file, bundle) = read(&settings)?;
        let definition = bundle.definition(&file)?;
        Ok(Self {
            settings,
            definition,
            bundle,
        })
    }

    /// To look at its files again when this is gone.
    pub(super) fn basis(&self) -> Basis {
        Basis {
            name: self.name().to_owned(),
            settings: self.settings.clone(),
            hash: self.bundle.hash(),
        }
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

/// What a running location was made of.
pub(super) struct Basis {
    name: String,
    settings: LocationSettings,
    hash: [u8; 32],
}

impl Basis {
    /// Says whether the files are others by now, and whether a location could be made of them. Takes its time: not for a
    /// thread that ticks.
    pub(super) fn compare(&self) {
        let location = &self.name;
        let changed = read(&self.settings).and_then(|(file, bundle)| {
            let changed = bundle.hash() != self.hash;
            if changed {
                bundle.definition(&file)?;
            }
            Ok(changed)
        });
        match changed {
            Ok(false) => {}
            Ok(true) => tracing::warn!(
                location,
                "SIGHUP: the location's files have changed, but only a restart takes them"
            ),
            Err(problems) => tracing::error!(
                location,
                "SIGHUP: the location's files have changed, and a restart would refuse them: {problems}"
            ),
        }
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

/// The files of a location as they are now, with the location file's name.
fn read(settings: &LocationSettings) -> Result<(String, Bundle), Problems> {
    let files = match &settings.file {
        Some(path) => LocationFiles::read(path)?,
        None => LocationFiles::demo(),
    };
    let file = files.file;
    match Bundle::new(files.location, settings.tick_rate, settings.bots, files.maps) {
        Ok(bundle) => Ok((file, bundle)),
        Err(error) => Err(Problems::one(&file, "", error.to_string())),
    }
}
