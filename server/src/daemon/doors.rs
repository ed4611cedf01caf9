//! Who comes in: what an operator can change while the daemon runs.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;

use super::{Directory, Settings};
use crate::admission::bans::Bans;
use crate::admission::{Admission, TlsSettings, unix_seconds};
use crate::exit::{Status, WithStatus};
use crate::location::Input;
use crate::tls::Tls;

/// Keys, certificate and bans.
pub(super) struct Doors {
    /// Whose tickets are believed.
    pub(super) admission: Arc<Admission>,
    /// How the port is encrypted; `None`: not here.
    pub(super) tls: Option<Arc<Tls>>,
    /// Who may not come in, as it is now: what a location is told that starts again.
    pub(super) bans: Arc<Mutex<Arc<Bans>>>,
}

impl Doors {
    /// Reads them.
    ///
    /// # Errors
    /// A file that cannot be read or understood (78).
    pub(super) fn load(settings: &Settings) -> anyhow::Result<Self> {
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
            bans: Arc::new(Mutex::new(Arc::new(bans))),
        })
    }

    /// Reads everything again; what cannot be read stays as it was.
    pub(super) fn reload(&self, data_dir: &Path, directory: &Directory) {
        let done = |what: &str, result: anyhow::Result<()>| match result {
            Ok(()) => tracing::info!("SIGHUP: {what} read again"),
            Err(error) => tracing::error!("SIGHUP: {what} stay as they were: {error:#}"),
        };
        done("ticket keys", self.admission.reload());
        if let Some(tls) = &self.tls {
            done("TLS certificate and key", tls.reload());
        }
        done("bans", Bans::load(data_dir).map(|bans| self.ban(bans, directory)));
    }

    /// These are the bans from now on; whoever is banned and there is sent away.
    pub(super) fn ban(&self, bans: Bans, directory: &Directory) {
        let bans = Arc::new(bans);
        *self.bans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&bans);
        for place in directory.iter() {
            place.handle.send(Input::Bans {
                bans: Arc::clone(&bans),
                unix_seconds: unix_seconds(),
            });
        }
    }
}
